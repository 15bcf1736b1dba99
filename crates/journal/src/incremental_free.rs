//! Incremental free: returns the memory of large bodies to the system a piece at a time.
//!
//! A message of 100 MiB has 25,600 pages. The system takes them back in one call of up to 8 ms, in
//! which no other thread gets that processor. So a call frees one mebibyte, and other threads may
//! run between two calls.

use std::thread;

use bytes::Bytes;

/// Bytes freed in one call, which takes about 0.05 ms.
const PIECE: usize = 1 << 20;

/// Frees `bodies` in another thread.
pub fn free_in_background(bodies: Vec<Bytes>) {
    if !bodies.is_empty() {
        let thread = thread::Builder::new().name("letting go".into());
        // Without a thread they are freed here.
        drop(thread.spawn(move || drop(bodies)));
    }
}

/// Frees the memory of `body`, unless a part of it is still in use.
pub fn free_incrementally(body: Bytes) {
    let Ok(mut body) = body.try_into_mut() else {
        return;
    };
    // Its content need not be kept while it shrinks.
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
    fn a_body_with_another_owner_stays() {
        for len in [0, 1, PIECE, 3 * PIECE + 5] {
            let body = Bytes::from(vec![7; len]);
            let other = body.slice(len / 2..);
            free_incrementally(body);
            assert_eq!(other, vec![7; len - len / 2]);
            free_incrementally(other);
        }
    }
}
