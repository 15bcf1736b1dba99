//! Settings: the values that apply to the whole namespace.

use broker::Tier;

/// The properties of the namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Its label: the author of its entities.
    pub namespace: String,
    /// In the Premium tier entities are larger, and messages as large as their entity lets them
    /// be.
    pub tier: Tier,
    /// Bytes of one message where the entity does not say otherwise.
    pub max_message_size: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "railbus".to_owned(),
            tier: Tier::Standard,
            max_message_size: 262_144,
        }
    }
}
