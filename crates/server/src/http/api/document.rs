//! The OpenAPI document of our own interface.
//!
//! `openapi.json` has all of it but the schemas of entities, which follow from the table of their
//! properties.

use std::sync::LazyLock;

use serde_json::Value as Json;

/// The whole document.
pub static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let written = include_str!("openapi.json");
    let mut document: Json = serde_json::from_str(written).expect("the document is JSON");
    let schemas = document["components"]["schemas"].as_object_mut();
    let schemas = schemas.expect("the document has schemas");
    schemas.extend(entity::schemas());
    serde_json::to_string_pretty(&document).expect("the document is JSON")
});
