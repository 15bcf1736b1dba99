//! Stamp: the first bytes of a body: the run of a message and the time when it was due. A receiver
//! in the same process computes the message's latency from it.

use std::time::{Duration, Instant};

use amqp::message::Sections;

/// Bytes of a stamp; a body has at least as many.
pub const STAMP: usize = RUN + size_of::<u64>();
/// The bytes of the run's id.
const RUN: usize = 16;

/// What messages of one run have in common.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    run: [u8; RUN],
    epoch: Instant,
}

impl Stamp {
    /// Stamps of a run with a unique id, with times that are counted from `epoch`.
    pub fn new(run: [u8; RUN], epoch: Instant) -> Self {
        Self { run, epoch }
    }

    /// The stamp of a message that is due at an instant.
    pub(crate) fn write(&self, due: Instant) -> [u8; STAMP] {
        let mut stamp = [0; STAMP];
        let micros = due.saturating_duration_since(self.epoch).as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        stamp[..RUN].copy_from_slice(&self.run);
        stamp[RUN..].copy_from_slice(&micros.to_be_bytes());
        stamp
    }

    /// When an encoded message was due, if it is of this run.
    pub fn read(&self, message: &[u8]) -> Option<Instant> {
        let sections = Sections::scan(message).ok()?;
        let stamp = data(message.get(sections.body)?)?.get(..STAMP)?;
        let (run, micros) = stamp.split_at(RUN);
        let micros = u64::from_be_bytes(micros.try_into().ok()?);
        let due = self.epoch.checked_add(Duration::from_micros(micros))?;
        (run == self.run).then_some(due)
    }
}

/// The content of the first data section. [AMQP 3.2.6]
fn data(body: &[u8]) -> Option<&[u8]> {
    match body {
        [0x00, 0x53, 0x75, 0xa0, _, data @ ..]
        | [0x00, 0x53, 0x75, 0xb0, _, _, _, _, data @ ..] => Some(data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(stamp: &[u8]) -> Vec<u8> {
        let length = u8::try_from(stamp.len()).expect("it is short");
        let head = [0x00, 0x53, 0x75, 0xa0, length];
        [crate::bodies::HEADER, &head, stamp].concat()
    }

    #[test]
    fn a_message_tells_when_it_was_due_to_its_own_run_alone() {
        let epoch = Instant::now();
        let due = epoch + Duration::from_micros(1_234);
        let own = Stamp::new([1; RUN], epoch);
        let message = message(&own.write(due));
        assert_eq!(own.read(&message), Some(due));
        assert_eq!(Stamp::new([2; RUN], epoch).read(&message), None);
    }

    #[test]
    fn bytes_that_are_no_stamp_are_of_no_run() {
        let own = Stamp::new([1; RUN], Instant::now());
        assert_eq!(own.read(&message(&[1; RUN])), None);
        assert_eq!(own.read(b"no message"), None);
        assert_eq!(own.read(&[0x00, 0x53, 0x77, 0xa1, 1, b'a']), None);
        let late = [[1; RUN].as_slice(), &[0xff; 8]].concat();
        let _ = own.read(&message(&late));
    }
}
