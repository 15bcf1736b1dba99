//! `[[namespaces]]`: namespaces besides the default one, each with hosts, keys and entities of its
//! own.

use broker::{AuthorizationRule, FaultRule, NamespaceDefinition, NamespaceLimits, Policy, Tier};
use bytesize::ByteSize;
use entity::{QueueDefinition, TopicDefinition};
use serde::Deserialize;
use server::ConfiguredNamespace;

use super::choice::Right;
use super::entities::{self, Entities};
use super::error::Error;
use super::faults;
use super::railbus_toml::AuthRule;

/// One of `[[namespaces]]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NamespaceConfig {
    name: String,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    keys: Vec<AuthRule>,
    /// Whether what happens to its messages is recorded.
    lineage: Option<bool>,
    /// Queues and topics at most.
    max_entities: Option<u32>,
    /// AMQP connections at most.
    max_connections: Option<u32>,
    /// Bytes of messages and of states of sessions at most.
    max_bytes: Option<ByteSize>,
    #[serde(default)]
    queues: Vec<QueueDefinition>,
    #[serde(default)]
    topics: Vec<TopicDefinition>,
    #[serde(default)]
    policies: Vec<Policy>,
    #[serde(default)]
    faults: Vec<FaultRule>,
}

/// Adds the namespaces of a file of our own shape, checked. `refuse` makes an error of a path in
/// the file.
pub fn collect(
    configs: Vec<NamespaceConfig>,
    tier: Tier,
    refuse: impl Fn(String, String) -> Error,
    into: &mut Entities,
) -> Result<(), Error> {
    let namespaces = &mut into.namespaces;
    for (index, config) in configs.into_iter().enumerate() {
        let within = |path: &str, message| refuse(format!("namespaces[{index}]{path}"), message);
        let NamespaceConfig {
            name,
            hosts,
            keys,
            lineage,
            max_entities,
            max_connections,
            max_bytes,
            queues,
            topics,
            policies,
            faults,
        } = config;
        for (index, key) in keys.iter().enumerate() {
            if key.entity.is_some() {
                let message = "a key of a namespace is for all of it";
                return Err(within(
                    &format!(".keys[{index}].entity"),
                    message.to_owned(),
                ));
            }
            if key.rights.is_empty() {
                let message = "a rule has at least one right";
                return Err(within(
                    &format!(".keys[{index}].rights"),
                    message.to_owned(),
                ));
            }
        }
        let definition = NamespaceDefinition {
            name,
            hosts,
            keys: keys.into_iter().map(authorization_rule).collect(),
            lineage,
            limits: NamespaceLimits {
                max_entities,
                max_connections,
                max_bytes: max_bytes.map(|size| size.as_u64()),
            },
        };
        let name = definition.name.clone();
        add(namespaces, definition, |message| within("", message))?;
        let Entities {
            queues,
            topics,
            policies,
            unknown_targets,
            ..
        } = entities::collect(queues, topics, policies, tier, |path, message| {
            within(&format!(".{path}"), message)
        })?;
        faults::check(&faults, |path, message| {
            within(&format!(".{path}"), message)
        })?;
        let added = namespaces.last_mut().expect("it was added just now");
        (added.queues, added.topics, added.policies) = (queues, topics, policies);
        added.faults = faults;
        let unknown = unknown_targets.into_iter();
        into.unknown_targets
            .extend(unknown.map(|it| it.within(&name)));
    }
    Ok(())
}

/// Adds a namespace without entities, if it has a name and hosts of its own.
pub fn add(
    namespaces: &mut Vec<ConfiguredNamespace>,
    definition: NamespaceDefinition,
    refuse: impl Fn(String) -> Error,
) -> Result<(), Error> {
    definition
        .check()
        .map_err(|error| refuse(error.to_string()))?;
    for other in &*namespaces {
        let (name, other) = (&definition.name, &other.definition);
        if other.name == *name {
            return Err(refuse(format!("the namespace `{name}` is there already")));
        }
        let mut taken = definition.hosts.iter().filter(|host| other.has_host(host));
        let mut of_other = other.hosts.iter().filter(|host| definition.has_host(host));
        if let Some(host) = taken.next().or_else(|| of_other.next()) {
            let text = format!(
                "the host `{host}` is one of the namespace `{}` too",
                other.name
            );
            return Err(refuse(text));
        }
    }
    namespaces.push(ConfiguredNamespace {
        definition,
        queues: Vec::new(),
        topics: Vec::new(),
        policies: Vec::new(),
        faults: Vec::new(),
    });
    Ok(())
}

fn authorization_rule(key: AuthRule) -> AuthorizationRule {
    let rights = Right::all(&key.rights);
    AuthorizationRule {
        send: rights.send,
        listen: rights.listen,
        manage: rights.manage,
        secondary_key: key.secondary_key.unwrap_or_default(),
        ..AuthorizationRule::of_key(key.name, key.primary_key)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Entities;
    use crate::config::file_tests::{self, check};

    fn names(entities: &Entities) -> Vec<(&str, usize, usize)> {
        let of = |it: &server::ConfiguredNamespace| (it.queues.len(), it.topics.len());
        let namespaces = entities.namespaces.iter();
        namespaces
            .map(|it| (&*it.definition.name, of(it).0, of(it).1))
            .collect()
    }

    #[test]
    fn a_namespace_has_hosts_keys_and_entities() {
        let entities = check(
            "q.toml",
            "[[queues]]\nname = 'a'\n[[namespaces]]\nname = 'shop'\nhosts = ['shop.example.com']\n\
             keys = [{ name = 'app', primary-key = 'k', rights = ['send'] }]\n\
             max-entities = 5\nmax-connections = 7\nmax-bytes = '1MiB'\n\
             [[namespaces.queues]]\nname = 'a'\n[[namespaces.topics]]\nname = 't'\n\
             [[namespaces]]\nname = 'empty'\n",
        )
        .unwrap();
        assert_eq!(entities.queues.len(), 1);
        assert_eq!(names(&entities), [("shop", 1, 1), ("empty", 0, 0)]);
        let shop = &entities.namespaces[0].definition;
        assert_eq!(shop.hosts, ["shop.example.com"]);
        let limits = (shop.limits.max_entities, shop.limits.max_connections);
        assert_eq!(limits, (Some(5), Some(7)));
        assert_eq!(shop.limits.max_bytes, Some(1 << 20));
        let key = &shop.keys[0];
        assert_eq!((key.send, key.listen, key.manage), (true, false, false));
        assert_eq!((&*key.key_name, &*key.primary_key), ("app", "k"));
    }

    #[test]
    fn what_is_wrong_is_told_at_its_place() {
        for (text, expected) in [
            (
                "name = 'a/b'",
                "q.toml:1: namespaces[0]: namespace 'a/b': a name has 1 to 63",
            ),
            (
                "name = 'a'\nmax-entities = 0",
                "q.toml:1: namespaces[0]: max-entities: 0 is below the minimum of 1",
            ),
            (
                "name = 'a'\n[[namespaces]]\nname = 'a'",
                "q.toml:3: namespaces[1]: the namespace `a` is there already",
            ),
            (
                "name = 'a'\n[[namespaces]]\nname = 'b'\nhosts = ['a.localhost']",
                "q.toml:3: namespaces[1]: the host `a.localhost` is one of the namespace `a` too",
            ),
            (
                "name = 'a'\nkeys = [{ name = 'k', primary-key = 'k', rights = [] }]",
                "q.toml:3: namespaces[0].keys[0].rights: a rule has at least one right",
            ),
            (
                "name = 'a'\nkeys = [{ name = 'k', primary-key = 'k', rights = ['send'], entity = 'q' }]",
                "q.toml:3: namespaces[0].keys[0].entity: a key of a namespace is for all of it",
            ),
            (
                "name = 'a'\n[[namespaces.queues]]\nname = 'q'\n[[namespaces.queues]]\nname = 'Q'",
                "q.toml:6: namespaces[0].queues[1].name: the queue `Q` is there already",
            ),
        ] {
            let error = check("q.toml", &format!("[[namespaces]]\n{text}\n")).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_emulators_namespaces_behind_the_first_are_others() {
        let entities = file_tests::namespaces(
            r#"{"Name": "sbemulatorns", "Queues": [{"Name": "a"}]},
               {"Name": "Second", "Queues": [{"Name": "a"}, {"Name": "b"}], "Topics": []}"#,
        )
        .unwrap();
        assert_eq!(entities.queues.len(), 1);
        assert_eq!(names(&entities), [("second", 2, 0)]);
        let error =
            file_tests::namespaces(r#"{"Name": "a"}, {"Name": "b"}, {"Name": "B"}"#).unwrap_err();
        assert_eq!(
            error,
            "Config.json:1: UserConfig.Namespaces[2].Name: the namespace `b` is there already"
        );
        let error = file_tests::namespaces(
            "{\"Name\": \"a\"}, {\"Name\": \"b\", \"Queues\": [\n{\"Name\": \"q\"},\n{\"Name\": \"Q\"}]}",
        );
        assert_eq!(
            error.unwrap_err(),
            "Config.json:3: UserConfig.Namespaces[1].Queues[1].Name: the queue `Q` is there \
             already, as UserConfig.Namespaces[1].Queues[0]"
        );
    }
}
