//! Pinned: brokers that run on some of the machine's processors only, and the load generator on
//! others.
//!
//! A process begins where the thread that starts it may run, and sees as many processors as that,
//! so a broker is started from where it is to be.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::site::{Fresh, Site};

/// The processors that we may use.
pub struct Processors(Vec<usize>);

impl Processors {
    /// All of them.
    pub fn of_this_machine() -> Result<Self> {
        let set = sched_getaffinity(None).context("asking for our processors")?;
        let all = (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number));
        Ok(Self(all.collect()))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// On how many a broker is measured: one, two, four, and so on.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        let count = self.count();
        std::iter::successors(Some(1), |count| Some(count * 2))
            .take_while(move |some| *some <= count)
    }

    /// Starts a broker on `count` of them from the place `first` on. From now on the load
    /// generator, which is this thread, runs on those that come after, or on all if there are none.
    pub fn start(&self, site: &Site, first: usize, count: usize) -> Result<Fresh> {
        let (own, rest) = self.divide(first, count);
        run_on(own)?;
        let fresh = site.fresh();
        run_on(rest)?;
        fresh
    }

    fn divide(&self, first: usize, count: usize) -> (&[usize], &[usize]) {
        let all = self.0.as_slice();
        let own = all.get(first..first + count).unwrap_or(all);
        let rest = all.get(first + count..).unwrap_or_default();
        (own, if rest.is_empty() { all } else { rest })
    }
}

/// Has this thread run on `processors` only.
fn run_on(processors: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    processors.iter().for_each(|number| set.set(*number));
    sched_setaffinity(None, &set).with_context(|| format!("running on {processors:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_has_what_is_left_and_all_if_nothing_is() {
        let processors = Processors(vec![2, 3, 5, 7]);
        assert_eq!(processors.divide(0, 1), (&[2][..], &[3, 5, 7][..]));
        assert_eq!(processors.divide(1, 2), (&[3, 5][..], &[7][..]));
        assert_eq!(
            processors.divide(0, 4),
            (&[2, 3, 5, 7][..], &[2, 3, 5, 7][..])
        );
        assert_eq!(processors.counts().collect::<Vec<_>>(), [1, 2, 4]);
    }
}
