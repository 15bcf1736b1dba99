//! Import: what a file of definitions says is checked as a whole, and then made.
//!
//! An import adds to what is there and deletes nothing. It is refused before anything is made for
//! an entry that cannot be by itself, that differs from what has its name, or that needs what is
//! neither there nor in the file. What shows later alone, such as a limit that is reached, ends it
//! at that entry. Users and permissions are passed over, since rights are the configuration's;
//! other parameters are refused. (docs/spec/rabbitmq.md#13)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use broker::{
    Binding, BindingDestination, DEFAULT_ROUTER, EntityInfo, Order, Policy, PolicyLayer,
    QueueArguments, RESERVED_ROUTERS, Resource, RouterError, RouterSettings, check_router_name,
};
use serde_json::{Map, Value as Json};
use store::NamespaceId;

use super::definitions::OPERATOR_POLICY;
use super::virtual_hosts::{OWN, VirtualHost, router_refusal};
use super::{Failure, bad_request, bindings, exchanges, policies, queues, virtual_hosts};
use crate::http::api::namespaces;
use crate::namespaces::namespace::list_queues;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::ShardError;

/// What a file says of a virtual host, as far as it means something here.
#[derive(Default)]
struct Definitions<'a> {
    exchanges: Vec<(&'a str, RouterSettings)>,
    bindings: Vec<Binding>,
    queues: Vec<(&'a str, QueueArguments)>,
    policies: Vec<Policy>,
}

/// What a virtual host has before an import; nothing, if the import makes it.
#[derive(Default)]
struct Present {
    host: Option<VirtualHost>,
    exchanges: BTreeMap<String, RouterSettings>,
    queues: BTreeMap<String, EntityInfo>,
}

/// Imports a file, or all of it into one virtual host.
pub(super) async fn import(
    server: &Arc<NamespaceView>,
    only: Option<&str>,
    file: &Map<String, Json>,
    endpoint: &str,
) -> Result<(), Failure> {
    let all = read(file, only)?;
    let new = match only {
        Some(_) => BTreeSet::new(),
        None => new_virtual_hosts(server, file)?,
    };
    for (vhost, definitions) in &all {
        let mut present = if new.contains(vhost) {
            Present::default()
        } else if only.is_none() && virtual_hosts::view(server, vhost).is_none() {
            return Err(bad_request(format!("there is no vhost '{vhost}'")));
        } else {
            Present::of(VirtualHost::open(server, vhost).await?).await?
        };
        definitions.check(vhost, &mut present).await?;
    }
    for name in new {
        virtual_hosts::make(server, name, endpoint).await?;
    }
    for (vhost, definitions) in all {
        definitions
            .bring(&mut VirtualHost::open(server, vhost).await?)
            .await?;
    }
    Ok(())
}

/// The virtual hosts of a file that are not there, for a client that may make them.
fn new_virtual_hosts<'a>(
    server: &NamespaceView,
    file: &'a Map<String, Json>,
) -> Result<BTreeSet<&'a str>, Failure> {
    let mut new = BTreeSet::new();
    for entry in entries(file, "vhosts")? {
        let name = name_of(entry)?;
        let is_there = name == OWN || name == server.name() || server.of_name(name).is_some();
        if server.namespace() == NamespaceId::default() && !is_there {
            let definition = namespaces::new(server, name.to_owned(), Vec::new(), None)?;
            let checked = definition.check();
            checked.map_err(|error| bad_request(error.to_string()))?;
            new.insert(name);
        }
    }
    Ok(new)
}

impl Present {
    async fn of(mut host: VirtualHost) -> Result<Self, ShardError> {
        let exchanges = exchanges::list(&mut host).await?.into_iter();
        let queues = list_queues(&mut host.shard).await?.into_iter();
        Ok(Self {
            host: Some(host),
            exchanges: exchanges.map(|it| (it.name, it.settings)).collect(),
            queues: queues.map(|it| (it.queue.path.clone(), it)).collect(),
        })
    }

    /// Whether there is a queue or a topic of that path.
    async fn has_entity(&mut self, path: &str) -> Result<bool, ShardError> {
        if self.queues.contains_key(path) {
            return Ok(true);
        }
        let Some(host) = &mut self.host else {
            return Ok(false);
        };
        let path = path.to_owned();
        Ok(host.shard.order(Order::Describe { path }).await?.is_ok())
    }
}

impl Definitions<'_> {
    /// Whether all of it can be made, as far as that shows now.
    async fn check(&self, vhost: &str, present: &mut Present) -> Result<(), Failure> {
        for (name, settings) in &self.exchanges {
            let checked = check_exchange(name, settings, present);
            checked.map_err(|error| router_refusal(&error, vhost))?;
        }
        for (name, arguments) in &self.queues {
            if let Some(found) = present.queues.get(*name) {
                queues::compare(arguments, found, vhost)?;
            }
        }
        let exchanges: BTreeSet<_> = self.exchanges.iter().map(|(name, _)| *name).collect();
        let queues: BTreeSet<_> = self.queues.iter().map(|(name, _)| *name).collect();
        for binding in &self.bindings {
            let lacks = |name: &str, present: &Present| {
                let is_there = present.exchanges.contains_key(name) || exchanges.contains(name);
                // These are in each virtual host, if the broker has them at all.
                !is_there && !name.starts_with(RESERVED_ROUTERS)
            };
            let source = &binding.source;
            let error = match &binding.destination {
                _ if source == DEFAULT_ROUTER => RouterError::Default,
                _ if lacks(source, present) => RouterError::NotFound(source.clone()),
                BindingDestination::Router(name) if lacks(name, present) => {
                    RouterError::NotFound(name.clone())
                }
                BindingDestination::Entity(path)
                    if !queues.contains(&**path) && !present.has_entity(path).await? =>
                {
                    RouterError::NoDestination(path.clone())
                }
                _ => continue,
            };
            return Err(wrong_binding(&error, vhost));
        }
        Ok(())
    }

    async fn bring(self, host: &mut VirtualHost) -> Result<(), Failure> {
        for (name, settings) in self.exchanges {
            exchanges::declare(host, name, settings).await?;
        }
        for (name, arguments) in self.queues {
            queues::declare(host, name, arguments).await?;
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

/// The refusal of a binding. An end that is missing is a fault of the file: 404 would say that the
/// path names a virtual host that is not there.
fn wrong_binding(error: &RouterError, vhost: &str) -> Failure {
    match error {
        RouterError::NotFound(_) | RouterError::NoDestination(_) => {
            let (_, text) = rabbitmq::router_refusal(error, vhost);
            bad_request(text)
        }
        _ => router_refusal(error, vhost),
    }
}

/// Whether an exchange can be declared so.
fn check_exchange(
    name: &str,
    settings: &RouterSettings,
    present: &Present,
) -> Result<(), RouterError> {
    match present.exchanges.get(name) {
        _ if name == DEFAULT_ROUTER => Err(RouterError::Default),
        None => check_router_name(name),
        Some(current) => match settings.difference(current) {
            None => Ok(()),
            Some(difference) => Err(RouterError::Different {
                name: name.to_owned(),
                difference,
            }),
        },
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
        let (vhost, name) = (vhost_of(queue), name_of(queue)?);
        let arguments = queues::read(Resource::queue(name, vhost), name, queue)?;
        all.entry(vhost).or_default().queues.push((name, arguments));
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
    use serde_json::json;

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
