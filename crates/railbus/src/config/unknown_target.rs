//! Unknown target: a queue or topic that messages are forwarded to, and that the file which names
//! it does not have. Another file may have it, so it is judged when all files are read.

use std::collections::HashSet;
use std::fmt;

use entity::fault::{self, FaultLocation};
use entity::{QueueDefinition, TopicDefinition};

use super::error::Error;

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct UnknownTarget {
    /// The name of its namespace, all of which is in one file; none of the default one.
    pub namespace: Option<String>,
    /// In lower case.
    path: String,
    /// In lower case.
    target: String,
    /// With its place.
    warning: String,
}

impl UnknownTarget {
    /// Those of one file and namespace. Of the two `keys` the second one is of dead letters; `warn`
    /// makes a warning of the place, the key and the message.
    pub fn find(
        queues: &[QueueDefinition],
        topics: &[TopicDefinition],
        keys: [&str; 2],
        warn: impl Fn(FaultLocation, &str, String) -> Error,
    ) -> Vec<Self> {
        let missing = fault::missing_targets(queues, topics).into_iter();
        let unknown = missing.map(|missing| {
            let target = missing.target;
            let text = format!("messages are forwarded to `{target}`, which is not there");
            let key = keys[usize::from(missing.of_dead_letters)];
            Self {
                namespace: None,
                path: missing.path.to_lowercase(),
                target: target.to_lowercase(),
                warning: warn(missing.location, key, text).to_string(),
            }
        });
        unknown.collect()
    }

    /// The same, of another namespace.
    pub fn within(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// The path of the queue or topic that names it, in lower case.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is not among these paths of the default namespace either.
    pub fn is_missing(&self, known: &HashSet<String>) -> bool {
        self.namespace.is_some() || !known.contains(&self.target)
    }
}

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.warning)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::file_tests::check;

    #[test]
    fn a_target_that_is_not_there_is_told_at_its_place() {
        let toml = "[[queues]]\nname = 'a'\nforward-to = 'nix'\n[[topics]]\nname = 't'\n\
                    [[topics.subscriptions]]\nname = 's'\n\
                    forward-dead-lettered-messages-to = 'Gone'\nforward-to = 'A'\n\
                    [[namespaces]]\nname = 'n'\n[[namespaces.queues]]\nname = 'b'\n\
                    forward-to = 'a'\n";
        let json = "{\"UserConfig\": {\"Namespaces\": [{\"Name\": \"n\", \"Queues\": [\n\
                    {\"Name\": \"a\", \"Properties\": {\n\"ForwardTo\": \"nix\"}}]}]}}";
        for (name, text, expected) in [
            (
                "q.toml",
                toml,
                &[
                    "q.toml:3: queues[0].forward-to: messages are forwarded to `nix`, which is \
                     not there",
                    "q.toml:8: topics[0].subscriptions[0].forward-dead-lettered-messages-to: \
                     messages are forwarded to `Gone`, which is not there",
                    "q.toml:14: namespaces[0].queues[0].forward-to: messages are forwarded to \
                     `a`, which is not there",
                ][..],
            ),
            (
                "Config.json",
                json,
                &[
                    "Config.json:3: UserConfig.Namespaces[0].Queues[0].Properties.ForwardTo: \
                     messages are forwarded to `nix`, which is not there",
                ][..],
            ),
        ] {
            let missing = check(name, text).unwrap().missing_targets();
            let shown = missing.iter().map(|text| {
                let start = text.find(name).unwrap_or_default();
                &text[start..]
            });
            assert_eq!(shown.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_target_may_be_in_another_file() {
        let mut one = check("q.toml", "[[queues]]\nname = 'a'\nforward-to = 'b'\n").unwrap();
        assert_eq!(one.missing_targets().len(), 1);
        let other = "[[queues]]\nname = 'B'\n[[queues]]\nname = 'A'\nforward-to = 'nix'\n";
        one.add(check("r.toml", other).unwrap());
        assert_eq!(one.missing_targets(), Vec::<String>::new());
    }
}
