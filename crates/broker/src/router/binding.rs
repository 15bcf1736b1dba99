//! Binding: by what messages of a router go to a target.

use amqp::{Value, encode};
use bytes::BytesMut;

use super::target::Target;

/// A binding of a router.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub target: Target,
    pub key: String,
    /// Sorted by their names.
    pub arguments: Vec<(String, Value)>,
}

impl Binding {
    /// What its arguments take, in bytes.
    pub(super) fn argument_bytes(&self) -> usize {
        encoded_arguments(&self.arguments).len()
    }

    /// Values have no order, so arguments are compared as they are encoded.
    pub(super) fn identity(&self) -> Identity {
        let arguments = encoded_arguments(&self.arguments);
        (self.target, self.key.clone(), arguments)
    }
}

/// Its target, key and arguments: no two bindings of a router have the same.
pub(super) type Identity = (Target, String, Vec<u8>);

/// Arguments as an AMQP map; none are no bytes.
pub(super) fn encoded_arguments(arguments: &[(String, Value)]) -> Vec<u8> {
    if arguments.is_empty() {
        return Vec::new();
    }
    let arguments = arguments.iter();
    let map = arguments.map(|(name, value)| (Value::String(name.clone()), value.clone()));
    let mut encoded = BytesMut::new();
    encode::value(&mut encoded, &Value::Map(map.collect()));
    encoded.to_vec()
}
