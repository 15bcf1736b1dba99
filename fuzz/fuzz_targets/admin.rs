//! Management over HTTP: any request is refused with a status of a client's fault, or becomes an
//! order, without anything being asked.

#![no_main]

use admin::{Exchange, RequestContext, Settings};
use broker::Wall;
use bytes::Bytes;
use http::{Method, Request, Uri};
use libfuzzer_sys::fuzz_target;

// A byte for the method, then the address up to a byte that none has, then the body.
fuzz_target!(|input: &[u8]| {
    let Some((method, rest)) = input.split_first() else {
        return;
    };
    let end = rest
        .iter()
        .position(|byte| *byte == 0xff)
        .unwrap_or(rest.len());
    let (address, body) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let Ok(uri) = Uri::try_from(address) else {
        return;
    };
    let methods = [Method::PUT, Method::GET, Method::DELETE, Method::POST];
    let mut request = Request::new(Bytes::copy_from_slice(body));
    *request.method_mut() = methods[usize::from(method % 4)].clone();
    *request.uri_mut() = uri;
    if method & 4 != 0 {
        let any = http::HeaderValue::from_static("*");
        request.headers_mut().insert(http::header::IF_MATCH, any);
    }
    let context = RequestContext {
        now: Wall(0),
        tracking: 0,
        random: &mut || [0; 32],
    };
    if let Err(response) = Exchange::begin(&Settings::default(), &request, context) {
        assert!(response.status().is_client_error(), "{response:?}");
    }
});
