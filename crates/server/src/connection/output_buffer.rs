//! Output buffer: memory for the output of connections, lent by the worker thread they run on.
//!
//! A connection that gets many messages at once has hundreds of kibibytes of output and writes all
//! of it in the same round. Growing a buffer anew each time would copy its content into fresh
//! pages again and again. Keeping it would make every connection hold the most memory that it ever
//! needed. So each thread has one buffer for all of its connections.

use std::cell::RefCell;

use bytes::BytesMut;
use dialect::Dialect;
use endpoint::Output;

/// The largest buffer that a thread keeps.
const MOST: usize = 1 << 20;

thread_local! {
    static SPARE: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Lends a connection the thread's buffer.
pub fn lend(client: &mut impl Dialect) {
    SPARE.with_borrow_mut(|spare| client.lend(spare));
}

/// Takes the buffer of a written output back.
pub fn reclaim(output: &mut Output) {
    if let Some(memory) = output.take_buffer() {
        SPARE.with_borrow_mut(|spare| {
            if memory.capacity() > spare.capacity() && memory.capacity() <= MOST {
                *spare = memory;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_the_largest_up_to_a_bound() {
        for (bytes, kept) in [(1_000, 1_000), (MOST, MOST), (500, MOST), (2 * MOST, MOST)] {
            let mut output = Output::default();
            output.lend_buffer(&mut BytesMut::with_capacity(bytes));
            reclaim(&mut output);
            assert_eq!(SPARE.with_borrow(BytesMut::capacity), kept);
        }
    }
}
