//! Responses: status, headers and body of each. (docs/spec/admin.md#3, #4, #8.1)

use broker::{EntityInfo, EntityKind, Listing, NamespaceInfo, Page, RuleDescription, Wall};
use bytes::Bytes;
use entity::time;
use http::header::{CONTENT_TYPE, ETAG, HOST, HeaderValue, RETRY_AFTER};
use http::{Method, Request, StatusCode};

use super::denied::{self, Denial};
use super::{ReasonPhrase, Response, TrackingId};
use crate::description::{Extent, View};
use crate::entry::{self, Content};
use crate::error::Error;
use crate::feed::{self, Feed};
use crate::query::{Query, Version, sent_version};
use crate::resource::Resource;
use crate::settings::Settings;
use crate::xml::{Element, Writer};

const ENTRY: &str = "application/atom+xml;type=entry;charset=utf-8";
const FEED: &str = "application/atom+xml;type=feed;charset=utf-8";
const ERROR: &str = "application/xml; charset=utf-8";

/// Builds the responses to one request.
#[derive(Debug)]
pub(super) struct ResponseBuilder {
    host: String,
    /// As it was sent.
    path: String,
    /// As it was sent.
    query: String,
    version: Version,
    now: Wall,
    tracking: String,
}

impl ResponseBuilder {
    pub(super) fn new<T>(request: &Request<T>, now: Wall, tracking: u128) -> Self {
        let host = request
            .headers()
            .get(HOST)
            .and_then(|host| host.to_str().ok());
        let query = request.uri().query().unwrap_or_default();
        let parsed = Query::parse(query);
        Self {
            host: host.unwrap_or("localhost").to_owned(),
            path: request.uri().path().to_owned(),
            query: query.to_owned(),
            version: parsed.map_or(Version::WithFilterCounts, |query| query.version),
            now,
            tracking: guid(tracking),
        }
    }

    /// The address of the request, with path and query as the client wrote them.
    pub(super) fn address(&self) -> String {
        match &*self.query {
            "" => self.list(),
            query => format!("{}?{query}", self.list()),
        }
    }

    pub(super) fn created(&self, settings: &Settings, info: &EntityInfo) -> Response {
        let view = self.view(settings, Extent::Created);
        let body = entry::document(Content::Entity(info), &self.address(), view);
        let response = response(StatusCode::CREATED, ENTRY, body);
        match info.queue.kind {
            EntityKind::Queue | EntityKind::Topic => response,
            EntityKind::Subscription => tagged(response, info),
        }
    }

    /// The answer to an update by the description `sent`.
    pub(super) fn updated(
        &self,
        settings: &Settings,
        info: &EntityInfo,
        sent: &Element,
    ) -> Response {
        let view = self.view(settings, Extent::Updated(sent));
        let body = entry::document(Content::Entity(info), &self.address(), view);
        tagged(response(StatusCode::OK, ENTRY, body), info)
    }

    pub(super) fn entity(&self, settings: &Settings, info: &EntityInfo) -> Response {
        let view = self.view(settings, Extent::Runtime);
        let body = entry::document(Content::Entity(info), &self.address(), view);
        tagged(response(StatusCode::OK, ENTRY, body), info)
    }

    pub(super) fn rule(
        &self,
        settings: &Settings,
        rule: &RuleDescription,
        is_new: bool,
    ) -> Response {
        let view = self.view(settings, Extent::Runtime);
        let body = entry::document(Content::Rule(rule), &self.address(), view);
        let status = if is_new {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        response(status, ENTRY, body)
    }

    pub(super) fn namespace(&self, settings: &Settings, info: NamespaceInfo) -> Response {
        let view = self.view(settings, Extent::Runtime);
        let body = entry::document(Content::Namespace(info), &self.address(), view);
        response(StatusCode::OK, ENTRY, body)
    }

    pub(super) fn entities(
        &self,
        settings: &Settings,
        of: &Listing,
        query: Query,
        page: &Page<EntityInfo>,
    ) -> Response {
        let (title, parent) = match of {
            Listing::Queues => ("Queues", self.root()),
            Listing::Topics => ("Topics", self.root()),
            Listing::Subscriptions(_) => ("Subscriptions", self.parent()),
        };
        let entries: Vec<_> = page.items.iter().map(Content::Entity).collect();
        self.feed(settings, title, &parent, query, page.more, &entries)
    }

    pub(super) fn rules(
        &self,
        settings: &Settings,
        query: Query,
        page: &Page<RuleDescription>,
    ) -> Response {
        let entries: Vec<_> = page.items.iter().map(Content::Rule).collect();
        self.feed(
            settings,
            "Rules",
            &self.parent(),
            query,
            page.more,
            &entries,
        )
    }

    fn feed(
        &self,
        settings: &Settings,
        title: &str,
        parent: &str,
        query: Query,
        more: bool,
        entries: &[Content<'_>],
    ) -> Response {
        let feed = Feed {
            title,
            url: &self.address(),
            list: &self.list(),
            parent,
            version: sent_version(&self.query),
            query,
            more,
            updated: self.now,
        };
        let body = feed::document(&feed, entries, self.view(settings, Extent::Runtime));
        response(StatusCode::OK, FEED, body)
    }

    pub(super) fn deleted(&self) -> Response {
        Response::new(Bytes::new())
    }

    /// The answer for a missing entity.
    pub(super) fn nothing(&self) -> Response {
        let body = feed::nothing(&self.tracking, self.now);
        response(StatusCode::OK, FEED, body)
    }

    /// The error itself and the id that its text has are among the response's extensions.
    pub(super) fn error(&self, error: &Error) -> Response {
        let sub_code = error.sub_code.map(|code| format!("SubCode={code}. "));
        let time = time::text(Wall(self.now.0 / 1_000 * 1_000));
        let tracking = format!("{}_G2", self.tracking);
        let detail = format!(
            "{}{} TrackingId:{tracking}, SystemTracker:{}:{}, Timestamp:{}",
            sub_code.unwrap_or_default(),
            error.text,
            self.host,
            self.path.trim_start_matches('/'),
            time.trim_end_matches('Z')
        );
        let mut writer = Writer::default();
        writer.open("Error", &[]);
        writer.number("Code", error.status.as_u16().into());
        writer.text("Detail", detail);
        writer.close("Error");
        let mut response = response(error.status, ERROR, writer.finish());
        let extensions = response.extensions_mut();
        extensions.insert(error.clone());
        extensions.insert(TrackingId(tracking));
        if error.status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// What a caller without the right is told of a resource.
    pub(super) fn denial(&self, method: &Method, resource: &Resource) -> Denial {
        let address = self.address();
        let endpoint = format!("sb{}", address.trim_start_matches("https"));
        denied::denial(method, resource, &endpoint, &self.tracking)
    }

    pub(super) fn denied(&self, denial: &Denial) -> Response {
        let mut response = self.error(&denial.error);
        if denial.is_reason_phrase {
            let mut phrase = denial.error.text.clone();
            phrase.retain(|character| matches!(character, ' '..='~'));
            response.extensions_mut().insert(ReasonPhrase(phrase));
        }
        response
    }

    fn view<'a>(&'a self, settings: &'a Settings, extent: Extent<'a>) -> View<'a> {
        View {
            settings,
            host: &self.host,
            version: self.version,
            extent,
        }
    }

    fn root(&self) -> String {
        format!("https://{}", self.host)
    }

    /// The request's URL without its query, as the client wrote it.
    fn list(&self) -> String {
        format!("{}{}", self.root(), self.path)
    }

    /// The same without a slash at its end: what is listed is found below it.
    fn parent(&self) -> String {
        self.list().trim_end_matches('/').to_owned()
    }
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// With the entity tag. (docs/spec/admin.md#4.4)
fn tagged(mut response: Response, info: &EntityInfo) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&time::tag(info.version)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn guid(number: u128) -> String {
    let digits = format!("{number:032x}");
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
    let (d, e) = (&digits[16..20], &digits[20..]);
    format!("{a}-{b}-{c}-{d}-{e}")
}
