//! Schemas: entities in the OpenAPI document of our own interface.

use broker::{EntityDescription, EntityKind};
use serde_json::{Map, Value as Json, json};

use crate::property::{Property, Slot};
use crate::table::{PROPERTIES, named};

/// The schemas of descriptions and of shown entities, by name.
#[must_use]
pub fn schemas() -> Map<String, Json> {
    let mut schemas = Map::new();
    schemas.insert("EntityDescription".to_owned(), description());
    let below = json!({"type": "array", "items": {"$ref": "#/components/schemas/Subscription"}});
    let rules = json!({"type": "array", "items": {"$ref": "#/components/schemas/Rule"}});
    let shown = [
        ("Queue", EntityKind::Queue, None),
        ("Topic", EntityKind::Topic, Some(("subscriptions", below))),
        (
            "Subscription",
            EntityKind::Subscription,
            Some(("rules", rules)),
        ),
    ];
    for (name, kind, below) in shown {
        schemas.insert(name.to_owned(), entity(kind, below));
    }
    schemas
}

/// What a request says.
fn description() -> Json {
    let mut properties = Map::new();
    for property in PROPERTIES {
        if let Some(name) = property.name {
            properties.insert(name.to_owned(), value(property, true));
        }
    }
    for (name, schema) in [
        ("name", json!({"type": "string"})),
        (
            "kind",
            json!({"type": "string", "enum": ["queue", "topic", "subscription"]}),
        ),
        (
            "rules",
            json!({
                "type": "array",
                "items": {"$ref": "#/components/schemas/RuleDescription"},
                "description": "Of a new subscription; it selects everything if there are none.",
            }),
        ),
        ("state", json!({"description": "Is passed over."})),
        (
            "subscriptions",
            json!({
                "description": "Of a topic; each has a path of its own.",
                "type": "array",
                "maxItems": 0,
            }),
        ),
    ] {
        properties.insert(name.to_owned(), schema);
    }
    json!({
        "description": "A queue unless it says otherwise. The properties of its kind, all of them \
                        optional; the name is that of the path. What was shown can be put.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// What an answer shows.
fn entity(kind: EntityKind, below: Option<(&str, Json)>) -> Json {
    let mut properties = Map::new();
    let mut required = vec!["name", "state"];
    properties.insert("name".to_owned(), json!({"type": "string"}));
    properties.insert(
        "kind".to_owned(),
        json!({"type": "string", "const": kind.to_string()}),
    );
    properties.insert(
        "state".to_owned(),
        json!({"$ref": "#/components/schemas/State"}),
    );
    if let Some((name, schema)) = below {
        properties.insert(name.to_owned(), schema);
        required.push(name);
    }
    for (name, property) in named(kind) {
        properties.insert(name.to_owned(), value(property, false));
        required.extend(property.default().map(|_| name));
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The value of a property, in a request or in an answer.
fn value(property: &Property, is_request: bool) -> Json {
    let (least, most) = (property.range.start(), property.range.end());
    let mut schema = match (property.slot)(&mut EntityDescription::default()) {
        Slot::Flag(_) => json!({"type": "boolean"}),
        Slot::Duration(..) => json!({"$ref": "#/components/schemas/Duration"}),
        Slot::Count(_) => json!({"type": "integer", "minimum": least, "maximum": most}),
        // A partitioned entity shows all its partitions, which are more than can be asked for.
        Slot::Megabytes(_) => json!({"type": "integer", "minimum": least}),
        Slot::Bytes(_) if is_request => json!({
            "type": ["integer", "string"],
            "description": "Bytes, or a text such as `\"64MiB\"`.",
        }),
        Slot::Bytes(_) => json!({
            "type": "integer",
            "minimum": least,
            "description": "Bytes. The broker's setting if there is none.",
        }),
        Slot::Target(..) => {
            json!({"type": "string", "description": "The path of a queue or a topic."})
        }
        Slot::Limit(_) => json!({
            "type": "integer",
            "minimum": least,
            "description": "No limit if there is none.",
        }),
        slot @ (Slot::Status(_) | Slot::Overflow(_)) => {
            json!({"type": "string", "enum": slot.choices()})
        }
        slot @ Slot::Expiry(_) => json!({
            "type": "string",
            "enum": slot.choices(),
            "description": "The broker's setting if there is none.",
        }),
        Slot::RetryBackoff(_) => json!({
            "type": "object",
            "properties": {
                "min": {"$ref": "#/components/schemas/Duration"},
                "max": {"$ref": "#/components/schemas/Duration"},
                "factor": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["min", "max", "factor"],
            "additionalProperties": false,
            "description": "At once if there is none.",
        }),
        Slot::Text(_) => json!({"type": "string"}),
    };
    if property.fixed {
        schema["description"] = "Cannot be changed.".into();
    }
    schema
}
