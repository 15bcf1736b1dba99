//! Retries in the stores of this test: a message that was abandoned for later.

use broker::{Ensured, Outcome, QueueSettings, RetryTime, Subqueue};
use bytes::Bytes;

use super::routers::version_of;
use super::shop::{Shop, message};
use super::{HOUR, copies, ensure, incoming, send};

/// The queue of the message, which no other test uses.
const PATH: &str = "retries";
/// How many entities there are for this.
pub const ENTITIES: usize = 1;
const DELAY_MS: u64 = 3 * HOUR;

/// A queue with a message that waits for its second delivery.
pub fn fill(shop: &mut Shop) {
    shop.tell(ensure(Ensured::Queue {
        path: PATH.to_owned(),
        settings: QueueSettings::default(),
    }));
    send(shop, PATH, incoming("waits", b"small"));
    let locked = shop.receive(PATH, Subqueue::Main);
    let abandoned = Outcome::Abandon {
        changes: vec![("why".to_owned(), Bytes::from_static(b"\xa1\x04busy"))],
        retry: RetryTime::After(DELAY_MS),
    };
    shop.settle(PATH, &locked[0], abandoned);
}

/// Stores have messages that wait from format 9 on. To be asked before the store is opened.
pub fn are_in(store: &std::path::Path) -> bool {
    version_of(store) >= 9
}

#[test]
fn a_message_that_was_abandoned_for_later_returns_as_it_was() {
    for copy in copies().into_iter().filter(|copy| are_in(copy.path())) {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        assert_eq!(shop.entity(PATH).scheduled, 1);
        assert_eq!(shop.receive(PATH, Subqueue::Main).len(), 0);
        shop.wait_until(DELAY_MS + 2_000);
        let returned = shop.receive(PATH, Subqueue::Main).remove(0);
        assert_eq!(returned.message.payload, message("waits", b"small"));
        assert_eq!(returned.message.delivery_count, 1);
        assert_eq!(returned.message.changes().len(), 1);
        shop.close();
    }
}
