//! Pool: the same work on many things, a few at a time.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

/// Does `work` on each of `items`, at most `at_once` of them at any time, in order of start.
pub fn for_each<T: Send>(items: Vec<T>, at_once: usize, work: impl Fn(T) + Sync) {
    let queue = Mutex::new(VecDeque::from(items));
    let next = || {
        queue
            .lock()
            .expect("no worker panics while it holds the queue")
            .pop_front()
    };
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once() {
        let done = Mutex::new(Vec::new());
        for_each((0..100).collect(), 3, |n| {
            done.lock().expect("unpoisoned").push(n);
        });
        let mut done = done.into_inner().expect("unpoisoned");
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<_>>());
    }
}
