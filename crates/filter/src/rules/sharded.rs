//! Sharded: a hash map that is cheap to clone and cheap to change after that.
//!
//! It is split into shards that clones share; a change copies only its own shard, and only if that
//! is shared. So rules can change while an evaluation still uses the snapshot before. Order never
//! depends on a hash: the only way to iterate is to take the map apart.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

/// A fixed hasher, since no result may depend on random numbers.
pub(crate) type Hasher = BuildHasherDefault<DefaultHasher>;

type Shard<K, V> = Arc<HashMap<K, V, Hasher>>;

/// Entries of a shard, on average, before there are twice as many shards.
const MAX_SHARD_LEN: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct Sharded<K, V> {
    /// A power of two.
    shards: Vec<Shard<K, V>>,
    len: usize,
}

impl<K, V> Default for Sharded<K, V> {
    fn default() -> Self {
        Self {
            shards: vec![Arc::default()],
            len: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Sharded<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.shards[self.place(key)].get(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.len >= MAX_SHARD_LEN * self.shards.len() {
            self.spread();
        }
        let place = self.place(&key);
        let old = Arc::make_mut(&mut self.shards[place]).insert(key, value);
        self.len += usize::from(old.is_none());
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.place(key);
        if !self.shards[place].contains_key(key) {
            return None;
        }
        self.len -= 1;
        Arc::make_mut(&mut self.shards[place]).remove(key)
    }

    /// The value under `key`, to be changed.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key);
        if !self.shards[place].contains_key(key) {
            return None;
        }
        Arc::make_mut(&mut self.shards[place]).get_mut(key)
    }

    /// All entries, in no order.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (K, V)> {
        self.shards
            .into_iter()
            .flat_map(|shard| Arc::unwrap_or_clone(shard).into_iter())
    }

    fn place<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        // The upper bits: a shard's own table goes by the lower ones.
        let bits = Hasher::default().hash_one(key) >> 32;
        bits as usize & (self.shards.len() - 1)
    }

    fn spread(&mut self) {
        let wider = Self {
            shards: vec![Arc::default(); 2 * self.shards.len()],
            len: 0,
        };
        let old = std::mem::replace(self, wider);
        for (key, value) in old.into_entries() {
            self.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]
        #[test]
        fn it_holds_what_a_map_does_and_so_do_its_clones(
            steps in proptest::collection::vec((0..2_000u32, any::<bool>()), 0..3_000),
        ) {
            let mut sharded = Sharded::default();
            let mut map = BTreeMap::new();
            let mut clones = Vec::new();
            for (at, (key, is_insert)) in steps.into_iter().enumerate() {
                if at % 1_000 == 500 {
                    clones.push((sharded.clone(), map.clone()));
                }
                if is_insert {
                    sharded.insert(key, at);
                    map.insert(key, at);
                } else {
                    prop_assert_eq!(sharded.remove(&key), map.remove(&key));
                }
            }
            clones.push((sharded, map));
            for (sharded, map) in clones {
                prop_assert_eq!(sharded.is_empty(), map.is_empty());
                prop_assert!((0..2_000).all(|key| sharded.get(&key) == map.get(&key)));
                prop_assert_eq!(sharded.into_entries().collect::<BTreeMap<_, _>>(), map);
            }
        }
    }
}
