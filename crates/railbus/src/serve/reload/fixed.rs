//! Fixed: what a reload compares: settings that cannot change in a running broker, and the
//! differences of the others.
//!
//! The first setting that has changed and cannot refuses the reload by its name; differences of
//! keys, issuers, host names and limits become lines of the log, without any secret.

use broker::BrokerSettings;
use entity::Properties;
use entity::plan::{Difference, between};

use crate::config::{Auth, AuthIssuer, AuthRule, LimitsConfig};
use crate::settings::Settings;

/// Limits that were taken at start.
const LIMITS: [&str; 3] = ["reserve-bytes", "scrub-bytes", "lineage-bytes"];

/// The limits that are different.
pub fn limits(old: &Settings, new: &Settings) -> Vec<Difference> {
    between(&shown(&old.limits), &shown(&new.limits))
}

/// Differences of the access rules, without any key.
pub fn keys(old: &Auth, new: &Auth) -> Vec<String> {
    let named = |auth: &Auth, rule: &AuthRule| {
        let same = |other: &&AuthRule| other.name == rule.name && other.entity == rule.entity;
        auth.rules.iter().find(same).cloned()
    };
    let gone = old.rules.iter().filter(|rule| named(new, rule).is_none());
    let gone = gone.map(|rule| format!("the rule {} is gone", rule.name));
    let others = new.rules.iter().filter_map(|rule| match named(old, rule) {
        None => Some(format!("the rule {} is new", rule.name)),
        Some(known) if known != *rule => Some(format!("the rule {} has changed", rule.name)),
        Some(_) => None,
    });
    let issuers = issuers(old, new);
    let certificates = old.certificates != new.certificates;
    let certificates = certificates.then(|| "auth.certificates".to_owned());
    let anonymous = (old.anonymous != new.anonymous).then(|| "auth.anonymous".to_owned());
    let rules = gone.chain(others).chain(issuers);
    rules.chain(certificates).chain(anonymous).collect()
}

/// A difference of the names that a token may be for. (docs/spec/amqp.md#2.5)
pub fn host_names(old: &Settings, new: &Settings) -> Option<String> {
    let (old, new) = (&old.server.rules.host_names, &new.server.rules.host_names);
    (old != new).then(|| format!("the names of the broker are {}", new.join(", ")))
}

fn issuers(old: &Auth, new: &Auth) -> Vec<String> {
    let named = |auth: &Auth, issuer: &AuthIssuer| {
        let mut issuers = auth.issuers.iter();
        issuers.find(|other| other.issuer == issuer.issuer).cloned()
    };
    let old_issuers = old.issuers.iter();
    let gone = old_issuers.filter(|issuer| named(new, issuer).is_none());
    let gone = gone.map(|issuer| format!("the issuer {} is gone", issuer.issuer));
    let others = new.issuers.iter();
    let others = others.filter_map(|issuer| match named(old, issuer) {
        None => Some(format!("the issuer {} is new", issuer.issuer)),
        Some(known) if known != *issuer => {
            Some(format!("the issuer {} has changed", issuer.issuer))
        }
        Some(_) => None,
    });
    gone.chain(others).collect()
}

/// A setting that is different and cannot change.
pub fn difference(old: &Settings, new: &Settings) -> Option<String> {
    let (broker, other) = (&old.server.broker, &new.server.broker);
    let settings = [
        ("data-dir", old.data != new.data),
        (
            "backup-dir",
            old.server.backup_directory != new.server.backup_directory,
        ),
        ("listen", old.server.listen != new.server.listen),
        ("as", old.host != new.host),
        ("plain", old.server.plain != new.server.plain),
        ("log-format", old.log_format != new.log_format),
        ("audit-log", old.audit_log != new.audit_log),
        ("telemetry", old.server.telemetry != new.server.telemetry),
        ("durability", old.store.durability != new.store.durability),
        ("memory", old.store.memory_bytes != new.store.memory_bytes),
        (
            "namespace",
            old.server.admin.namespace != new.server.admin.namespace,
        ),
        ("sku", old.server.admin.tier != new.server.admin.tier),
        (
            "max-message-size",
            old.server.admin.max_message_size != new.server.admin.max_message_size,
        ),
        (
            "virtual-clock",
            old.server.virtual_clock != new.server.virtual_clock,
        ),
        ("namespaces", old.server.namespaces != new.server.namespaces),
        ("faults", old.server.faults != new.server.faults),
        ("lineage", broker.lineage != other.lineage),
        ("expiry", broker.expiry != other.expiry),
        (
            "locks-on-disconnect",
            broker.locks_on_disconnect != other.locks_on_disconnect,
        ),
        (
            "session-count-on-disconnect",
            broker.session_count_on_disconnect != other.session_count_on_disconnect,
        ),
        (
            "transactions.cross-entity",
            old.server.connections.cross_entity != new.server.connections.cross_entity,
        ),
        (
            "anonymous-relay",
            old.server.connections.anonymous_relay != new.server.connections.anonymous_relay,
        ),
        (
            "jms",
            old.server.connections.jms != new.server.connections.jms,
        ),
        (
            "dynamic-nodes",
            old.server.connections.dynamic_nodes != new.server.connections.dynamic_nodes,
        ),
        (
            "forward-failures",
            broker.forward_failures != other.forward_failures,
        ),
        (
            "keep-undead-lettered",
            broker.keep_undead_lettered != other.keep_undead_lettered,
        ),
    ];
    let setting = settings.into_iter().find(|(_, differs)| *differs);
    let limits = limits(old, new);
    let limit = limits
        .iter()
        .find(|limit| LIMITS.contains(&&*limit.property));
    let limit = limit.map(|limit| format!("limits.{}", limit.property));
    setting
        .map(|(name, _)| name.to_owned())
        .or(limit)
        .or_else(|| other_of_broker(broker, other))
}

/// The first other setting of the core that differs.
fn other_of_broker(old: &BrokerSettings, new: &BrokerSettings) -> Option<String> {
    let mut new = BrokerSettings {
        // Chance is not configured.
        seed: old.seed,
        ..new.clone()
    };
    new.set_limits(old.limits());
    (*old != new).then(|| "a setting of the broker".to_owned())
}

fn shown(limits: &LimitsConfig) -> Properties {
    let json = serde_json::to_value(limits).unwrap_or_default();
    let mut shown = match json {
        serde_json::Value::Object(object) => object,
        _ => Properties::new(),
    };
    shown.retain(|_, value| !value.is_null());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::ServeArguments;

    fn settings(directory: &std::path::Path, text: &str) -> Settings {
        let file = directory.join("railbus.toml");
        std::fs::write(&file, text).unwrap();
        let arguments = ServeArguments {
            config: Some(file),
            ..ServeArguments::default()
        };
        Settings::resolve(&arguments).unwrap()
    }

    fn check(old: &str, new: &str, fixed: Option<&str>, limits: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (
            settings(directory.path(), old),
            settings(directory.path(), new),
        );
        assert_eq!(difference(&old, &new).as_deref(), fixed);
        let found = super::limits(&old, &new);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, limits);
    }

    #[test]
    fn entities_certificates_and_most_limits_can_change() {
        check("", "", None, &[]);
        check("", "[[queues]]\nname = 'a'\n", None, &[]);
        check("", "tls-name = ['a']\n", None, &[]);
        check("", "auth.anonymous = ['send']\n", None, &[]);
        check(
            "[limits]\nconnections = 5\n",
            "[limits]\nconnections = 6\nidle-time-out = 'PT1M'\nframe-size = '64KiB'\n",
            None,
            &[
                "connections 5 -> 6",
                "frame-size - -> 65536",
                "idle-time-out - -> PT1M",
            ],
        );
        check(
            "",
            "[limits]\nscrub-bytes = 5\n",
            Some("limits.scrub-bytes"),
            &["scrub-bytes - -> 5"],
        );
        check(
            "",
            "[limits]\nlineage-bytes = 0\n",
            Some("limits.lineage-bytes"),
            &["lineage-bytes - -> 0"],
        );
        check(
            "",
            "[limits]\ntransaction-time-out = 'PT5S'\noutgoing-bytes-per-connection = '1MiB'\n",
            None,
            &[
                "outgoing-bytes-per-connection - -> 1048576",
                "transaction-time-out - -> PT5S",
            ],
        );
    }

    #[test]
    fn keys_are_told_by_the_names_of_their_rules() {
        let directory = tempfile::tempdir().unwrap();
        let rule = |name: &str, key: &str| {
            format!("[[auth.rules]]\nname = '{name}'\nprimary-key = '{key}'\nrights = ['send']\n")
        };
        let old = rule("a", "hush") + &rule("b", "hush") + &rule("c", "hush");
        let new = rule("b", "hush") + &rule("c", "shh") + &rule("d", "hush");
        let old = settings(directory.path(), &old);
        let new = settings(
            directory.path(),
            &("[auth]\nanonymous = ['send']\n".to_owned() + &new),
        );
        let said = keys(&old.auth, &new.auth);
        let expected = [
            "the rule a is gone",
            "the rule c has changed",
            "the rule d is new",
            "auth.anonymous",
        ];
        assert_eq!(said, expected);
        assert_eq!(difference(&old, &new), None);
        assert!(keys(&new.auth, &new.auth).is_empty());
    }

    #[test]
    fn issuers_are_told_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let issuer =
            |name: &str, rest: &str| format!("[[auth.issuers]]\nissuer = 'https://{name}'\n{rest}");
        let old = issuer("a", "") + &issuer("b", "") + &issuer("c", "");
        let new = issuer("b", "") + &issuer("c", "audiences = ['d']\n") + &issuer("d", "");
        let (old, new) = (
            settings(directory.path(), &old),
            settings(directory.path(), &new),
        );
        let expected = [
            "the issuer https://a is gone",
            "the issuer https://c has changed",
            "the issuer https://d is new",
        ];
        assert_eq!(keys(&old.auth, &new.auth), expected);
        assert_eq!(difference(&old, &new), None);
    }

    #[test]
    fn what_can_not_change_is_named() {
        for (text, name) in [
            ("data-dir = 'x'", "data-dir"),
            ("ephemeral = true", "data-dir"),
            ("backup-dir = 'x'", "backup-dir"),
            ("listen = ['127.0.0.1:1']", "listen"),
            ("as = 'shop.servicebus.windows.net'", "listen"),
            ("log-format = 'json'", "log-format"),
            ("audit-log = 'x'", "audit-log"),
            (
                "[telemetry]\nendpoint = 'http://localhost:4318'",
                "telemetry",
            ),
            ("durability = 'buffered'", "durability"),
            ("memory = '64MiB'", "memory"),
            ("namespace = 'shop'", "namespace"),
            ("sku = 'premium'", "sku"),
            ("max-message-size = 2048", "max-message-size"),
            ("virtual-clock = true", "virtual-clock"),
            ("lineage = true", "lineage"),
            ("expiry = 'cloud'", "expiry"),
            ("locks-on-disconnect = 'drop'", "locks-on-disconnect"),
            (
                "session-count-on-disconnect = 'raise'",
                "session-count-on-disconnect",
            ),
            ("forward-failures = 'dead-letter'", "forward-failures"),
            ("keep-undead-lettered = true", "keep-undead-lettered"),
            ("dynamic-nodes = 'off'", "dynamic-nodes"),
            ("anonymous-relay = false", "anonymous-relay"),
            ("jms = true", "jms"),
            (
                "[transactions]\ncross-entity = 'any'",
                "transactions.cross-entity",
            ),
        ] {
            check("", text, Some(name), &[]);
        }
        check(
            "",
            "[limits]\nreserve-bytes = 5\n",
            Some("limits.reserve-bytes"),
            &["reserve-bytes - -> 5"],
        );
        check(
            "",
            "[limits]\ntransaction-time-out = 'PT5S'\nreserve-bytes = 5\n",
            Some("limits.reserve-bytes"),
            &["reserve-bytes - -> 5", "transaction-time-out - -> PT5S"],
        );
    }
}
