//! Paper: memory that connections write their output into, lent by the thread that they run on.
//!
//! Who is handed much has an output of hundreds of kibibytes, and is rid of it in the same round. To grow
//! it anew each time would copy what is in it again and again, into fresh pages; to keep it would have
//! every connection hold what it needed once. So a thread has one for all of its connections.

use std::cell::RefCell;

use bytes::BytesMut;
use endpoint::Output;
use servicebus::Client;

/// A thread keeps no more.
const MOST: usize = 1 << 20;

thread_local! {
    static SPARE: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Lends a connection what the thread has.
pub fn lend(client: &mut Client) {
    SPARE.with_borrow_mut(|spare| client.lend(spare));
}

/// Takes back what an output that is written has.
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
