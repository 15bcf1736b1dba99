//! Entities files: a `Config.json` of the official emulator, or TOML or JSON with lists of queues
//! and topics, each topic with its subscriptions and their rules.

use std::path::Path;

use broker::{FaultRule, Policy, Tier};
use entity::fault::{self, FaultLocation, RulePart};
use entity::{QueueDefinition, TopicDefinition};
use serde::Deserialize;
use server::ConfiguredNamespace;

use super::emulator;
use super::error::{Error, read};
use super::faults;
use super::json::{self, Cursor};
use super::namespaces::{self, NamespaceConfig};
use super::policies;
use super::toml_file::TomlFile;
use super::unknown_target::UnknownTarget;

/// The entities of a file.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    pub queues: Vec<QueueDefinition>,
    pub topics: Vec<TopicDefinition>,
    /// Of users and of operators.
    pub policies: Vec<Policy>,
    /// Operations that fail on purpose.
    pub faults: Vec<FaultRule>,
    /// Namespaces besides the default one, which has all that is above.
    pub namespaces: Vec<ConfiguredNamespace>,
    /// Targets of forwarded messages that their own file does not have.
    pub unknown_targets: Vec<UnknownTarget>,
    /// What a user should know about the file, although it is accepted.
    pub warnings: Vec<String>,
}

impl Entities {
    /// Adds a warning that `file` declares no entities, if that is so and it is not there yet.
    pub fn warn_if_none(&mut self, file: &Path) {
        let is_empty = self.queues.is_empty() && self.topics.is_empty();
        if is_empty && self.namespaces.is_empty() {
            let file = file.display();
            let text = format!("{file}:1: the file declares no queue and no topic");
            if !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    /// Warnings about messages that would go to an entity that is not there.
    pub fn missing_targets(&self) -> Vec<String> {
        let known = fault::names(&self.queues, &self.topics);
        let missing = self
            .unknown_targets
            .iter()
            .filter(|it| it.is_missing(&known));
        missing.map(UnknownTarget::to_string).collect()
    }

    /// Adds the entities of `railbus.toml` to those of the entities file. If both name one, the
    /// entities file wins, with a warning.
    pub fn add(&mut self, of_settings: Self) {
        let known = fault::names(&self.queues, &self.topics);
        let warnings = &mut self.warnings;
        warnings.extend(of_settings.warnings);
        let mut is_new = |what: &str, path: &str| {
            let is_new = !known.contains(&path.to_lowercase());
            if !is_new {
                let text = format!("the {what} {path} is in both files; the entities file holds");
                warnings.push(text);
            }
            is_new
        };
        let queues = of_settings.queues.into_iter();
        self.queues
            .extend(queues.filter(|queue| is_new("queue", &queue.path)));
        let topics = of_settings.topics.into_iter();
        self.topics
            .extend(topics.filter(|topic| is_new("topic", &topic.path)));
        let mut unknown = of_settings.unknown_targets;
        unknown.retain(|it| match &it.namespace {
            None => !known.contains(it.path()),
            Some(name) => !(self.namespaces.iter()).any(|known| known.definition.name == *name),
        });
        self.unknown_targets.append(&mut unknown);
        policies::add(&mut self.policies, of_settings.policies, &mut self.warnings);
        for fault in of_settings.faults {
            if self.faults.iter().any(|known| known.name == fault.name) {
                let name = &fault.name;
                let text =
                    format!("the fault rule {name} is in both files; the entities file holds");
                self.warnings.push(text);
            } else {
                self.faults.push(fault);
            }
        }
        for namespace in of_settings.namespaces {
            let name = &namespace.definition.name;
            let mut known = self.namespaces.iter();
            if known.any(|known| known.definition.name == *name) {
                let text =
                    format!("the namespace {name} is in both files; the entities file holds");
                self.warnings.push(text);
            } else {
                self.namespaces.push(namespace);
            }
        }
    }
}

/// The lists of a file of our own shape.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EntitiesConfig {
    #[serde(default)]
    queues: Vec<QueueDefinition>,
    #[serde(default)]
    topics: Vec<TopicDefinition>,
    #[serde(default)]
    policies: Vec<Policy>,
    #[serde(default)]
    faults: Vec<FaultRule>,
    #[serde(default)]
    namespaces: Vec<NamespaceConfig>,
}

impl EntitiesConfig {
    /// All of it checked. `refuse` makes an error of a path in the file.
    fn collect(
        self,
        tier: Tier,
        refuse: impl Fn(String, String) -> Error,
    ) -> Result<Entities, Error> {
        faults::check(&self.faults, &refuse)?;
        let mut entities = Entities {
            faults: self.faults,
            ..collect(self.queues, self.topics, self.policies, tier, &refuse)?
        };
        namespaces::collect(self.namespaces, tier, refuse, &mut entities)?;
        Ok(entities)
    }
}

/// Reads and checks `file` for a namespace of a tier. TOML is recognized by its extension.
pub fn read_entities(file: &Path, tier: Tier) -> Result<Entities, Error> {
    let is_toml = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let mut entities = if is_toml {
        read_toml(file, tier)?
    } else {
        read_json(file, tier)?
    };
    entities.warn_if_none(file);
    Ok(entities)
}

fn read_toml(file: &Path, tier: Tier) -> Result<Entities, Error> {
    let mut file = TomlFile::<EntitiesConfig>::read(file)?;
    let config = std::mem::take(&mut file.value);
    config.collect(tier, |path, message| file.error(path, message))
}

fn read_json(file: &Path, tier: Tier) -> Result<Entities, Error> {
    let text = read(file)?;
    let value = json::parse(file, &text)?;
    let root = Cursor::root(file, &text, &value);
    if emulator::is_emulator(&root)? {
        return emulator::read(&root, tier);
    }
    let config: EntitiesConfig = root.read()?;
    config.collect(tier, |path, message| root.error_at(&path, message))
}

/// The entities of a file of our own shape, checked. `refuse` makes an error of a path in the file.
pub fn collect(
    queues: Vec<QueueDefinition>,
    topics: Vec<TopicDefinition>,
    policies: Vec<Policy>,
    tier: Tier,
    refuse: impl Fn(String, String) -> Error,
) -> Result<Entities, Error> {
    policies::check(&policies, &refuse)?;
    let mut entities = Entities {
        queues,
        topics,
        policies,
        ..Entities::default()
    };
    let checked = fault::check(&entities.queues, &entities.topics)
        .and_then(|()| fault::admit(tier, &mut entities.queues, &entities.topics));
    if let Err(fault) = checked {
        return Err(refuse(key_of(fault.location), fault.text(path_of)));
    }
    let keys = ["forward-to", "forward-dead-lettered-messages-to"];
    entities.unknown_targets = UnknownTarget::find(
        &entities.queues,
        &entities.topics,
        keys,
        |location, key, text| refuse(format!("{}.{key}", path_of(location)), text),
    );
    Ok(entities)
}

/// Where a file of our own shape has an entity or a rule.
fn path_of(location: FaultLocation) -> String {
    match location {
        FaultLocation::Queue(queue) => format!("queues[{queue}]"),
        FaultLocation::Topic(topic) => format!("topics[{topic}]"),
        FaultLocation::Subscription(topic, subscription) => {
            format!("topics[{topic}].subscriptions[{subscription}]")
        }
        FaultLocation::Rule(topic, subscription, rule, _) => {
            format!("topics[{topic}].subscriptions[{subscription}].rules[{rule}]")
        }
    }
}

/// Where the value is that is wrong.
fn key_of(location: FaultLocation) -> String {
    let key = match location {
        FaultLocation::Rule(.., RulePart::Filter) => "filter",
        FaultLocation::Rule(.., RulePart::Action) => "action",
        _ => "name",
    };
    format!("{}.{key}", path_of(location))
}

#[cfg(test)]
mod tests {
    use broker::{FilterDescription, Value};

    use crate::config::file_tests::{check, emulator, topics};

    #[test]
    fn the_emulators_sample_is_read_with_comments_trailing_commas_and_byte_order_mark() {
        let entities = check(
            "Config.json",
            "\u{feff}{ // a comment
              \"UserConfig\": { \"Namespaces\": [ { \"Name\": \"sbemulatorns\", /* another */
                \"Queues\": [ { \"Name\": \"queue.1\", \"Properties\": { \"LockDuration\": \"PT30S\",
                   \"MaxDeliveryCount\": 10, \"ForwardTo\": \"\", \"RequiresSession\": false, } }, ],
                \"Topics\": [] } ],
                \"Logging\": { \"Type\": \"File\" } } }",
        )
        .unwrap();
        assert_eq!(entities.warnings, Vec::<String>::new());
        assert_eq!(entities.queues[0].path, "queue.1");
        assert_eq!(entities.queues[0].settings.lock_duration, 30_000);
        assert_eq!(entities.queues[0].settings.max_delivery_count, 10);
        assert_eq!(entities.queues[0].settings.forward_to, None);
    }

    #[test]
    fn a_missing_property_takes_the_emulators_default() {
        let entities = emulator(
            r#"{"Name": "orders"}, {"name": "other", "properties": {"lockduration": "PT5S"}}"#,
        );
        let queues = entities.unwrap().queues;
        assert_eq!(queues[0].settings.max_delivery_count, 3);
        assert_eq!(queues[0].settings.default_message_time_to_live, 3_600_000);
        assert_eq!(queues[0].settings.lock_duration, 60_000);
        assert_eq!(queues[1].settings.lock_duration, 5_000);
    }

    #[test]
    fn a_value_inside_the_clouds_limits_is_accepted_although_the_emulator_refuses_it() {
        let queue = r#"{"Name": "orders", "Properties": {"MaxDeliveryCount": 2147483647, "DefaultMessageTimeToLive": "P10675199DT2H48M5.4775807S"}}"#;
        let queues = emulator(queue).unwrap().queues;
        assert_eq!(queues[0].settings.max_delivery_count, 2_147_483_647);
        assert_eq!(queues[0].settings.default_message_time_to_live, u64::MAX);
    }

    #[test]
    fn a_value_outside_the_clouds_limits_is_refused_with_line_and_path() {
        assert_eq!(
            emulator("{\"Name\": \"a\"},\n{\"Name\": \"b\", \"Properties\": {\"LockDuration\": \"PT6M\"}}").unwrap_err(),
            "Config.json:4: UserConfig.Namespaces[0].Queues[1].Properties.LockDuration: PT6M is above the maximum of PT5M",
        );
        assert_eq!(
            emulator(r#"{"Name": "a", "Properties": {"MaxDeliveryCount": 0}}"#).unwrap_err(),
            "Config.json:3: UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: 0 is below the minimum of 1",
        );
        assert_eq!(
            emulator(r#"{"Name": "a", "Properties": {"DefaultMessageTimeToLive": "PT0S"}}"#)
                .unwrap_err(),
            "Config.json:3: UserConfig.Namespaces[0].Queues[0].Properties.DefaultMessageTimeToLive: PT0S is below the minimum of PT1S",
        );
        assert_eq!(
            emulator(r#"{"Name": "a", "Properties": {"RequiresSession": "yes"}}"#).unwrap_err(),
            "Config.json:3: UserConfig.Namespaces[0].Queues[0].Properties.RequiresSession: true or false is expected here",
        );
    }

    #[test]
    fn status_and_idle_time_are_read_although_the_emulator_knows_neither() {
        let queue = r#"{"Name": "a", "Properties": {"Status": "SendDisabled", "AutoDeleteOnIdle": "PT5M"}}"#;
        let entities = emulator(queue).unwrap();
        assert_eq!(entities.warnings, Vec::<String>::new());
        let settings = &entities.queues[0].settings;
        assert_eq!(settings.status, broker::Status::SendDisabled);
        assert_eq!(settings.auto_delete_on_idle, 300_000);
        let toml =
            "[[queues]]\nname = 'a'\nstatus = 'receive-disabled'\nauto-delete-on-idle = 'PT10M'\n";
        let settings = &check("q.toml", toml).unwrap().queues[0].settings;
        assert_eq!(settings.status, broker::Status::ReceiveDisabled);
        assert_eq!(settings.auto_delete_on_idle, 600_000);
        let default = &check("q.toml", "[[queues]]\nname = 'a'\n").unwrap().queues[0].settings;
        assert_eq!(default.status, broker::Status::Active);
        assert_eq!(default.auto_delete_on_idle, u64::MAX);
    }

    #[test]
    fn a_status_of_the_systems_and_too_short_an_idle_time_are_refused() {
        let location = "Config.json:3: UserConfig.Namespaces[0].Queues[0].Properties";
        assert_eq!(
            emulator(r#"{"Name": "a", "Properties": {"Status": "Deleting"}}"#).unwrap_err(),
            format!(
                "{location}.Status: `Deleting` is not one of Active, Disabled, SendDisabled and ReceiveDisabled"
            ),
        );
        let error = emulator(r#"{"Name": "a", "Properties": {"AutoDeleteOnIdle": "PT299S"}}"#);
        let error = error.unwrap_err();
        assert!(
            error.starts_with(&format!(
                "{location}.AutoDeleteOnIdle: PT299S is below the minimum of PT5M"
            )),
            "{error}"
        );
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(
            emulator(r#"{"Name": "a b"}"#).unwrap_err(),
            "Config.json:3: UserConfig.Namespaces[0].Queues[0].Name: 'a b' contains character(s) that is not allowed by Service Bus. Entity segments can contain only letters, numbers, periods (.), hyphens (-), and underscores (_).",
        );
        assert_eq!(
            emulator("{\"Name\": \"a\"},\n{\"Name\": \"A\"}").unwrap_err(),
            "Config.json:4: UserConfig.Namespaces[0].Queues[1].Name: the queue `A` is there already, as UserConfig.Namespaces[0].Queues[0]",
        );
    }

    #[test]
    fn names_that_the_emulator_refuses_are_taken_in_files_of_either_shape() {
        let text = r#"{"Name": "~a/-b_", "Subscriptions": [{"Name": "_~.", "Rules": [
            {"Name": "-r.", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}}}]}]}"#;
        let toml = "[[topics]]\nname = '~a/-b_'\n[[topics.subscriptions]]\nname = '_~.'\n\
            [[topics.subscriptions.rules]]\nname = '-r.'\n";
        for entities in [topics(text), check("t.toml", toml)] {
            let topics = entities.unwrap().topics;
            assert_eq!(topics[0].path, "~a/-b_");
            let subscription = &topics[0].subscriptions[0];
            assert_eq!(subscription.name, "_~.");
            assert_eq!(subscription.rules.as_ref().unwrap()[0].name, "-r.");
        }
    }

    #[test]
    fn a_name_that_is_refused_is_an_error_at_its_place() {
        let sentence = "contains character(s) that is not allowed";
        for name in ["a//b", "a/../b", "$a", "a/"] {
            let error = emulator(&format!(r#"{{"Name": "{name}"}}"#)).unwrap_err();
            let location = "Config.json:3: UserConfig.Namespaces[0].Queues[0].Name";
            let expected = format!("{location}: '{name}' {sentence}");
            assert!(error.starts_with(&expected), "{error}");
        }
        let subscription = r#"{"Name": "t", "Subscriptions": [{"Name": "a/b"}]}"#;
        let error = topics(subscription).unwrap_err();
        let location = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0]";
        let expected = format!("Config.json:1: {location}.Name: 'a/b' {sentence}");
        assert!(error.starts_with(&expected), "{error}");
        let rule = r#"{"Name": "t", "Subscriptions": [{"Name": "s", "Rules": [
            {"Name": "a~b", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}}}]}]}"#;
        let error = topics(rule).unwrap_err();
        let expected = format!("Config.json:2: {location}.Rules[0].Name: 'a~b' {sentence}");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn topics_are_read_with_their_subscriptions_and_rules() {
        let entities = topics(
            r#"{"Name": "t1", "Properties": {"RequiresDuplicateDetection": true}, "Subscriptions": [
                {"Name": "all"},
                {"Name": "some", "Properties": {"RequiresSession": true, "MaxDeliveryCount": 5},
                 "Rules": [
                    {"Name": "big", "Properties": {"FilterType": "sql",
                        "SqlFilter": {"SqlExpression": "n > 5"},
                        "Action": {"SqlExpression": "SET big = TRUE"}}},
                    {"Name": "red", "Properties": {"FilterType": "Correlation",
                        "CorrelationFilter": {"Label": "red",
                            "Properties": {"a": 1, "b": "x", "c": 1.5, "d": true}}}}]}]}"#,
        )
        .unwrap();
        assert_eq!(entities.warnings, Vec::<String>::new());
        let [topic] = &entities.topics[..] else {
            panic!("one topic");
        };
        assert!(topic.settings.requires_duplicate_detection);
        let [all, some] = &topic.subscriptions[..] else {
            panic!("two subscriptions");
        };
        assert_eq!((&*all.name, &all.rules), ("all", &None));
        assert!(some.settings.queue.requires_session);
        assert_eq!(some.settings.queue.max_delivery_count, 5);
        let rules = some.rules.as_ref().unwrap();
        assert_eq!(rules[0].filter, FilterDescription::Sql("n > 5".to_owned()));
        assert_eq!(rules[0].action.as_deref(), Some("SET big = TRUE"));
        let FilterDescription::Correlation(fields) = &rules[1].filter else {
            panic!("a correlation filter");
        };
        assert_eq!(fields.label.as_deref(), Some("red"));
        let values: Vec<_> = fields.properties.iter().map(|(_, value)| value).collect();
        let expected = [
            &Value::Long(1),
            &Value::from("x"),
            &Value::Double(1.5),
            &Value::Bool(true),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_an_error_at_its_place() {
        let rule = |properties: &str| {
            let text = format!(
                r#"{{"Name": "t", "Subscriptions": [{{"Name": "s", "Rules": [
                    {{"Name": "r", "Properties": {properties}}}]}}]}}"#
            );
            topics(&text).unwrap_err()
        };
        let location = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0]";
        assert_eq!(
            rule(r#"{"FilterType": "SqlFilter", "SqlFilter": {"SqlExpression": "1=1"}}"#),
            format!(
                "Config.json:2: {location}.Properties.FilterType: `SqlFilter` is no type of filter: `Sql` or `Correlation` is"
            ),
        );
        assert_eq!(
            rule(r#"{"FilterType": "Sql"}"#),
            format!("Config.json:2: {location}.Properties: `SqlFilter` is missing"),
        );
        let error = rule(r#"{"FilterType": "Sql", "SqlFilter": {"SqlExpression": "n >"}}"#);
        assert!(error.contains("at character 4"), "{error}");
        let error = rule(r#"{"FilterType": "Correlation", "CorrelationFilter": {}}"#);
        assert!(error.contains("at least one field"), "{error}");
    }

    #[test]
    fn files_of_our_own_shape_are_read() {
        let json = check(
            "q.json",
            r#"{"queues": [{"name": "orders", "max-delivery-count": 7}]}"#,
        )
        .unwrap();
        let toml = check(
            "q.toml",
            "[[queues]]\nname = 'orders'\nmax-delivery-count = 7\n",
        )
        .unwrap();
        assert_eq!(json.queues, toml.queues);
        assert_eq!(json.queues[0].settings.max_delivery_count, 7);
        // The cloud's default, since this is no emulator's file.
        assert_eq!(
            json.queues[0].settings.default_message_time_to_live,
            u64::MAX
        );
    }

    #[test]
    fn errors_in_files_of_our_own_shape_name_line_and_path() {
        assert_eq!(
            check(
                "q.json",
                "{\"queues\": [\n{\"name\": \"a\", \"max-delivery-count\": 0}]}"
            )
            .unwrap_err(),
            "q.json:2: queues[0].max-delivery-count: 0 is below the minimum of 1",
        );
        assert_eq!(
            check(
                "q.json",
                "{\"queues\": [\n{\"name\": \"a\"},\n{\"name\": \"A\"}]}"
            )
            .unwrap_err(),
            "q.json:3: queues[1].name: the queue `A` is there already, as queues[0]",
        );
        let error = check(
            "q.json",
            "{\"queues\": [\n{\"name\": \"a\"},\n{\"name\": }]}",
        )
        .unwrap_err();
        assert!(error.starts_with("q.json:3: "), "{error}");
    }
}
