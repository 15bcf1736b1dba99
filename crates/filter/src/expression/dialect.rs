//! Dialect: the grammar and the rules that an expression follows.

/// The two languages that compile to the same program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Dialect {
    /// Service Bus's filters and actions. (docs/spec/entities.md#17.5 to #17.10)
    Sql,
    /// JMS's message selectors. (JMS 2.0, 3.8.1)
    Jms,
}
