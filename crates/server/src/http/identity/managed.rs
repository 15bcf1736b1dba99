//! Managed identities: tokens as App Service and virtual machines give them.
//!
//! Libraries differ in what they read of an answer, and one of them lets the later of two fields
//! win, so `expires_on` stands behind `expires_in` wherever both are there.

use access::signing_key::NoRandomNumbers;
use broker::Wall;
use hyper::{Request, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::{IDENTITY_HEADER, answer, field};
use crate::credentials::development_issuer::{CLIENT_ID, DevelopmentIssuer, LIFE_SECONDS};
use crate::http::response::answer::Response;

/// The header by which a program says that it means the service of a virtual machine.
const METADATA: &str = "metadata";
const FORWARDED: &str = "x-forwarded-for";

/// Names by which a program chooses one of several identities.
const CLIENT_NAMES: [&str; 4] = ["client_id", "object_id", "principal_id", "mi_res_id"];

/// The answer to a request that has the header of App Service.
pub fn app_service<T>(request: &Request<T>, issuer: &DevelopmentIssuer, now: Wall) -> Response {
    let shown = request.headers().get(IDENTITY_HEADER);
    if !shown.is_some_and(|shown| issuer.admits(shown.as_bytes())) {
        let text = "X-IDENTITY-HEADER is not what `railbus identity env` prints";
        return fault(StatusCode::UNAUTHORIZED, text);
    }
    let query = request.uri().query().unwrap_or_default();
    let Some(resource) = field(query, "resource") else {
        return fault(StatusCode::BAD_REQUEST, "the resource is missing");
    };
    match token(query, &resource, issuer, now, false) {
        Ok(body) => answer::json(StatusCode::OK, body),
        Err(error) => fault(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// The answer to a request that the service of a virtual machine gets.
pub fn virtual_machine<T>(request: &Request<T>, issuer: &DevelopmentIssuer, now: Wall) -> Response {
    let headers = request.headers();
    let says_so = headers
        .get(METADATA)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    if !says_so {
        let text = "Required metadata header not specified";
        return refusal("bad_request_102", text);
    }
    if headers.contains_key(FORWARDED) {
        return refusal("bad_request", "The request was forwarded");
    }
    let query = request.uri().query().unwrap_or_default();
    let Some(resource) = field(query, "resource") else {
        return refusal("invalid_request", "The resource is missing");
    };
    match token(query, &resource, issuer, now, true) {
        Ok(body) => answer::json(StatusCode::OK, body),
        Err(error) => fault(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// A fault as App Service tells it.
pub fn fault(status: StatusCode, text: &str) -> Response {
    let body = json!({"statusCode": status.as_u16(), "message": text});
    answer::json(status, body.to_string())
}

fn refusal(error: &str, text: &str) -> Response {
    let body = json!({"error": error, "error_description": text});
    answer::json(StatusCode::BAD_REQUEST, body.to_string())
}

/// A token in JSON; all values are texts.
fn token(
    query: &str,
    resource: &str,
    issuer: &DevelopmentIssuer,
    now: Wall,
    has_life: bool,
) -> Result<String, NoRandomNumbers> {
    let client = CLIENT_NAMES.iter().find_map(|name| field(query, name));
    let client = client.unwrap_or_else(|| CLIENT_ID.to_owned());
    let token = issuer.issue(resource, &client, now)?;
    let life = LIFE_SECONDS.to_string();
    let mut fields = vec![("access_token", token.text)];
    if has_life {
        fields.push(("expires_in", life.clone()));
        fields.push(("ext_expires_in", life));
        fields.push(("not_before", token.from.to_string()));
    }
    fields.extend([
        ("expires_on", token.expires.to_string()),
        ("resource", resource.to_owned()),
        ("token_type", "Bearer".to_owned()),
        ("client_id", client),
    ]);
    Ok(object(&fields))
}

/// An object with its fields in this order, which a map does not keep.
fn object(fields: &[(&str, String)]) -> String {
    let one = |(name, value): &(&str, String)| {
        let field = Map::from_iter([((*name).to_owned(), Json::from(value.as_str()))]);
        let field = Json::Object(field).to_string();
        field.trim_matches(['{', '}']).to_owned()
    };
    let fields: Vec<_> = fields.iter().map(one).collect();
    format!("{{{}}}", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_the_order_of_its_fields() {
        let fields = [("b", "1".to_owned()), ("a", "\"{}\"".to_owned())];
        assert_eq!(object(&fields), r#"{"b":"1","a":"\"{}\""}"#);
    }
}
