//! `/api/definitions`: exchanges, queues, bindings, policies and operator policies as one file, to
//! export and [import](super::import). (docs/spec/rabbitmq.md#13)
//!
//! A path that names a virtual host is about that one, whatever the file says; otherwise each entry
//! is of the virtual host that it names. Exchanges that are always there are not exported, nor what
//! RabbitMQ has no word for.

use std::sync::Arc;

use broker::{DEFAULT_ROUTER, Policy, PolicyLayer, QueueArguments, RESERVED_ROUTERS};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::import::import;
use super::virtual_hosts::VirtualHost;
use super::{
    Answered, Call, Failure, bindings, exchanges, is_read, object, policies, virtual_hosts,
};
use crate::namespaces::namespace::{list_policies, list_queues};
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::ShardError;

/// The component of parameters that operator policies are in such a file.
pub(super) const OPERATOR_POLICY: &str = "operator_policy";

/// What is exported of a virtual host.
const KINDS: [&str; 5] = ["queues", "policies", "parameters", "exchanges", "bindings"];

/// Answers a request for all definitions, or for those of a virtual host.
pub(super) async fn handle(server: &Arc<NamespaceView>, call: &Call, rest: &[&str]) -> Answered {
    let only = match rest {
        [] => None,
        [vhost] => Some(*vhost),
        _ => return Err(super::not_found()),
    };
    match &call.method {
        method if is_read(method) => {
            let exported = match only {
                Some(vhost) => export_one(server, vhost).await?,
                None => export_all(server).await?,
            };
            Ok((StatusCode::OK, Some(Json::Object(exported))))
        }
        &Method::POST => {
            import(server, only, &object(&call.body)?, &call.endpoint).await?;
            Ok((StatusCode::NO_CONTENT, None))
        }
        _ => Err(super::not_allowed()),
    }
}

/// The definitions of a virtual host, which do not name it, so that another one can take them.
async fn export_one(
    server: &Arc<NamespaceView>,
    vhost: &str,
) -> Result<Map<String, Json>, Failure> {
    let mut exported = head();
    let lists = export(&mut VirtualHost::open(server, vhost).await?).await?;
    for (kind, mut list) in KINDS.into_iter().zip(lists) {
        for entry in list.iter_mut().filter_map(Json::as_object_mut) {
            entry.remove("vhost");
        }
        exported.insert(kind.to_owned(), list.into());
    }
    Ok(exported)
}

async fn export_all(server: &Arc<NamespaceView>) -> Result<Map<String, Json>, Failure> {
    let names = virtual_hosts::names(server);
    let mut all: [Vec<Json>; KINDS.len()] = Default::default();
    for name in &names {
        let mut host = VirtualHost::open(server, name).await?;
        for (all, list) in all.iter_mut().zip(export(&mut host).await?) {
            all.extend(list);
        }
    }
    let mut exported = head();
    let named = names.iter().map(|name| json!({ "name": name }));
    exported.insert("vhosts".to_owned(), named.collect());
    // Rights are the configuration's. Tools that transform a file want these lists.
    for none in [
        "users",
        "permissions",
        "topic_permissions",
        "global_parameters",
    ] {
        exported.insert(none.to_owned(), Json::Array(Vec::new()));
    }
    for (kind, list) in KINDS.into_iter().zip(all) {
        exported.insert(kind.to_owned(), list.into());
    }
    Ok(exported)
}

fn head() -> Map<String, Json> {
    let product = [
        ("product_name", "Railbus"),
        ("product_version", env!("CARGO_PKG_VERSION")),
        ("rabbitmq_version", rabbitmq::VERSION),
    ];
    let entries = product.into_iter();
    entries
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

/// The lists of a virtual host, in the order of [`KINDS`].
async fn export(host: &mut VirtualHost) -> Result<[Vec<Json>; KINDS.len()], ShardError> {
    let vhost = host.name.clone();
    let queues = list_queues(&mut host.shard).await?;
    // An exclusive queue is its connection's to make.
    let kept = queues.iter().filter(|it| !it.queue.settings.exclusive);
    let queues = kept.map(|info| {
        json!({
            "name": info.queue.path,
            "vhost": vhost,
            "durable": true,
            "auto_delete": info.queue.settings.auto_delete,
            "arguments": QueueArguments::of(info).entries(),
        })
    });
    let queues: Vec<_> = queues.collect();
    let exchanges = exchanges::list(host).await?;
    let own = exchanges
        .iter()
        .filter(|it| it.name != DEFAULT_ROUTER && !it.name.starts_with(RESERVED_ROUTERS));
    let exchanges: Vec<_> = own.map(|it| exchanges::shown(it, &vhost)).collect();
    let bindings = bindings::all(host, None, None).await?;
    let own = bindings.iter().filter(|it| it.source != DEFAULT_ROUTER);
    let bindings: Vec<_> = own.map(|it| bindings::definition(it, &vhost)).collect();
    let user = list_policies(&mut host.shard, PolicyLayer::User).await?;
    let user = user.iter().filter(|it| policies::is_known(it));
    let user = user.map(|it| policies::shown(it, &vhost).into());
    let operator = list_policies(&mut host.shard, PolicyLayer::Operator).await?;
    let operator = operator.iter().filter(|it| policies::is_known(it));
    let operator = operator.map(|it| parameter(it, &vhost));
    Ok([
        queues,
        user.collect(),
        operator.collect(),
        exchanges,
        bindings,
    ])
}

fn parameter(policy: &Policy, vhost: &str) -> Json {
    let mut value = policies::shown(policy, vhost);
    value.remove("vhost");
    value.remove("name");
    json!({
        "component": OPERATOR_POLICY,
        "vhost": vhost,
        "name": policy.name,
        "value": value,
    })
}
