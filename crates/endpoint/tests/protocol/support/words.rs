//! Words: one line of a script, read as values by name and flags.

use amqp::error::condition;
use amqp::{DeliveryState, Error, Symbol};
use bytes::Bytes;

/// The words of one line after its verb.
pub struct Words<'a> {
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub fn new(words: impl Iterator<Item = &'a str>) -> Self {
        Self {
            words: words.collect(),
        }
    }

    /// The first word that is no `name=value` and no flag used otherwise.
    pub fn at(&self, index: usize) -> &'a str {
        self.words.get(index).copied().unwrap_or("")
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.words
            .iter()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        let number = text.parse().ok();
        Some(number.unwrap_or_else(|| panic!("{name}={text} is no number")))
    }

    pub fn flag(&self, name: &str) -> bool {
        self.words.contains(&name)
    }

    /// `settled`, `unsettled`, or neither.
    pub fn settled(&self) -> Option<bool> {
        match (self.flag("settled"), self.flag("unsettled")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    pub fn error(&self) -> Option<Error> {
        let mut error = self.text("error").map(error)?;
        error.description = self.text("why").map(|why| why.to_owned().into());
        Some(error)
    }

    pub fn state(&self) -> Option<DeliveryState> {
        self.text("state").map(state)
    }

    /// `body=text`, or `size=n` for as many bytes.
    pub fn body(&self) -> Vec<u8> {
        match self.number::<usize>("size") {
            Some(size) => vec![b'x'; size],
            None => self.text("body").unwrap_or("").as_bytes().to_vec(),
        }
    }
}

pub fn error(name: &str) -> Error {
    Error {
        condition: Symbol::from(name.to_owned()),
        description: None,
        info: None,
    }
}

pub fn state(name: &str) -> DeliveryState {
    match name {
        "accepted" => DeliveryState::Accepted,
        "released" => DeliveryState::Released,
        "rejected" => DeliveryState::Rejected(None),
        "rejected-for-cause" => {
            DeliveryState::Rejected(Some(Error::new(condition::MESSAGE_LOCK_LOST, "lost")))
        }
        "modified" => DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: None,
        },
        "received" => DeliveryState::Received {
            section_number: 1,
            section_offset: 7,
        },
        "declared" => DeliveryState::Declared {
            txn_id: Bytes::from_static(b"t1"),
        },
        "transactional" => DeliveryState::Transactional {
            txn_id: Bytes::from_static(b"t1"),
            outcome: Some(Box::new(DeliveryState::Accepted)),
        },
        _ => panic!("no such state: {name}"),
    }
}
