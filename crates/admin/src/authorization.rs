//! Authorization rules of a queue or topic, in and out. (docs/spec/admin.md#5.6)

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::AuthorizationRule;
use entity::time;

use crate::error::Error;
use crate::xml::{Element, Writer};

/// (docs/spec/entities.md#4)
const MAX_RULES: usize = 12;
/// (docs/spec/entities.md#2.6)
const MAX_NAME: usize = 256;
const PROPERTY: &str = "AuthorizationRules";

/// A rule of a description. A key that was not submitted is a new random one.
pub(crate) struct SubmittedRule {
    rule: AuthorizationRule,
    has_primary: bool,
    has_secondary: bool,
}

impl SubmittedRule {
    /// The rule with its final keys. A key that was not submitted keeps its value in `current`,
    /// since some clients omit keys that have not changed. A new rule gets a random one.
    pub(crate) fn with_keys_of(&self, current: &[AuthorizationRule]) -> AuthorizationRule {
        let mut rule = self.rule.clone();
        let mut current = current.iter();
        if let Some(known) = current.find(|known| known.key_name == rule.key_name) {
            if !self.has_primary {
                rule.primary_key.clone_from(&known.primary_key);
            }
            if !self.has_secondary {
                rule.secondary_key.clone_from(&known.secondary_key);
            }
        }
        rule
    }
}

/// The rules of a description. Keys that were not submitted are made from `random`.
pub(crate) fn read(
    description: &Element,
    random: &mut dyn FnMut() -> [u8; 32],
) -> Result<Vec<SubmittedRule>, Error> {
    let list = description.child(PROPERTY);
    let elements = list.into_iter().flat_map(|list| &list.children);
    let mut rules: Vec<SubmittedRule> = Vec::new();
    for element in elements.filter(|element| element.name == "AuthorizationRule") {
        let submitted = SubmittedRule {
            rule: read_one(element, random)?,
            has_primary: element.value("PrimaryKey").is_some(),
            has_secondary: element.value("SecondaryKey").is_some(),
        };
        let name = &submitted.rule.key_name;
        if rules.len() == MAX_RULES {
            return Err(invalid_rules(format!("there can be {MAX_RULES}")));
        } else if rules.iter().any(|known| known.rule.key_name == *name) {
            return Err(invalid_rules(format!("there are two called '{name}'")));
        }
        rules.push(submitted);
    }
    Ok(rules)
}

fn invalid_rules(why: impl std::fmt::Display) -> Error {
    Error::value(PROPERTY, why)
}

fn read_one(
    element: &Element,
    random: &mut dyn FnMut() -> [u8; 32],
) -> Result<AuthorizationRule, Error> {
    let key_name = element.value("KeyName").unwrap_or_default();
    if !(1..=MAX_NAME).contains(&key_name.chars().count()) {
        return Err(invalid_rules(format!(
            "a KeyName has 1 to {MAX_NAME} characters"
        )));
    }
    let mut key = |name: &str| {
        let given = element.value(name).map(str::to_owned);
        let given = given.unwrap_or_else(|| STANDARD.encode(random()));
        if given.chars().count() > MAX_NAME {
            return Err(invalid_rules(format!(
                "a {name} has at most {MAX_NAME} characters"
            )));
        }
        Ok(given)
    };
    let text = |name: &str, default: &str| element.value(name).unwrap_or(default).to_owned();
    let mut rule = AuthorizationRule {
        primary_key: key("PrimaryKey")?,
        secondary_key: key("SecondaryKey")?,
        key_name: key_name.to_owned(),
        claim_type: text("ClaimType", "SharedAccessKey"),
        claim_value: text("ClaimValue", "None"),
        send: false,
        listen: false,
        manage: false,
        created_time: read_time(element, "CreatedTime")?,
        modified_time: read_time(element, "ModifiedTime")?,
    };
    let rights = element.child("Rights").into_iter();
    for right in rights.flat_map(|rights| &rights.children) {
        match right.text.trim() {
            "Send" => rule.send = true,
            "Listen" => rule.listen = true,
            "Manage" => rule.manage = true,
            other => return Err(invalid_rules(format!("the right '{other}' is not known"))),
        }
    }
    if rule.manage && !(rule.send && rule.listen) {
        return Err(invalid_rules("the right Manage needs Send and Listen"));
    }
    Ok(rule)
}

/// A time as the client wrote it. The broker has none of its own, so an update with what was shown
/// changes nothing. (docs/spec/admin.md#5.6)
fn read_time(element: &Element, name: &str) -> Result<Option<String>, Error> {
    let Some(text) = element.value(name) else {
        return Ok(None);
    };
    match time::ticks(text) {
        Some(_) => Ok(Some(text.to_owned())),
        None => Err(invalid_rules(format!("the {name} is no time"))),
    }
}

/// Writes the rules, or that there are none.
pub(crate) fn write(writer: &mut Writer, rules: &[AuthorizationRule]) {
    if rules.is_empty() {
        return writer.empty(PROPERTY, &[]);
    }
    writer.open(PROPERTY, &[]);
    for rule in rules {
        let attributes = [("i:type", "SharedAccessAuthorizationRule")];
        writer.open("AuthorizationRule", &attributes);
        writer.text("ClaimType", &rule.claim_type);
        writer.text("ClaimValue", &rule.claim_value);
        write_rights(writer, rule);
        writer.optional("CreatedTime", rule.created_time.as_ref());
        writer.optional("ModifiedTime", rule.modified_time.as_ref());
        writer.text("KeyName", &rule.key_name);
        writer.text("PrimaryKey", &rule.primary_key);
        writer.text("SecondaryKey", &rule.secondary_key);
        writer.close("AuthorizationRule");
    }
    writer.close(PROPERTY);
}

fn write_rights(writer: &mut Writer, rule: &AuthorizationRule) {
    writer.open("Rights", &[]);
    let rights = [
        ("Manage", rule.manage),
        ("Send", rule.send),
        ("Listen", rule.listen),
    ];
    for (right, _) in rights.into_iter().filter(|(_, given)| *given) {
        writer.text("AccessRights", right);
    }
    writer.close("Rights");
}
