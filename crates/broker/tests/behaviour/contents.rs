//! Contents: what an export names, read from the store in pieces, as a backup of a namespace reads
//! it.

use broker::{
    Answer, Contents, EntityError, NamespaceAnswer, NamespaceOrder, Order, Output, Piece,
};
use bytes::Bytes;
use store::{EntityId, Entry, EntryKey, Found, Index, Part, Query, SequenceNumber, StoredMessage};

use crate::world::{World, administer, request};

/// Messages in a piece.
const PIECE: usize = 3;

/// What an order about namespaces is answered.
pub fn ask(world: &mut World, order: NamespaceOrder) -> Result<NamespaceAnswer, EntityError> {
    let said = world.turn(administer(request(5), Order::Namespaces(order)));
    let mut answers = said.into_iter().filter_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    match answers.next() {
        Some(Ok(Answer::Namespaces(answer))) => Ok(answer),
        Some(Err(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// All messages and entries of the contents.
pub fn pieces(world: &World, contents: &Contents) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (entity, (id, _)) in contents.entities.iter().enumerate() {
        let messages = Part::ALL
            .iter()
            .flat_map(|part| messages(world, *id, *part));
        let messages: Vec<_> = messages.collect();
        pieces.extend(messages.chunks(PIECE).map(|messages| Piece {
            entity,
            messages: messages.to_vec(),
            entries: Vec::new(),
        }));
        let indexes = Index::ALL.into_iter().filter(|it| *it != Index::Rule);
        let entries = indexes.flat_map(|index| {
            let entries = entries(world, *id, index).into_iter();
            entries.map(move |entry| (index, entry))
        });
        pieces.push(Piece {
            entity,
            messages: Vec::new(),
            entries: entries.collect(),
        });
    }
    pieces
}

fn messages(world: &World, entity: EntityId, part: Part) -> Vec<StoredMessage> {
    let query = Query::Range {
        entity,
        part,
        from: SequenceNumber(0),
        until: SequenceNumber::MAX,
        limit: usize::MAX,
        bodies: true,
        max_bytes: usize::MAX,
    };
    read(world, &query).into_messages().expect("messages")
}

fn entries(world: &World, entity: EntityId, index: Index) -> Vec<Entry> {
    let last = vec![u8::MAX; EntryKey::MAX_GROUP];
    let query = Query::Entries {
        entity,
        index,
        from: EntryKey::new(Bytes::new(), SequenceNumber(0)),
        until: EntryKey::new(last, SequenceNumber::MAX),
        limit: usize::MAX,
        max_bytes: usize::MAX,
    };
    read(world, &query).into_entries().expect("entries")
}

fn read(world: &World, query: &Query) -> Found {
    let store = world.shard.store();
    let found = store.reader().read(store.durable(), query);
    found.expect("the disk is whole")
}
