//! Letting go: the memory of large bodies goes back to the system a piece at a time.
//!
//! What a message of 100 MiB lies in is 25,600 pages, and the system takes them back in one go, for up to
//! 8 ms in which whoever else wants that processor waits. So it gets a mebibyte at a time, and others go
//! first in between.

use std::thread;

use bytes::Bytes;

/// So much goes in one go: about 0.05 ms.
const PIECE: usize = 1 << 20;

/// Lets go of `bodies` in another thread.
pub(crate) fn free_in_background(bodies: Vec<Bytes>) {
    if !bodies.is_empty() {
        let thread = thread::Builder::new().name("letting go".into());
        // Without a thread they go here.
        drop(thread.spawn(move || drop(bodies)));
    }
}

/// Gives back what `body` lies in, unless somebody else has a part of it.
pub(crate) fn free_incrementally(body: Bytes) {
    let Ok(mut body) = body.try_into_mut() else {
        return;
    };
    // What is in it need not be kept while it shrinks.
    body.clear();
    let mut memory = Vec::from(body);
    while let Some(left) = memory.capacity().checked_sub(PIECE) {
        memory.shrink_to(left);
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_else_has_a_part_of_stays() {
        for len in [0, 1, PIECE, 3 * PIECE + 5] {
            let body = Bytes::from(vec![7; len]);
            let other = body.slice(len / 2..);
            free_incrementally(body);
            assert_eq!(other, vec![7; len - len / 2]);
            free_incrementally(other);
        }
    }
}
