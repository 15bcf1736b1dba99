//! `/api/definitions`: exchanges, queues, bindings, policies and operator policies as one file, to
//! export and import.
//!
//! A path that names a virtual host is about that one, whatever the file says; otherwise each entry
//! is of the virtual host that it names. An import adds to what is there and deletes nothing; it
//! ends at the first of these that is refused. Other parameters and unknown virtual hosts are
//! refused before anything is done; users, permissions and the list of virtual hosts are passed
//! over, since rights are the configuration's. Exchanges that are always there are not exported.
//! (docs/spec/rabbitmq.md#13)

use std::collections::BTreeMap;
use std::sync::Arc;

use broker::{
    Binding, DEFAULT_ROUTER, Policy, PolicyLayer, QueueArguments, RESERVED_ROUTERS, RouterSettings,
};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::virtual_hosts::{OWN, VirtualHost};
use super::{
    Answered, Call, Failure, bad_request, bindings, exchanges, is_read, object, policies, queues,
    virtual_hosts,
};
use crate::namespaces::namespace::{list_policies, list_queues};
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::ShardError;

/// The component of parameters that operator policies are in such a file.
const OPERATOR_POLICY: &str = "operator_policy";

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
            import(server, only, &object(&call.body)?).await?;
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
        ("rabbitmq_version", env!("CARGO_PKG_VERSION")),
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

/// What a file says of a virtual host, as far as it means something here.
#[derive(Default)]
struct Definitions<'a> {
    exchanges: Vec<(&'a str, RouterSettings)>,
    bindings: Vec<Binding>,
    queues: Vec<(&'a str, &'a Map<String, Json>)>,
    policies: Vec<Policy>,
}

async fn import(
    server: &Arc<NamespaceView>,
    only: Option<&str>,
    file: &Map<String, Json>,
) -> Result<(), Failure> {
    let all = read(file, only)?;
    let is_known = |vhost: &&str| virtual_hosts::view(server, vhost).is_some();
    if let Some(vhost) = all.keys().find(|vhost| only.is_none() && !is_known(vhost)) {
        return Err(bad_request(format!("there is no vhost '{vhost}'")));
    }
    for (vhost, definitions) in all {
        definitions
            .bring(&mut VirtualHost::open(server, vhost).await?)
            .await?;
    }
    Ok(())
}

impl Definitions<'_> {
    async fn bring(self, host: &mut VirtualHost) -> Result<(), Failure> {
        for (name, settings) in self.exchanges {
            exchanges::declare(host, name, settings).await?;
        }
        for (name, queue) in self.queues {
            queues::put(host, name, queue).await?;
        }
        for binding in self.bindings {
            bindings::bind(host, binding).await?;
        }
        for policy in self.policies {
            policies::put(host, policy).await?;
        }
        Ok(())
    }
}

/// What a file says of each virtual host, or all of it for one.
fn read<'a>(
    file: &'a Map<String, Json>,
    only: Option<&'a str>,
) -> Result<BTreeMap<&'a str, Definitions<'a>>, Failure> {
    let mut all = BTreeMap::<_, Definitions<'_>>::new();
    // An unknown virtual host is refused of an empty file too.
    all.extend(only.map(|vhost| (vhost, Definitions::default())));
    let vhost_of = |entry: &'a Map<String, Json>| {
        let named = || entry.get("vhost").and_then(Json::as_str);
        only.or_else(named).unwrap_or(OWN)
    };
    for exchange in entries(file, "exchanges")? {
        let settings = exchanges::read(exchange)?;
        all.entry(vhost_of(exchange))
            .or_default()
            .exchanges
            .push((name_of(exchange)?, settings));
    }
    for binding in entries(file, "bindings")? {
        all.entry(vhost_of(binding))
            .or_default()
            .bindings
            .push(bindings::defined(binding)?);
    }
    for queue in entries(file, "queues")? {
        all.entry(vhost_of(queue))
            .or_default()
            .queues
            .push((name_of(queue)?, queue));
    }
    for given in entries(file, "policies")? {
        let policy = policies::parse(given, PolicyLayer::User, name_of(given)?)?;
        all.entry(vhost_of(given))
            .or_default()
            .policies
            .push(policy);
    }
    for parameter in entries(file, "parameters")? {
        let component = parameter.get("component").and_then(Json::as_str);
        let value = parameter.get("value").and_then(Json::as_object);
        let (Some(OPERATOR_POLICY), Some(value)) = (component, value) else {
            let text = format!(
                "parameters: this broker knows `{OPERATOR_POLICY}` alone, not `{}`",
                component.unwrap_or_default()
            );
            return Err(bad_request(text));
        };
        let policy = policies::parse(value, PolicyLayer::Operator, name_of(parameter)?)?;
        all.entry(vhost_of(parameter))
            .or_default()
            .policies
            .push(policy);
    }
    for policy in all.values().flat_map(|it| &it.policies) {
        policy
            .check()
            .map_err(|error| bad_request(error.to_string()))?;
    }
    Ok(all)
}

/// The objects of a list.
fn entries<'a>(
    file: &'a Map<String, Json>,
    kind: &str,
) -> Result<Vec<&'a Map<String, Json>>, Failure> {
    let Some(list) = file.get(kind) else {
        return Ok(Vec::new());
    };
    let entries = list.as_array().map(|list| list.iter().map(Json::as_object));
    let entries: Option<Vec<_>> = entries.and_then(|entries| entries.collect());
    entries.ok_or_else(|| bad_request(format!("{kind}: not a list of objects")))
}

fn name_of(entry: &Map<String, Json>) -> Result<&str, Failure> {
    let name = entry.get("name").and_then(Json::as_str);
    name.ok_or_else(|| bad_request("[{key_missing,name}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &Json, expected: Result<(usize, usize), &str>) {
        let read = read(file.as_object().unwrap(), None);
        let found = match read {
            Ok(all) => {
                let own = all.get(OWN);
                Ok(own.map_or((0, 0), |it| (it.queues.len(), it.policies.len())))
            }
            Err(Failure::Refused((_, _, reason))) => Err(reason),
            Err(Failure::Shard(error)) => Err(error.to_string()),
        };
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_file_is_read_as_far_as_it_means_something() {
        check(&json!({}), Ok((0, 0)));
        check(
            &json!({
                "users": [{"name": "guest"}], "vhosts": [{"name": "/"}],
                "queues": [{"name": "q", "vhost": "/", "arguments": {}}],
                "policies": [{
                    "name": "p", "vhost": "/", "pattern": "^q", "definition": {"max-length": 1},
                }],
                "parameters": [{
                    "component": "operator_policy", "vhost": "/", "name": "cap",
                    "value": {"pattern": "", "definition": {"expires": 1}, "priority": 1},
                }],
                "exchanges": [{"name": "x", "vhost": "/", "type": "topic"}],
                "bindings": [{
                    "source": "x", "destination": "q", "destination_type": "queue",
                    "routing_key": "a", "arguments": {},
                }],
            }),
            Ok((1, 2)),
        );
    }

    #[test]
    fn entries_are_of_the_virtual_host_that_they_name_unless_the_path_names_one() {
        let file = json!({"queues": [
            {"name": "a"}, {"name": "b", "vhost": "/"}, {"name": "c", "vhost": "x"},
        ]});
        let check = |only, expected: &[(&str, usize)]| {
            let Ok(all) = read(file.as_object().unwrap(), only) else {
                panic!("the file can be read");
            };
            let found = all.iter().map(|(vhost, it)| (*vhost, it.queues.len()));
            assert_eq!(found.collect::<Vec<_>>(), expected);
        };
        check(None, &[("/", 2), ("x", 1)]);
        check(Some("y"), &[("y", 3)]);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let kind = "invalid exchange type 'x'";
        check(
            &json!({"exchanges": [{"name": "x", "type": "x"}]}),
            Err(kind),
        );
        let binding = json!({"source": "x", "destination": "q"});
        check(
            &json!({"bindings": [binding]}),
            Err("[{key_missing,destination_type}]"),
        );
        let parameters = "parameters: this broker knows `operator_policy` alone, not `shovel`";
        check(
            &json!({"parameters": [{"component": "shovel", "name": "s", "value": {}}]}),
            Err(parameters),
        );
        check(&json!({"queues": [{}]}), Err("[{key_missing,name}]"));
        check(&json!({"queues": {}}), Err("queues: not a list of objects"));
        check(
            &json!({"policies": [{"name": "p", "pattern": "(", "definition": {"expires": 1}}]}),
            Err("pattern should be regular expression but is invalid: unclosed group"),
        );
    }
}
