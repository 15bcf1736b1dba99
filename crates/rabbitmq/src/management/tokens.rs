//! Tokens: a client that has logged in with a token shows the next one before the first ends.
//! (docs/spec/rabbitmq.md#6.1)

use access::jwt;
use amqp::Value;
use dialect::{LinkContext, RenewalError};

use super::request::Request;
use super::response::Response;
use super::{Operation, Step};
use crate::errors;

/// Takes the token of a request. A client that shows one that is not good loses its connection, as
/// one does whose token ends; if the keys of its issuer are not there, it may try again.
pub(super) fn renew(cx: &mut LinkContext<'_>, request: &Request) -> (Operation, Step) {
    (Operation::Router, step(cx, request))
}

fn step(cx: &mut LinkContext<'_>, request: &Request) -> Step {
    let token = match &request.body {
        Some(Value::Binary(token)) => std::str::from_utf8(token).ok(),
        body => body.as_ref().and_then(Value::as_text),
    };
    let Some(token) = token else {
        return Response::new(400, "the body is not a token").into();
    };
    if !cx.claims.has_namespace_token() {
        return Response::new(400, "the client has not logged in with a token").into();
    }
    match cx.renew_token(token) {
        Ok(()) => Response::no_content().into(),
        Err(error @ RenewalError::Token(jwt::Error::KeysNotLoaded)) => {
            Response::new(503, error.to_string()).into()
        }
        Err(error) => Step::Close(errors::bad_token(&error)),
    }
}
