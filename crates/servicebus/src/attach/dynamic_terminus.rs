//! Dynamic terminus: the node that a source or target with `dynamic` asks for.
//! [AMQP 3.5.3, 3.5.4, 3.5.9-13] (docs/spec/amqp.md#3.7)

use amqp::value::lookup;
use amqp::{Attach, Error, Map, Role, Symbol, TargetTerminus, Value};
use broker::{LifetimePolicy, NodeKind, NodeRequest};

use crate::errors;

const LIFETIME_POLICY: &str = "lifetime-policy";
const DISTRIBUTION_MODES: &str = "supported-dist-modes";
const MOVE: Symbol = Symbol::new("move");
/// Of nodes that only the connection that made them receives from.
pub(crate) const TEMPORARY_QUEUE: &str = "temporary-queue";
pub(crate) const TEMPORARY_TOPIC: &str = "temporary-topic";

/// Each policy with its descriptor. [AMQP 3.5.10-13]
const POLICIES: [(LifetimePolicy, u64, &str); 4] = [
    (
        LifetimePolicy::DeleteOnClose,
        0x2b,
        "amqp:delete-on-close:list",
    ),
    (
        LifetimePolicy::DeleteOnNoLinks,
        0x2c,
        "amqp:delete-on-no-links:list",
    ),
    (
        LifetimePolicy::DeleteOnNoMessages,
        0x2d,
        "amqp:delete-on-no-messages:list",
    ),
    (
        LifetimePolicy::DeleteOnNoLinksOrMessages,
        0x2e,
        "amqp:delete-on-no-links-or-messages:list",
    ),
];

/// Whether an attach asks for a node of its own.
pub(crate) fn is_dynamic(attach: &Attach) -> bool {
    match attach.role {
        Role::Receiver => attach.source.as_deref().is_some_and(|it| it.dynamic),
        Role::Sender => match attach.target.as_deref() {
            Some(TargetTerminus::Node(target)) => target.dynamic,
            Some(TargetTerminus::Coordinator(_)) | None => false,
        },
    }
}

/// The node that an attach asks for.
pub(crate) fn request_of(attach: &Attach) -> Result<NodeRequest, Error> {
    let (address, properties, capabilities) = match (attach.role, attach.target.as_deref()) {
        (Role::Sender, Some(TargetTerminus::Node(target))) => (
            &target.address,
            &target.dynamic_node_properties,
            &target.capabilities,
        ),
        _ => {
            let source = attach.source.as_deref().ok_or_else(errors::no_address)?;
            let properties = &source.dynamic_node_properties;
            (&source.address, properties, &source.capabilities)
        }
    };
    if address.as_ref().is_some_and(|it| *it != Value::Null) {
        return Err(errors::dynamic_with_address());
    }
    let has = |capability: &str| capabilities.iter().any(|it| it.as_str() == capability);
    let kind = match (has(TEMPORARY_QUEUE), has(TEMPORARY_TOPIC)) {
        (false, true) => NodeKind::Topic,
        _ => NodeKind::Queue,
    };
    let properties = match properties {
        None | Some(Value::Null) => &[],
        Some(Value::Map(properties)) => properties.as_slice(),
        Some(_) => return Err(errors::bad_node_properties()),
    };
    check_modes(lookup(properties, DISTRIBUTION_MODES))?;
    Ok(NodeRequest {
        kind,
        lifetime: lifetime(lookup(properties, LIFETIME_POLICY))?,
        exclusive: has(TEMPORARY_QUEUE) || has(TEMPORARY_TOPIC),
    })
}

fn lifetime(value: Option<&Value>) -> Result<LifetimePolicy, Error> {
    let policy = match value {
        None | Some(Value::Null) => return Ok(LifetimePolicy::default()),
        Some(Value::Described(policy)) => policy,
        Some(_) => return Err(errors::bad_lifetime_policy()),
    };
    let is_named = |(_, code, name): &(LifetimePolicy, u64, &str)| match &policy.0 {
        Value::Ulong(descriptor) => descriptor == code,
        descriptor => descriptor.as_text() == Some(name),
    };
    if !matches!(policy.1, Value::List(_)) {
        return Err(errors::bad_lifetime_policy());
    }
    let known = POLICIES.into_iter().find(is_named);
    known.map(|it| it.0).ok_or_else(errors::unknown_lifetime)
}

/// Messages of a node move to their receiver, so a node that only hands out copies is refused.
fn check_modes(value: Option<&Value>) -> Result<(), Error> {
    let modes = match value {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(modes) | Value::List(modes)) => modes.as_slice(),
        Some(mode) => std::slice::from_ref(mode),
    };
    let names: Option<Vec<&str>> = modes.iter().map(Value::as_text).collect();
    let names = names.ok_or_else(errors::bad_distribution_modes)?;
    if names.contains(&MOVE.as_str()) {
        Ok(())
    } else {
        Err(errors::unsupported_distribution_modes())
    }
}

/// Tells the client the address of its node, and what holds for it.
pub(crate) fn announce(reply: &mut Attach, address: String, lifetime: LifetimePolicy) {
    let address = Some(Value::String(address));
    let properties = Some(Value::Map(properties(lifetime)));
    match reply.role {
        // The client receives.
        Role::Sender => {
            if let Some(source) = reply.source.as_deref_mut() {
                source.address = address;
                source.dynamic_node_properties = properties;
                (source.durable, source.timeout) = (0, 0);
            }
        }
        Role::Receiver => {
            if let Some(TargetTerminus::Node(target)) = reply.target.as_deref_mut() {
                target.address = address;
                target.dynamic_node_properties = properties;
                (target.durable, target.timeout) = (0, 0);
            }
        }
    }
}

fn properties(lifetime: LifetimePolicy) -> Map {
    let policy = POLICIES.into_iter().find(|it| it.0 == lifetime);
    let (_, code, _) = policy.expect("each policy has its row");
    let policy = Value::described(code, Value::List(Vec::new()));
    let key = |name| Value::Symbol(Symbol::new(name));
    vec![
        (key(LIFETIME_POLICY), policy),
        (
            key(DISTRIBUTION_MODES),
            Value::Array(vec![Value::Symbol(MOVE)]),
        ),
    ]
}
