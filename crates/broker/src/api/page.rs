//! Page: a part of a list, as an answer carries it.

/// A part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// In the order of the list.
    pub items: Vec<T>,
    /// Whether there are others after them.
    pub more: bool,
}
