//! Console: the files of the web console, which anyone may read, and the headers that confine it.
//!
//! A browser gets the page at `/`, and its two files below `/$railbus/console/`. They are embedded
//! compressed, as every browser takes them. A program that was built without them serves a page
//! that says how to get them. (docs/spec/admin.md#17)

pub mod events;
pub mod session;
pub mod viewers;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, StatusCode};

use super::response::answer;
use super::response::answer::Response;

/// The page, its script and its style.
static FILES: Option<[&[u8]; 3]> = include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// What the page may load: its own files and the interface of this broker, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const MISSING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Railbus</title>\
<h1>Railbus is running</h1><p>This program was built without the web console. \
Run <code>cargo xtask console</code>, which needs Node.js, and build the program again.</p></html>\n";

/// One of the files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConsoleFile {
    Page,
    Script,
    Style,
}

impl ConsoleFile {
    /// The file that a request asks for. Only a browser prefers HTML at the root.
    pub fn of<T>(request: &Request<T>, path: &str) -> Option<Self> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return None;
        }
        match path {
            "/" if accepts_html(request) => Some(Self::Page),
            "/$railbus/console/console.js" => Some(Self::Script),
            "/$railbus/console/console.css" => Some(Self::Style),
            _ => None,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Page => "text/html; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Style => "text/css; charset=utf-8",
        }
    }

    /// The answer with the file.
    pub fn respond(self) -> Response {
        let mut response = match FILES {
            Some(files) => compressed(files[self as usize]),
            None if self == Self::Page => {
                Response::new(Bytes::from_static(MISSING.as_bytes()).into())
            }
            None => return answer::not_found(),
        };
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, self.kind()),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-cache"),
            (VARY, "accept"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn compressed(file: &'static [u8]) -> Response {
    let mut response = Response::new(Bytes::from_static(file).into());
    *response.status_mut() = StatusCode::OK;
    let gzip = HeaderValue::from_static("gzip");
    response.headers_mut().insert(CONTENT_ENCODING, gzip);
    response
}

fn accepts_html<T>(request: &Request<T>) -> bool {
    let accept = request.headers().get(ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, accept: &str, expected: Option<ConsoleFile>) {
        let request = Request::builder().method(method).header("accept", accept);
        let request = request.body(()).unwrap();
        assert_eq!(ConsoleFile::of(&request, path), expected, "{method} {path}");
    }

    #[test]
    fn only_a_browser_gets_the_page() {
        let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
        check("GET", "/", browser, Some(ConsoleFile::Page));
        check("GET", "/", "*/*", None);
        check("GET", "/", "application/atom+xml", None);
        check("POST", "/", browser, None);
        check("GET", "/orders", browser, None);
    }

    #[test]
    fn the_files_are_below_our_own_prefix() {
        let path = |name: &str| format!("/$railbus/console/{name}");
        check("GET", &path("console.js"), "*/*", Some(ConsoleFile::Script));
        check(
            "HEAD",
            &path("console.css"),
            "*/*",
            Some(ConsoleFile::Style),
        );
        check("GET", &path("index.html"), "*/*", None);
    }

    #[test]
    fn every_page_is_confined() {
        let response = ConsoleFile::Page.respond();
        let policy = response.headers()[CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(policy.starts_with("default-src 'none'"));
        assert!(!policy.contains("unsafe"));
    }
}
