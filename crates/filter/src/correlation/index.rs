//! Index: finds the matching ones of many correlation filters without evaluating each.
//!
//! Filters with the same fields share a *shape*, which finds them by a hash of their values. Each
//! shape is registered under one of its fields, so a message tests only the shapes under fields
//! that it has, and each of them once: the cost depends on the message and the number of shapes,
//! not on the number of filters.
//!
//! Names of application properties that differ only in case are different fields, since a message
//! may have both. They share a *fold*, by which a message's property finds all of them.
//!
//! Invariant: every filter is in exactly one shape, and every shape under exactly one field.

use std::hash::BuildHasher;
use std::sync::Arc;

use crate::correlation::{CorrelationFilter, Field, Key};
use crate::expression::dialect::Dialect;
use crate::expression::fields::{Fields, folded};
use crate::message::Message;
use crate::message::property::Property;
use crate::rules::sharded::{Hasher, Sharded};
use crate::values::value::Value;

/// Longer names with capital letters are folded on the heap.
const MAX_STACK_NAME: usize = 64;

/// Empty shapes that do not matter.
const MAX_EMPTY_SHAPES: usize = 64;

/// The properties that a correlation filter may name, by their field's number.
const SYSTEM: [Property; 8] = [
    Property::ContentType,
    Property::CorrelationId,
    Property::Label,
    Property::MessageId,
    Property::ReplyTo,
    Property::ReplyToSessionId,
    Property::SessionId,
    Property::To,
];

type FieldId = u32;

/// Correlation filters, each under an id.
#[derive(Clone, Debug)]
pub(crate) struct Index<Id> {
    /// Application properties by their names without case, with numbers from that of [`SYSTEM`]
    /// on.
    folds: Sharded<Box<str>, Fold>,
    shapes: Vec<Arc<Shape<Id>>>,
    /// The shape with just these fields.
    by_fields: Sharded<Vec<FieldId>, usize>,
    /// For each field the shapes that hang under it.
    under: Vec<Vec<usize>>,
    /// Which of [`SYSTEM`] any filter names.
    asked: [bool; SYSTEM.len()],
    empty_shapes: usize,
}

/// Names that are the same without case, which is at least one.
type Fold = Vec<(Box<str>, FieldId)>;

#[derive(Clone, Debug)]
struct Shape<Id> {
    /// Ascending.
    fields: Vec<FieldId>,
    /// By the hash of their values, which is no more than a hint.
    filters: Sharded<u64, Vec<Group<Id>>>,
}

/// Filters that are the same.
#[derive(Clone, Debug)]
struct Group<Id> {
    filter: Arc<CorrelationFilter>,
    ids: Vec<Id>,
}

/// A field that the message has.
struct Present<'i> {
    field: FieldId,
    /// Of its value; `None` if that equals nothing.
    hash: Option<u64>,
    /// The names that are the same without case; none for a property of [`SYSTEM`].
    fold: &'i [(Box<str>, FieldId)],
    /// Whether the fold has several names, or the message several properties for it.
    is_undecided: bool,
}

impl<Id> Default for Index<Id> {
    fn default() -> Self {
        Self {
            folds: Sharded::default(),
            shapes: Vec::new(),
            by_fields: Sharded::default(),
            under: vec![Vec::new(); SYSTEM.len()],
            asked: [false; SYSTEM.len()],
            empty_shapes: 0,
        }
    }
}

impl<Id: Copy + Eq> Index<Id> {
    pub(crate) fn insert(&mut self, id: Id, filter: Arc<CorrelationFilter>) {
        let conditions = self.ordered(&filter);
        let hash = hash_of(conditions.iter().map(|(_, key)| hash_key(key)));
        let fields: Vec<FieldId> = conditions.iter().map(|(field, _)| *field).collect();
        let shape = match self.by_fields.get(&fields) {
            Some(shape) => *shape,
            None => self.add_shape(fields),
        };
        let shape = Arc::make_mut(&mut self.shapes[shape]);
        self.empty_shapes -= usize::from(shape.filters.is_empty());
        match shape.filters.get_mut(&hash) {
            Some(groups) => add(groups, id, filter),
            None => shape.filters.insert(hash, vec![Group::new(id, filter)]),
        }
    }

    pub(crate) fn remove(&mut self, id: Id, filter: &CorrelationFilter) {
        let conditions = self.ordered(filter);
        let hash = hash_of(conditions.iter().map(|(_, key)| hash_key(key)));
        let fields: Vec<FieldId> = conditions.iter().map(|(field, _)| *field).collect();
        let Some(shape) = self.by_fields.get(&fields).copied() else {
            return;
        };
        let filters = &mut Arc::make_mut(&mut self.shapes[shape]).filters;
        let Some(groups) = filters.get_mut(&hash) else {
            return;
        };
        for group in groups.iter_mut() {
            group.ids.retain(|known| *known != id);
        }
        groups.retain(|group| !group.ids.is_empty());
        if groups.is_empty() {
            filters.remove(&hash);
            self.empty_shapes += usize::from(filters.is_empty());
        }
        if self.empty_shapes > MAX_EMPTY_SHAPES && self.empty_shapes > self.shapes.len() / 2 {
            self.rebuild();
        }
    }

    /// Appends the ids of all filters that match, in no order.
    pub(crate) fn matches(&self, message: &Message<'_>, found: &mut Vec<Id>) {
        if self.shapes.is_empty() {
            return;
        }
        let present = self.present(message);
        for field in &present {
            let under = self.under.get(field.field as usize);
            for shape in under.into_iter().flatten() {
                self.shapes[*shape].matches(message, &present, found);
            }
        }
    }

    /// The fields of `message` that filters are about, ascending.
    fn present(&self, message: &Message<'_>) -> Vec<Present<'_>> {
        let mut present = Vec::with_capacity(SYSTEM.len());
        for (field, property) in (0..).zip(SYSTEM) {
            if self.asked[field] {
                present.push(Present::new(index(field), message.system(property)));
            }
        }
        if !self.folds.is_empty() {
            for (name, item) in message.user_properties().entries() {
                let fold = with_folded(name, |name| self.folds.get(name));
                present.extend(fold.map(|fold| Present::of_fold(fold, Value::of_item(item))));
            }
        }
        present.sort_unstable_by_key(|present| present.field);
        // A second property with the same name, or with a name that differs in case only.
        present.dedup_by(|next, kept| {
            let is_same = next.field == kept.field;
            kept.is_undecided |= is_same;
            is_same
        });
        if present.iter().any(|present| present.is_undecided) {
            decide(message, &mut present);
        }
        present.retain(|present| present.hash.is_some());
        present
    }

    /// A filter's conditions in the order of their fields, which get their numbers.
    fn ordered<'f>(&mut self, filter: &'f CorrelationFilter) -> Vec<(FieldId, &'f Key<'static>)> {
        let mut conditions: Vec<(FieldId, &Key<'static>)> = filter
            .conditions()
            .iter()
            .map(|(field, key)| (self.number(field), key))
            .collect();
        conditions.sort_by_key(|(field, _)| *field);
        conditions
    }

    fn number(&mut self, field: &Field) -> FieldId {
        let name = match field {
            Field::System(property) => {
                let place = SYSTEM.iter().position(|known| known == property);
                let place = place.expect("a correlation filter names no other property");
                self.asked[place] = true;
                return index(place);
            }
            Field::User(name) => name,
        };
        let fold = with_folded(name, |folded| self.folds.get(folded));
        let mut known = fold.into_iter().flatten();
        if let Some((_, field)) = known.find(|(known, _)| known == name) {
            return *field;
        }
        let field = index(self.under.len());
        self.under.push(Vec::new());
        let folded: Box<str> = with_folded(name, |folded| folded.into());
        match self.folds.get_mut(&folded) {
            Some(fold) => fold.push((name.clone(), field)),
            None => self.folds.insert(folded, vec![(name.clone(), field)]),
        }
        field
    }

    /// A new shape hangs under that of its fields which has fewest.
    fn add_shape(&mut self, fields: Vec<FieldId>) -> usize {
        let place = self.shapes.len();
        let under = fields
            .iter()
            .min_by_key(|field| self.under[**field as usize].len());
        let under = *under.expect("a correlation filter has a field");
        self.under[under as usize].push(place);
        self.by_fields.insert(fields.clone(), place);
        self.shapes.push(Arc::new(Shape {
            fields,
            filters: Sharded::default(),
        }));
        self.empty_shapes += 1;
        place
    }

    fn rebuild(&mut self) {
        let old = std::mem::take(self);
        for shape in old.shapes {
            let filters = Arc::unwrap_or_clone(shape).filters;
            for group in filters.into_entries().flat_map(|(_, groups)| groups) {
                for id in group.ids {
                    self.insert(id, group.filter.clone());
                }
            }
        }
    }
}

impl<'i> Present<'i> {
    fn new(field: FieldId, value: Value<'_>) -> Self {
        Self {
            field,
            hash: Key::of(value).map(|key| hash_key(&key)),
            fold: &[],
            is_undecided: false,
        }
    }

    /// A property of the message whose name without case is that of `fold`.
    fn of_fold(fold: &'i Fold, value: Value<'_>) -> Self {
        let (_, field) = fold[0];
        Self {
            fold,
            is_undecided: fold.len() > 1,
            ..Self::new(field, value)
        }
    }
}

/// Where names differ in case only, in the filters or in the message, looks up each name of the
/// filters.
fn decide(message: &Message<'_>, present: &mut Vec<Present<'_>>) {
    let is_undecided = |present: &mut Present<'_>| present.is_undecided;
    let undecided: Vec<Present<'_>> = present.extract_if(.., is_undecided).collect();
    for (name, field) in undecided.iter().flat_map(|present| present.fold) {
        let value = message.user(name, Dialect::Sql).into_value();
        present.push(Present::new(*field, value));
    }
    present.sort_unstable_by_key(|present| present.field);
}

/// Calls `function` with the name without its case, which most names are already.
fn with_folded<R>(name: &str, function: impl FnOnce(&str) -> R) -> R {
    let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if name.bytes().all(is_lower) {
        return function(name);
    }
    let mut buffer = [0; MAX_STACK_NAME];
    if name.is_ascii() && name.len() <= buffer.len() {
        let lower = &mut buffer[..name.len()];
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        return function(std::str::from_utf8(lower).expect("ASCII is UTF-8"));
    }
    function(&folded(name).collect::<String>())
}

impl<Id: Copy> Shape<Id> {
    /// Looks for filters with the values of the message, if it has all fields.
    fn matches(&self, message: &Message<'_>, present: &[Present<'_>], found: &mut Vec<Id>) {
        let mut hash = START;
        for field in &self.fields {
            let place = present.binary_search_by_key(field, |present| present.field);
            match place.ok().and_then(|place| present[place].hash) {
                Some(next) => hash = joined(hash, next),
                None => return,
            }
        }
        for group in self.filters.get(&hash).into_iter().flatten() {
            if group.filter.matches(message) {
                found.extend(&group.ids);
            }
        }
    }
}

impl<Id> Group<Id> {
    fn new(id: Id, filter: Arc<CorrelationFilter>) -> Self {
        Self {
            filter,
            ids: vec![id],
        }
    }
}

/// Adds a filter to those that have its hash.
fn add<Id>(groups: &mut Vec<Group<Id>>, id: Id, filter: Arc<CorrelationFilter>) {
    let mut same = groups
        .iter_mut()
        .filter(|group| group.filter.is_same(&filter));
    match same.next() {
        Some(group) => group.ids.push(id),
        None => groups.push(Group::new(id, filter)),
    }
}

const START: u64 = 1;

fn hash_key(key: &Key<'_>) -> u64 {
    Hasher::default().hash_one(key)
}

fn hash_of(hashes: impl Iterator<Item = u64>) -> u64 {
    hashes.fold(START, joined)
}

fn joined(hash: u64, next: u64) -> u64 {
    (hash.rotate_left(5) ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn index(place: usize) -> FieldId {
    FieldId::try_from(place).expect("filters are limited far below this many")
}
