//! `GET /$railbus/events`: a stream of overviews as Server-Sent Events, one each second.
//!
//! One task reads the overviews of the namespaces that have viewers, each once for all its viewers,
//! and runs only while there is one. A viewer that sees some entities alone has a reading of its
//! own. A viewer that does not read misses events; nothing is kept for it. A stream ends with the
//! right to see it, and after [`EVENTS`](super::viewers::EVENTS) events.
//! (docs/spec/admin.md#17)

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use tokio::time::{MissedTickBehavior, interval};

use crate::http::api::overview;
use crate::http::console::viewers::{Audience, OF_ONE, OF_OTHERS, OF_READERS, VIEWERS};
use crate::http::request::request_right::RequestRight;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::http::response::response_body::ResponseBody;
use crate::namespaces::namespace_view::NamespaceView;
use crate::server::server_state::ServerState;

/// The time from one event to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// Answers a request.
pub fn respond<T>(request: &Request<T>, server: &NamespaceView) -> Response {
    let right: Option<RequestRight> = request.extensions().get().cloned();
    let right = right.expect("the route has given it to the request");
    let audience = Audience {
        namespace: server.namespace(),
        reader: server.reader().cloned(),
    };
    let Some((events, is_first)) = server
        .viewers
        .add(audience, Box::new(move || right.holds()))
    else {
        let text = format!(
            "the broker has the maximum of {VIEWERS} streams of events, {OF_ONE} of a namespace \
             besides the default one, {OF_OTHERS} of all of these and {OF_READERS} of keys of \
             single entities"
        );
        let mut response = answer::error(StatusCode::SERVICE_UNAVAILABLE, &text);
        // A client that is turned away holds no connection of its address.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        return response;
    };
    if is_first {
        tokio::spawn(run(Arc::clone(server.server())));
    }
    let mut response = Response::new(ResponseBody::Events(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Sends events until no viewer is left or the server stops.
async fn run(server: Arc<ServerState>) {
    let mut stopping = server.stopping.clone();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return server.viewers.end(),
        }
        if !server.viewers.check_rights() {
            return;
        }
        for audience in server.viewers.audiences() {
            let reader = audience.reader.as_ref();
            let Ok(overview) = overview::read(&server, audience.namespace, reader).await else {
                return server.viewers.end();
            };
            let event = Bytes::from(format!("retry: 1000\ndata: {overview}\n\n"));
            if !server.viewers.send(&audience, &event) {
                return;
            }
        }
    }
}
