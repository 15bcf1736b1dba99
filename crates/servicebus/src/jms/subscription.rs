//! Named subscription: the one that a topic's receiver asks for by its name and source.
//! (docs/spec/amqp.md#13.3)

use amqp::Attach;

use crate::jms::has;

const SHARED: &str = "shared";
/// Of a shared subscription that belongs to no client id.
const GLOBAL: &str = "global";

/// A subscription as its consumer names it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NamedSubscription {
    /// `None`: the consumer has one of its own, which goes with it.
    pub(super) name: Option<String>,
    pub(super) client_id: String,
    pub(super) is_durable: bool,
    pub(super) is_shared: bool,
}

impl NamedSubscription {
    /// The subscription that a consumer of a client asks for.
    pub(super) fn of(attach: &Attach, client_id: &str) -> Self {
        let source = attach.source.as_deref();
        let capabilities = source
            .map(|source| &*source.capabilities)
            .unwrap_or_default();
        let is_durable = source.is_some_and(|source| source.durable > 0);
        let is_shared = has(capabilities, SHARED);
        let is_global = is_shared && has(capabilities, GLOBAL);
        Self {
            name: (is_durable || is_shared).then(|| name_of(&attach.name).to_owned()),
            client_id: own(client_id, is_global),
            is_durable,
            is_shared,
        }
    }
}

/// The name and client id of the durable subscription that a link without a source is for.
pub(super) fn to_unsubscribe<'a>(attach: &'a Attach, client_id: &str) -> (&'a str, String) {
    let is_global = has(&attach.desired_capabilities, GLOBAL);
    (name_of(&attach.name), own(client_id, is_global))
}

/// The name of the subscription of a link. Behind it clients tell their links apart.
fn name_of(link: &str) -> &str {
    link.split('|').next().unwrap_or_default()
}

fn own(client_id: &str, is_global: bool) -> String {
    match is_global {
        true => String::new(),
        false => client_id.to_owned(),
    }
}

/// The capabilities of a durable subscription's source.
pub(super) fn capabilities(is_shared: bool, is_global: bool) -> Vec<amqp::Symbol> {
    let capabilities = [
        (super::TOPIC, true),
        (SHARED, is_shared),
        (GLOBAL, is_shared && is_global),
    ];
    let wanted = capabilities.into_iter().filter(|(_, is_wanted)| *is_wanted);
    wanted.map(|(name, _)| amqp::Symbol::new(name)).collect()
}
