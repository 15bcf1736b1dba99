//! `/api/definitions`: exchanges, queues, bindings, policies and operator policies as one file, to
//! export and import.
//!
//! An import adds to what is there and deletes nothing; it ends at the first of these that is
//! refused. Other parameters are refused before anything is done; users, permissions and virtual
//! hosts are passed over, since rights are the configuration's. Exchanges that are always there are
//! not exported.
//! (docs/spec/rabbitmq.md#13)

use broker::{
    Binding, DEFAULT_ROUTER, Policy, PolicyLayer, QueueArguments, RESERVED_ROUTERS, RouterSettings,
};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::{
    Answered, Call, Failure, VHOST, bad_request, bindings, exchanges, is_read, object, policies,
    queues,
};
use crate::namespaces::namespace::{list_policies, list_queues};
use crate::shard::shard_client::{ShardClient, ShardError};

/// The component of parameters that operator policies are in such a file.
const OPERATOR_POLICY: &str = "operator_policy";

/// Answers a request.
pub(super) async fn handle(shard: &mut ShardClient, call: &Call) -> Answered {
    match &call.method {
        method if is_read(method) => Ok((StatusCode::OK, Some(export(shard).await?))),
        &Method::POST => {
            import(shard, &object(&call.body)?).await?;
            Ok((StatusCode::NO_CONTENT, None))
        }
        _ => Err(super::not_allowed()),
    }
}

async fn export(shard: &mut ShardClient) -> Result<Json, ShardError> {
    let queues = list_queues(shard).await?;
    // An exclusive queue is its connection's to make.
    let kept = queues.iter().filter(|it| !it.queue.settings.exclusive);
    let queues = kept.map(|info| {
        json!({
            "name": info.queue.path,
            "vhost": VHOST,
            "durable": true,
            "auto_delete": info.queue.settings.auto_delete,
            "arguments": QueueArguments::of(info).entries(),
        })
    });
    let queues: Vec<_> = queues.collect();
    let exchanges = exchanges::list(shard).await?;
    let own = exchanges
        .iter()
        .filter(|it| it.name != DEFAULT_ROUTER && !it.name.starts_with(RESERVED_ROUTERS));
    let exchanges: Vec<_> = own.map(exchanges::shown).collect();
    let bindings = bindings::all(shard, None, None).await?;
    let own = bindings.iter().filter(|it| it.source != DEFAULT_ROUTER);
    let bindings: Vec<_> = own.map(bindings::definition).collect();
    let user = list_policies(shard, PolicyLayer::User).await?;
    let user: Vec<_> = user.iter().map(policies::shown).collect();
    let operator = list_policies(shard, PolicyLayer::Operator).await?;
    let operator: Vec<_> = operator.iter().map(parameter).collect();
    Ok(json!({
        "product_name": "Railbus",
        "product_version": env!("CARGO_PKG_VERSION"),
        "vhosts": [{ "name": VHOST }],
        "queues": queues,
        "policies": user,
        "parameters": operator,
        "exchanges": exchanges,
        "bindings": bindings,
    }))
}

fn parameter(policy: &Policy) -> Json {
    let mut value = policies::shown(policy);
    value.remove("vhost");
    value.remove("name");
    json!({
        "component": OPERATOR_POLICY,
        "vhost": VHOST,
        "name": policy.name,
        "value": value,
    })
}

/// What a file says, as far as it means something here.
struct Definitions<'a> {
    exchanges: Vec<(&'a str, RouterSettings)>,
    bindings: Vec<Binding>,
    queues: Vec<(&'a str, &'a Map<String, Json>)>,
    policies: Vec<Policy>,
}

async fn import(shard: &mut ShardClient, file: &Map<String, Json>) -> Result<(), Failure> {
    let definitions = read(file)?;
    for (name, settings) in definitions.exchanges {
        exchanges::declare(shard, name, settings).await?;
    }
    for (name, queue) in definitions.queues {
        queues::put(shard, name, queue).await?;
    }
    for binding in definitions.bindings {
        bindings::bind(shard, binding).await?;
    }
    for policy in definitions.policies {
        policies::put(shard, policy).await?;
    }
    Ok(())
}

fn read(file: &Map<String, Json>) -> Result<Definitions<'_>, Failure> {
    let mut definitions = Definitions {
        exchanges: Vec::new(),
        bindings: Vec::new(),
        queues: Vec::new(),
        policies: Vec::new(),
    };
    for exchange in entries(file, "exchanges")? {
        let settings = exchanges::read(exchange)?;
        definitions.exchanges.push((name_of(exchange)?, settings));
    }
    for binding in entries(file, "bindings")? {
        definitions.bindings.push(bindings::defined(binding)?);
    }
    for queue in entries(file, "queues")? {
        definitions.queues.push((name_of(queue)?, queue));
    }
    for policy in entries(file, "policies")? {
        let policy = policies::parse(policy, PolicyLayer::User, name_of(policy)?)?;
        definitions.policies.push(policy);
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
        definitions.policies.push(policy);
    }
    for policy in &definitions.policies {
        policy
            .check()
            .map_err(|error| bad_request(error.to_string()))?;
    }
    Ok(definitions)
}

/// The objects of a list, all of them of the one virtual host.
fn entries<'a>(
    file: &'a Map<String, Json>,
    kind: &str,
) -> Result<Vec<&'a Map<String, Json>>, Failure> {
    let Some(list) = file.get(kind) else {
        return Ok(Vec::new());
    };
    let entries = list.as_array().map(|list| list.iter().map(Json::as_object));
    let entries: Option<Vec<_>> = entries.and_then(|entries| entries.collect());
    let entries = entries.ok_or_else(|| bad_request(format!("{kind}: not a list of objects")))?;
    let mut vhosts = entries
        .iter()
        .filter_map(|entry| entry.get("vhost")?.as_str());
    let other = vhosts.find(|of| *of != VHOST);
    match other {
        Some(vhost) => Err(bad_request(format!("{kind}: there is no vhost '{vhost}'"))),
        None => Ok(entries),
    }
}

fn name_of(entry: &Map<String, Json>) -> Result<&str, Failure> {
    let name = entry.get("name").and_then(Json::as_str);
    name.ok_or_else(|| bad_request("[{key_missing,name}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &Json, expected: Result<(usize, usize), &str>) {
        let read = read(file.as_object().unwrap());
        let found = match read {
            Ok(definitions) => Ok((definitions.queues.len(), definitions.policies.len())),
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
            &json!({"queues": [{"name": "q", "vhost": "x"}]}),
            Err("queues: there is no vhost 'x'"),
        );
        check(
            &json!({"policies": [{"name": "p", "pattern": "(", "definition": {"expires": 1}}]}),
            Err("pattern should be regular expression but is invalid: unclosed group"),
        );
    }
}
