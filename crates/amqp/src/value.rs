//! Value: any AMQP value as a tree, for code outside the hot path. [AMQP 1.6]
//!
//! A decoded value borrows nothing except `Binary`, which shares the buffer it came from. Maps keep
//! the order of the wire and may repeat keys; a look-up finds the first of equal keys.

use bytes::Bytes;

use crate::symbol::Symbol;

/// An AMQP map in wire order.
pub type Map = Vec<(Value, Value)>;

/// One AMQP value of any type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the standard's types")]
pub enum Value {
    Null,
    Bool(bool),
    Ubyte(u8),
    Ushort(u16),
    Uint(u32),
    Ulong(u64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    /// IEEE 754 decimal, kept as its bytes.
    Decimal32([u8; 4]),
    /// IEEE 754 decimal, kept as its bytes.
    Decimal64([u8; 8]),
    /// IEEE 754 decimal, kept as its bytes.
    Decimal128([u8; 16]),
    Char(char),
    /// Milliseconds since the Unix epoch.
    Timestamp(i64),
    /// In RFC 4122 byte order.
    Uuid([u8; 16]),
    Binary(Bytes),
    String(String),
    Symbol(Symbol),
    List(Vec<Value>),
    Map(Map),
    /// Elements share one constructor: all of one variant (and of one descriptor, if described).
    Array(Vec<Value>),
    /// A descriptor (`Ulong` or `Symbol` in practice) and the value it describes.
    Described(Box<(Value, Value)>),
}

impl Value {
    /// A described value with a numeric descriptor.
    #[must_use]
    pub fn described(code: u64, value: Self) -> Self {
        Self::Described(Box::new((Self::Ulong(code), value)))
    }

    /// The text of a string or symbol.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Symbol(symbol) => Some(symbol.as_str()),
            _ => None,
        }
    }

    /// Any integral value that fits an `i64`, timestamps included.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::Ubyte(n) => Some(n.into()),
            Self::Ushort(n) => Some(n.into()),
            Self::Uint(n) => Some(n.into()),
            Self::Ulong(n) => i64::try_from(n).ok(),
            Self::Byte(n) => Some(n.into()),
            Self::Short(n) => Some(n.into()),
            Self::Int(n) => Some(n.into()),
            Self::Long(n) | Self::Timestamp(n) => Some(n),
            _ => None,
        }
    }

    /// The entries of a map.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }
}

/// The value of the first entry whose key is the string or symbol `key`.
#[must_use]
pub fn lookup<'a>(map: &'a [(Value, Value)], key: &str) -> Option<&'a Value> {
    map.iter()
        .find(|(k, _)| k.as_text() == Some(key))
        .map(|(_, v)| v)
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<Symbol> for Value {
    fn from(symbol: Symbol) -> Self {
        Self::Symbol(symbol)
    }
}
