//! Ids of an endpoint's parts, and its clock.

/// Milliseconds on a clock that never goes back.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Mono(pub u64);

/// A session of one connection. Not reused while the connection lives.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(pub u32);

/// A link of one connection. Not reused while the connection lives.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub u32);
