//! Parameters: typed values beside a text, which refers to them as `@name`.

/// The values of an expression's parameters. Names are found in any case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters<'a>(&'a [(String, amqp::Value)]);

impl<'a> Parameters<'a> {
    /// No parameters at all.
    pub const NONE: Self = Self(&[]);

    /// These, by their names without the `@`.
    #[must_use]
    pub const fn new(values: &'a [(String, amqp::Value)]) -> Self {
        Self(values)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'a amqp::Value> {
        let bare = |known: &'a str| known.strip_prefix('@').unwrap_or(known);
        let mut found = self
            .0
            .iter()
            .filter(|(known, _)| bare(known).eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}
