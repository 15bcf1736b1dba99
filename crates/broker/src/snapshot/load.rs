//! Load: a snapshot is made of what its caller brings, and becomes what a namespace has.
//!
//! It has no name and belongs to no entity until the last order, so that a restart, which forgets
//! the load, removes it as it does any other snapshot that is not needed. Its parts are the homes
//! of the bodies that come. The heads in the store count what is there so far; those that were
//! brought take their place at the end, when they have to agree with what has come.

use std::collections::{BTreeMap, BTreeSet};

use store::{
    BodyPointer, EntityId, Entry, EntryKey, Head, Index, NamespaceId, Part, SequenceNumber,
    StoredMessage, Write,
};

use super::hold::{Hold, Load, Loaded, Purpose};
use super::{FOUND, Frozen, Snapshot, messages_in, restore, take};
use crate::administration::entities::check_count;
use crate::api::contents::{FrozenEntity, LoadTarget, Piece};
use crate::api::entity_error::EntityError;
use crate::api::id::ConnectionId;
use crate::api::name::SUBSCRIPTIONS;
use crate::api::namespace::NamespaceLimits;
use crate::api::rule;
use crate::api::snapshot::{MAX_SNAPSHOT_MESSAGES, MAX_SNAPSHOTS};
use crate::context::Context;
use crate::entities::definition;
use crate::entities::directory::Directory;
use crate::entities::template::{Template, make};
use crate::forward::transfer_queue;
use crate::message::row;
use crate::queue::Description;
use crate::queue::kind::Kind;
use crate::queue::session_key::SessionKey;
use crate::send::schedule;
use crate::sessions::state;

/// Begins to load entities that can be made.
pub(crate) fn begin(
    directory: &mut Directory,
    entities: Vec<FrozenEntity>,
    connection: ConnectionId,
    cx: &mut Context<'_>,
) -> Result<EntityId, EntityError> {
    if directory.snapshots.holds.len() >= MAX_SNAPSHOTS {
        let (limit, what) = (
            MAX_SNAPSHOTS,
            "backups and restores of namespaces at a time",
        );
        return Err(EntityError::TooMany { limit, what });
    }
    let messages = entities.iter().map(|entity| messages_in(&entity.head));
    if messages.fold(0, u64::saturating_add) > MAX_SNAPSHOT_MESSAGES {
        let limit = usize::try_from(MAX_SNAPSHOT_MESSAGES).unwrap_or(usize::MAX);
        let what = "messages in a backup of a namespace";
        return Err(EntityError::TooMany { limit, what });
    }
    let id = directory.next_id();
    let mut made = Made::default();
    for entity in entities {
        made.add(entity, (directory.next_id(), id))?;
    }
    check_room(made.roots, NamespaceLimits::default())?;
    let snapshot = Snapshot::new(NamespaceId::default(), None, cx.now.wall);
    cx.write(Write::PutEntity(definition::snapshot_row(id, &snapshot)));
    let load = Load {
        entities: made.loaded,
        roots: made.roots,
    };
    let hold = Hold {
        connection,
        purpose: Purpose::Load(load),
    };
    directory.snapshots.holds.insert(id, hold);
    directory.snapshots.insert(id, snapshot);
    for (part, frozen, row) in made.parts {
        cx.write(Write::PutEntity(row));
        write_begun(part, &frozen, cx);
        cx.shared.lent.lend(part, frozen.head.next_number);
        directory.snapshots.insert_part(id, part, frozen);
    }
    Ok(id)
}

/// What an entity has besides its messages.
fn write_begun(part: EntityId, frozen: &Frozen, cx: &mut Context<'_>) {
    cx.write(Write::PutHead {
        entity: part,
        head: frozen.head.clone(),
    });
    for Entry { key, value } in frozen.rules.clone() {
        cx.write(Write::PutEntry {
            entity: part,
            index: Index::Rule,
            key,
            value,
        });
    }
    for (block, due_ms) in &frozen.expiries {
        cx.write(Write::PutExpiry {
            entity: part,
            part: Part::Active,
            block: *block,
            due_ms: *due_ms,
        });
    }
}

/// Whether a namespace with these limits may have as many queues and topics.
fn check_room(roots: usize, limits: NamespaceLimits) -> Result<(), EntityError> {
    let others = roots.checked_sub(1);
    others.map_or(Ok(()), |others| check_count(others, limits))
}

/// Entities that can be made, so far.
#[derive(Default)]
struct Made {
    parts: Vec<(EntityId, Frozen, store::EntityRow)>,
    loaded: Vec<Loaded>,
    roots: usize,
    paths: BTreeSet<String>,
    /// The path of each topic, in lower case.
    topics: BTreeMap<EntityId, String>,
    /// What each was before, and whether it is a topic.
    sources: BTreeMap<EntityId, (EntityId, bool)>,
}

impl Made {
    fn add(&mut self, entity: FrozenEntity, ids: (EntityId, EntityId)) -> Result<(), EntityError> {
        let (source, head) = (entity.source, entity.head.clone());
        let topic = |id| {
            let (part, is_topic) = *self.sources.get(&id)?;
            is_topic.then_some(part)
        };
        let (frozen, row) = definition::load(entity, ids, topic).map_err(unusable)?;
        let described = frozen.describe(ids.0, NamespaceId::default());
        let Description { kind, settings, .. } = described.map_err(unusable)?;
        for entry in &frozen.rules {
            check_key(entry)?;
            let compiled = rule::decode(entry).map_err(unusable)?.compile();
            compiled.map_err(unusable)?;
        }
        let lower = frozen.path.to_lowercase();
        let is_of_topic = kind.topic().is_none_or(|topic| {
            let topic = self.topics.get(&topic);
            topic.is_some_and(|topic| {
                lower.starts_with(&format!("{topic}{}", SUBSCRIPTIONS.to_lowercase()))
            })
        });
        let is_topic = matches!(kind, Kind::Topic(_));
        if is_topic {
            self.topics.insert(ids.0, lower.clone());
        }
        let is_new = self.paths.insert(lower);
        let known = self.sources.insert(source, (ids.0, is_topic));
        let arrivals = SequenceNumber::FIRST..=SequenceNumber::MAX.arrival();
        let is_sane = is_path(&frozen.path) && arrivals.contains(&head.next_number);
        if !is_new || known.is_some() || !is_sane || !is_of_topic {
            return Err(unusable(format!("{} cannot be made", frozen.path)));
        }
        let is_root = kind.topic().is_none() && !transfer_queue::is_path(&frozen.path);
        self.roots += usize::from(is_root);
        let levels = settings.priorities.map(|_| SequenceNumber::END_OF_LEVELS);
        self.loaded.push(Loaded {
            part: ids.0,
            end: levels.unwrap_or(head.next_number),
            head,
            last: Default::default(),
            last_keys: Default::default(),
            scheduled: 0,
            in_sessions: 0,
            found_in_sessions: 0,
            state_bytes: 0,
        });
        self.parts.push((ids.0, frozen, row));
        Ok(())
    }
}

/// What is not an entity's has a path that begins with a dollar sign.
fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('$')
}

/// Takes a piece in.
pub(crate) fn add(
    directory: &mut Directory,
    id: EntityId,
    piece: Piece,
    cx: &mut Context<'_>,
) -> Result<(), EntityError> {
    let hold = directory.snapshots.holds.get_mut(&id);
    let Some(Purpose::Load(load)) = hold.map(|hold| &mut hold.purpose) else {
        return Err(unusable("it has not begun"));
    };
    let loaded = load.entities.get_mut(piece.entity);
    let loaded = loaded.ok_or_else(|| unusable("a message is of no entity"))?;
    let part = loaded.part;
    let Checked {
        last,
        last_keys,
        entries,
    } = check(loaded, &piece)?;
    loaded.last = last;
    loaded.last_keys = last_keys;
    let in_sessions = piece.messages.iter().filter(|it| is_in_session(it));
    loaded.in_sessions += in_sessions.count() as u64;
    let count = |index| entries.iter().filter(|(it, _)| *it == index).count() as u64;
    loaded.scheduled += count(Index::Schedule);
    loaded.found_in_sessions += count(Index::Session);
    let states = entries.iter().filter_map(|(index, entry)| {
        let is_state = *index == Index::SessionState && SessionKey::is_state(&entry.key);
        is_state.then(|| state::cost(Some(&entry.value)))
    });
    loaded.state_bytes += states.sum::<u64>();
    let snapshot = directory.snapshots.by_id.get_mut(&id).expect(FOUND);
    let frozen = snapshot.frozen.get_mut(&part).expect(FOUND);
    for stored in piece.messages {
        put(stored, part, &mut frozen.head, cx);
    }
    for (index, Entry { key, value }) in entries {
        cx.write(Write::PutEntry {
            entity: part,
            index,
            key,
            value,
        });
    }
    cx.write(Write::PutHead {
        entity: part,
        head: frozen.head.clone(),
    });
    Ok(())
}

/// A piece that can follow what has come: how far it goes in each part and index, and its entries
/// as they will be.
struct Checked {
    last: [Option<SequenceNumber>; Part::ALL.len()],
    last_keys: [Option<EntryKey>; Index::ALL.len()],
    entries: Vec<(Index, Entry)>,
}

/// Whether a piece can follow what has come.
fn check(loaded: &Loaded, piece: &Piece) -> Result<Checked, EntityError> {
    let mut last = loaded.last;
    for stored in &piece.messages {
        let last = &mut last[stored.part as usize];
        let head = loaded.head.part(stored.part);
        let is_found =
            stored.number.0 >= head.resume || head.stragglers.binary_search(&stored.number).is_ok();
        let follows = last.is_none_or(|last| last < stored.number);
        let is_given_out =
            stored.number < loaded.end && stored.number.arrival() < loaded.head.next_number;
        if !is_found || !follows || !is_given_out || stored.body.is_none() {
            let number = stored.number;
            return Err(unusable(format!("message {number} is not in its place")));
        }
        *last = Some(stored.number);
    }
    let mut last_keys = loaded.last_keys.clone();
    let mut entries = Vec::with_capacity(piece.entries.len());
    for (index, entry) in &piece.entries {
        check_key(entry)?;
        let last = &mut last_keys[*index as usize];
        if last.as_ref().is_some_and(|last| *last >= entry.key) {
            return Err(unusable("an entry is not in its place"));
        }
        *last = Some(entry.key.clone());
        let entry = match index {
            Index::Rule => return Err(unusable("a rule is not with its subscription")),
            Index::Schedule => schedule::rehomed(entry, loaded.part)
                .ok_or_else(|| unusable("a scheduled message cannot be understood"))?,
            _ => entry.clone(),
        };
        entries.push((*index, entry));
    }
    Ok(Checked {
        last,
        last_keys,
        entries,
    })
}

/// Whether an entry has to tell that a message is in its session.
fn is_in_session(stored: &StoredMessage) -> bool {
    let is_searched = matches!(stored.part, Part::Active | Part::Deferred | Part::Scheduled);
    is_searched && stored.row.session_hash != 0
}

/// Writes a message, whose body belongs to no other from now on.
fn put(stored: StoredMessage, entity: EntityId, head: &mut Head, cx: &mut Context<'_>) {
    let StoredMessage { part, number, .. } = stored;
    let mut row = stored.row;
    row.flags &= !row::SHARED;
    row.body = BodyPointer {
        home: entity,
        number,
    };
    cx.write(Write::PutBody {
        pointer: row.body,
        body: stored.body.expect("it was checked"),
    });
    cx.write(Write::PutMessage {
        entity,
        part,
        number,
        row,
    });
    if stored.delivery_count > 0 {
        cx.write(Write::PutDeliveryCount {
            entity,
            number,
            count: stored.delivery_count,
        });
    }
    if let Some(patch) = stored.patch {
        cx.write(Write::PutPatch {
            entity,
            number,
            patch,
        });
    }
    let head = head.part_mut(part);
    head.count = head.count.saturating_add(1);
    head.bytes = head.bytes.saturating_add(u64::from(row.size));
}

/// Gives a namespace what was loaded, or makes one of it.
pub(crate) fn end(
    directory: &mut Directory,
    id: EntityId,
    target: LoadTarget,
    cx: &mut Context<'_>,
) -> Result<NamespaceId, EntityError> {
    let Complete { heads, roots } = complete(directory, id)?;
    let is_new = matches!(target, LoadTarget::New(_));
    let namespace = match target {
        LoadTarget::Existing(name) => {
            let namespace = directory.namespaces.find(&name)?;
            take::check_without_exchanges(directory, namespace)?;
            take::check_place(directory, namespace)?;
            check_room(roots, directory.namespaces.limits(namespace))?;
            namespace
        }
        LoadTarget::New(definition) => {
            check_room(roots, definition.limits)?;
            directory.create_namespace(*definition, Template::default(), cx)?
        }
    };
    cx.enter(namespace);
    directory.snapshots.holds.remove(&id);
    let snapshot = directory.snapshots.by_id.get_mut(&id).expect(FOUND);
    snapshot.namespace = namespace;
    cx.write(Write::PutEntity(definition::snapshot_row(id, snapshot)));
    for (part, head) in heads {
        cx.write(Write::PutHead {
            entity: part,
            head: head.clone(),
        });
        snapshot.frozen.get_mut(&part).expect(FOUND).head = head;
    }
    cx.shared.lent.is_to_check = true;
    restore::replace(directory, namespace, id, cx);
    let template = make::of_namespace(directory, namespace);
    if is_new && template.check_size().is_ok() {
        directory.set_template(namespace, template, cx);
    }
    Ok(namespace)
}

/// A load that lacks nothing.
struct Complete {
    /// As they are to be.
    heads: Vec<(EntityId, Head)>,
    roots: usize,
}

/// What was loaded, if all has come that the heads count.
fn complete(directory: &Directory, id: EntityId) -> Result<Complete, EntityError> {
    let hold = directory.snapshots.holds.get(&id);
    let Some(Purpose::Load(load)) = hold.map(|hold| &hold.purpose) else {
        return Err(unusable("it has not begun"));
    };
    let snapshot = &directory.snapshots.by_id[&id];
    let mut heads = Vec::with_capacity(load.entities.len());
    for loaded in &load.entities {
        let Loaded { part, head, .. } = loaded;
        let frozen = &snapshot.frozen[part];
        let agrees = Part::ALL.iter().all(|part| {
            let (come, wanted) = (frozen.head.part(*part), head.part(*part));
            come.count == wanted.count && come.bytes == wanted.bytes
        });
        let entries_agree = loaded.scheduled == head.part(Part::Scheduled).count
            && loaded.found_in_sessions == loaded.in_sessions;
        if !agrees || !entries_agree {
            let path = &frozen.path;
            return Err(unusable(format!("messages of {path} are missing")));
        }
        let head = Head {
            session_state_bytes: loaded.state_bytes,
            ..head.clone()
        };
        heads.push((*part, head));
    }
    let roots = load.roots;
    Ok(Complete { heads, roots })
}

/// Whether the key is one that the broker makes: none has the greatest number, after which no
/// reader could go on.
fn check_key(entry: &Entry) -> Result<(), EntityError> {
    let EntryKey { group, number } = &entry.key;
    if group.len() <= EntryKey::MAX_GROUP && *number < SequenceNumber::MAX {
        return Ok(());
    }
    Err(unusable("an entry has a key that no entry can have"))
}

#[allow(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn unusable(why: impl ToString) -> EntityError {
    EntityError::Invalid(format!("the backup cannot be used: {}", why.to_string()))
}
