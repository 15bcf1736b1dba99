//! Settings: the values that apply to the whole namespace.

/// The properties of the namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Its label: the author of its entities.
    pub namespace: String,
    /// Whether it is of the Premium tier: larger entities, and messages as large as their entity
    /// lets them be.
    pub premium: bool,
    /// Bytes of one message where the entity does not say otherwise.
    pub max_message_size: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "railbus".to_owned(),
            premium: false,
            max_message_size: 262_144,
        }
    }
}

impl Settings {
    /// The tier's name.
    pub(crate) fn sku(&self) -> &'static str {
        if self.premium { "Premium" } else { "Standard" }
    }
}
