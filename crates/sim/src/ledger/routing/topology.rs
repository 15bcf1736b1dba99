//! Topology: which routers and bindings there are, by the orders that make and remove them.
//!
//! Each order finds what those before it have left. A change is sure once its answer, or that of a
//! later one, has left. After a crash the broker lists what there is: what was sure is as it was,
//! and the rest may be as it was at any time. (I1, I13)

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Binding, BindingDestination, RESERVED_ROUTERS, RouterAnswer, RouterInfo, RouterKind,
    RouterOrder,
};

use crate::violation::Violation;

/// A binding.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::ledger) struct Bound {
    source: String,
    destination: BindingDestination,
    key: String,
}

impl From<&Binding> for Bound {
    fn from(binding: &Binding) -> Self {
        Self {
            source: binding.source.clone(),
            destination: binding.destination.clone(),
            key: binding.key.clone(),
        }
    }
}

/// The bindings that an answer lists.
pub(in crate::ledger) fn listed(answer: &RouterAnswer) -> BTreeSet<Bound> {
    match answer {
        RouterAnswer::Bindings(page) => page.items.iter().map(Bound::from).collect(),
        RouterAnswer::Router(_) | RouterAnswer::Routers(_) | RouterAnswer::Done => BTreeSet::new(),
    }
}

/// Something that orders make and remove.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Item {
    Router(String),
    Binding(Bound),
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(in crate::ledger) struct Topology {
    /// Those that are not always there.
    routers: BTreeMap<String, RouterKind>,
    bindings: BTreeSet<Bound>,
    changes: u64,
    /// The last change that is sure.
    sure: u64,
    /// The last change of each.
    changed: BTreeMap<Item, u64>,
}

impl Topology {
    /// How many changes there were.
    pub(in crate::ledger) fn changes(&self) -> u64 {
        self.changes
    }

    /// What has changed up to then is durable.
    pub(in crate::ledger) fn note_sure(&mut self, changes: u64) {
        self.sure = self.sure.max(changes);
    }

    fn note_change(&mut self, item: Item) {
        self.changes += 1;
        self.changed.insert(item, self.changes);
    }

    fn kind_of(&self, router: &str) -> Option<RouterKind> {
        match router {
            "amq.direct" => Some(RouterKind::Direct),
            "amq.fanout" => Some(RouterKind::Fanout),
            "amq.topic" => Some(RouterKind::Topic),
            declared => self.routers.get(declared).copied(),
        }
    }

    /// Changes what an order changes. Whether a queue is there is told by its path. Returns the
    /// bindings that the order lists, or nothing if it is refused.
    pub(in crate::ledger) fn plan(
        &mut self,
        order: &RouterOrder,
        is_there: impl Fn(&str) -> bool,
    ) -> Option<BTreeSet<Bound>> {
        match order {
            RouterOrder::Declare { name, settings } => match self.kind_of(name) {
                Some(kind) if kind != settings.kind => return None,
                Some(_) => {}
                None => {
                    self.routers.insert(name.clone(), settings.kind);
                    self.note_change(Item::Router(name.clone()));
                }
            },
            RouterOrder::Remove { name } => {
                self.routers.remove(name)?;
                self.note_change(Item::Router(name.clone()));
                let destination = BindingDestination::Router(name.clone());
                self.unbind_all(|it| it.source == *name || it.destination == destination);
            }
            RouterOrder::Describe { name } => {
                self.kind_of(name)?;
            }
            RouterOrder::Bind(binding) => {
                let leads_somewhere = match &binding.destination {
                    BindingDestination::Entity(path) => is_there(path),
                    BindingDestination::Router(name) => self.kind_of(name).is_some(),
                };
                if self.kind_of(&binding.source).is_none() || !leads_somewhere {
                    return None;
                }
                let bound = Bound::from(&**binding);
                if self.bindings.insert(bound.clone()) {
                    self.note_change(Item::Binding(bound));
                }
            }
            RouterOrder::Unbind(binding) => {
                let bound = Bound::from(&**binding);
                self.unbind_all(|it| *it == bound);
            }
            RouterOrder::ListBindings {
                source,
                destination,
                key,
                ..
            } => {
                let is_listed = |it: &&Bound| {
                    source.as_ref().is_none_or(|source| *source == it.source)
                        && destination.as_ref().is_none_or(|to| *to == it.destination)
                        && key.as_ref().is_none_or(|key| *key == it.key)
                };
                let listed = self.bindings.iter().filter(is_listed);
                return Some(listed.cloned().collect());
            }
            RouterOrder::List { .. } => {}
        }
        Some(BTreeSet::new())
    }

    /// A queue goes, and the bindings to it with it.
    pub(in crate::ledger) fn remove_queue(&mut self, path: &str) {
        let is_it = |to: &BindingDestination| match to {
            BindingDestination::Entity(it) => it.eq_ignore_ascii_case(path),
            BindingDestination::Router(_) => false,
        };
        self.unbind_all(|it| is_it(&it.destination));
    }

    fn unbind_all(&mut self, goes: impl Fn(&Bound) -> bool) {
        for bound in self
            .bindings
            .extract_if(.., |it| goes(it))
            .collect::<Vec<_>>()
        {
            self.note_change(Item::Binding(bound));
        }
    }

    /// The queues that a message with one of these keys goes to; `None` without such a router.
    pub(in crate::ledger) fn route(
        &self,
        router: &str,
        keys: &[String],
    ) -> Option<BTreeSet<String>> {
        self.kind_of(router)?;
        let mut queues = BTreeSet::new();
        let mut seen = BTreeSet::from([router]);
        let mut left = vec![router];
        while let Some(router) = left.pop() {
            let kind = self.kind_of(router);
            let its = self.bindings.iter().filter(|it| it.source == router);
            for bound in its.filter(|it| keys.iter().any(|key| matches(kind, &it.key, key))) {
                match &bound.destination {
                    BindingDestination::Entity(path) => drop(queues.insert(path.clone())),
                    BindingDestination::Router(name) if seen.insert(name) => left.push(name),
                    BindingDestination::Router(_) => {}
                }
            }
        }
        Some(queues)
    }

    /// What there is after a crash.
    ///
    /// # Errors
    /// I1, if that is not what it was and that was sure; I13, if a binding leads nowhere.
    pub(in crate::ledger) fn learn(
        &mut self,
        routers: &[RouterInfo],
        bindings: &[Binding],
        is_there: impl Fn(&str) -> bool,
    ) -> Result<(), Violation> {
        let declared = routers
            .iter()
            .filter(|it| !it.name.is_empty() && !it.name.starts_with(RESERVED_ROUTERS));
        let routers: BTreeMap<_, _> = declared
            .map(|it| (it.name.clone(), it.settings.kind))
            .collect();
        let bindings: BTreeSet<_> = bindings.iter().map(Bound::from).collect();
        for (item, change) in &self.changed {
            let (was, is) = match item {
                Item::Router(name) => (self.routers.contains_key(name), routers.contains_key(name)),
                Item::Binding(bound) => (self.bindings.contains(bound), bindings.contains(bound)),
            };
            if was != is && *change <= self.sure {
                let what =
                    format!("whether there is {item:?} was sure: {was}; after a crash: {is}");
                return Err(Violation::new("I1", what));
            }
        }
        let is_known = |item: Item| self.changed.contains_key(&item);
        let leads_nowhere = |bound: &&Bound| match &bound.destination {
            BindingDestination::Entity(path) => !is_there(path),
            BindingDestination::Router(_) => false,
        };
        let mut strange = bindings
            .iter()
            .filter(|it| leads_nowhere(it) || !is_known(Item::Binding((*it).clone())));
        if let Some(bound) = strange.next() {
            let what = format!("after a crash there is {bound:?}, which cannot be");
            return Err(Violation::new("I13", what));
        }
        (self.routers, self.bindings) = (routers, bindings);
        self.sure = self.changes;
        Ok(())
    }
}

/// Whether a binding's key matches a message's. (docs/spec/rabbitmq.md#8)
fn matches(kind: Option<RouterKind>, pattern: &str, key: &str) -> bool {
    match kind {
        Some(RouterKind::Fanout) => true,
        Some(RouterKind::Topic) => words_match(&words(pattern), &words(key)),
        _ => pattern == key,
    }
}

fn words(key: &str) -> Vec<&str> {
    key.split('.').filter(|_| !key.is_empty()).collect()
}

fn words_match(pattern: &[&str], words: &[&str]) -> bool {
    match pattern.split_first() {
        None => words.is_empty(),
        Some((&"#", rest)) => (0..=words.len()).any(|skipped| words_match(rest, &words[skipped..])),
        Some((wanted, rest)) => words.split_first().is_some_and(|(word, others)| {
            (*wanted == "*" || wanted == word) && words_match(rest, others)
        }),
    }
}
