//! Refusals: the lines of the log about everything that a peer was refused.
//!
//! One line for each, with what the broker knows of it: the peer, the link or the path, the
//! condition or the status, and the text. Lines of one peer are [bounded](crate::log::throttle),
//! and text of peers is made [safe to log](crate::log::log_text); a token, a key, a header or a
//! message is never given to this module. Refusals that correct clients meet too are logged at a
//! lower level.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use broker::ConnectionId;
use dialect::{ClientRefusal, Refusals, Severity, Subject};
use hyper::{Method, StatusCode, Uri};
use tracing::Level;

use crate::log::log_text::{NAME, SENTENCE, printable};
use crate::log::throttle::{Decision, Peer, Throttle, WINDOW};

/// The target of these lines, which filters of the log name (docs/metrics.md).
const TARGET: &str = "server::refusals";
/// Most characters of a method, which may be any word.
const METHOD: usize = 32;

/// Writes a line at a level that is known when it is written.
macro_rules! at {
    ($level:expr, $($line:tt)*) => {
        match $level {
            Severity::Warning => tracing::warn!(target: TARGET, $($line)*),
            Severity::Notice => tracing::info!(target: TARGET, $($line)*),
            Severity::Expected => tracing::debug!(target: TARGET, $($line)*),
        }
    };
}

/// Why an HTTP request is refused.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reason {
    pub sub_code: Option<u32>,
    pub text: String,
    /// By which the client was told to ask for it.
    pub tracking_id: Option<String>,
}

/// What all peers together were refused.
#[derive(Debug)]
pub struct RefusalLog {
    throttle: Mutex<Throttle>,
}

impl Default for RefusalLog {
    fn default() -> Self {
        Self::new(WINDOW)
    }
}

impl RefusalLog {
    fn new(window: Duration) -> Self {
        Self {
            throttle: Mutex::new(Throttle::new(window)),
        }
    }

    /// A connection is refused before it was one of AMQP, or asked anything by HTTP.
    pub fn connection(self: &Arc<Self>, peer: SocketAddr, why: impl Display) {
        if self.may_write(peer.ip(), Severity::Warning) {
            let text = printable(&why.to_string(), SENTENCE);
            tracing::warn!(target: TARGET, %peer, "a connection is refused: {text}");
        }
    }

    /// A connection is closed since its peer breaks WebSocket's protocol; `code` is the close
    /// frame's.
    pub fn websocket(self: &Arc<Self>, peer: SocketAddr, code: u16, why: impl Display) {
        if self.may_write(peer.ip(), Severity::Warning) {
            let text = printable(&why.to_string(), SENTENCE);
            tracing::warn!(target: TARGET, %peer, code, "a WebSocket connection is closed: {text}");
        }
    }

    /// Clients of AMQP were refused something.
    pub fn amqp(self: &Arc<Self>, peer: SocketAddr, id: ConnectionId, refusals: &Refusals) {
        for refused in &refusals.first {
            let severity = refused.severity();
            if self.may_write(peer.ip(), severity) {
                write_amqp(peer, id, refused, severity);
            }
        }
        if refusals.left_out > 0 {
            let mut throttle = self.lock();
            let decision = throttle.leave_out(Instant::now(), peer.ip(), refusals.left_out);
            drop(throttle);
            self.schedule_report(decision);
        }
    }

    /// An HTTP request is answered with an error. Of its target only the path is shown: tokens come
    /// in queries.
    pub fn http(
        self: &Arc<Self>,
        peer: SocketAddr,
        request: (&Method, &Uri),
        status: StatusCode,
        reason: Option<&Reason>,
        severity: Severity,
    ) {
        if !self.may_write(peer.ip(), severity) {
            return;
        }
        let text = reason.map_or_else(
            || status.canonical_reason().unwrap_or_default(),
            |reason| &reason.text,
        );
        let text = printable(text, SENTENCE);
        let (method, uri) = request;
        let method = printable(method.as_str(), METHOD);
        let path = printable(uri.path(), NAME);
        let subcode = reason.and_then(|reason| reason.sub_code);
        let tracking_id = reason.and_then(|reason| reason.tracking_id.as_deref());
        let status = status.as_u16();
        at!(
            severity,
            %peer,
            %method,
            path,
            status,
            subcode,
            tracking_id,
            "an HTTP request is refused: {text}"
        );
    }

    /// Bytes that are no HTTP request, which the library has answered.
    pub fn no_request(self: &Arc<Self>, peer: SocketAddr, why: impl Display) {
        if self.may_write(peer.ip(), Severity::Warning) {
            let text = printable(&why.to_string(), SENTENCE);
            tracing::warn!(target: TARGET, %peer, "an HTTP request is refused: {text}");
        }
    }

    /// Whether a line goes into the log. A line below the log level takes no room from other lines;
    /// at the lowest level, which is off by default, all lines are written.
    fn may_write(self: &Arc<Self>, peer: IpAddr, severity: Severity) -> bool {
        let is_seen = match severity {
            Severity::Warning => tracing::enabled!(target: TARGET, Level::WARN),
            Severity::Notice => tracing::enabled!(target: TARGET, Level::INFO),
            Severity::Expected => return true,
        };
        if !is_seen {
            return false;
        }
        let (ended, decision) = {
            let mut throttle = self.lock();
            let now = Instant::now();
            (throttle.end(now), throttle.decide(now, peer))
        };
        log_suppressed(&ended);
        self.schedule_report(decision);
        decision == Decision::Written
    }

    /// Schedules the line at the end of the window with the number of suppressed lines, also if
    /// nothing else is refused by then.
    fn schedule_report(self: &Arc<Self>, decision: Decision) {
        if decision != Decision::FirstLeftOut {
            return;
        }
        let log = Arc::clone(self);
        let window = self.lock().length();
        drop(tokio::spawn(async move {
            tokio::time::sleep(window).await;
            let ended = log.lock().end(Instant::now());
            log_suppressed(&ended);
        }));
    }

    fn lock(&self) -> MutexGuard<'_, Throttle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_suppressed(ended: &[(Peer, u64)]) {
    for (peer, left_out) in ended {
        match peer {
            Some(peer) => {
                tracing::warn!(target: TARGET, %peer, "{left_out} more refusals are left out");
            }
            None => {
                tracing::warn!(target: TARGET, "{left_out} more refusals of other peers are left out");
            }
        }
    }
}

fn write_amqp(peer: SocketAddr, id: ConnectionId, refused: &ClientRefusal, severity: Severity) {
    let shown = |name: &Option<String>| name.as_deref().map(|name| printable(name, NAME));
    let (link, entity) = (shown(&refused.link), shown(&refused.entity));
    let text = printable(&refused.text, SENTENCE);
    let what = match refused.subject {
        Subject::Connection => "a connection is closed",
        Subject::Login => "a login is refused",
        Subject::Session => "a session is ended",
        Subject::Attach => "an attach is refused",
        Subject::Link => "a link is detached",
        Subject::Token => "a token is refused",
        Subject::Request => "a request is refused",
        Subject::Message => "a message is rejected",
        Subject::Settlement => "a settlement is refused",
    };
    at!(
        severity,
        %peer,
        connection = id.0,
        link,
        entity,
        operation = refused.operation,
        condition = %refused.condition,
        "{what}: {text}"
    );
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use amqp::error::condition;
    use tracing::subscriber::DefaultGuard;

    use super::*;
    use crate::log::throttle::LINES;

    /// Where the lines go.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody has panicked").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4_711);

    impl Page {
        /// Takes what this thread logs, as text or as JSON.
        fn begin(level: Level, json: bool) -> (Self, DefaultGuard) {
            let page = Self::default();
            let writer = page.clone();
            let log = tracing_subscriber::fmt()
                .with_max_level(level)
                .with_target(false)
                .with_ansi(false)
                .without_time()
                .with_writer(move || writer.clone());
            let guard = match json {
                true => tracing::subscriber::set_default(log.json().finish()),
                false => tracing::subscriber::set_default(log.finish()),
            };
            (page, guard)
        }

        fn lines(&self) -> Vec<String> {
            let page = self.0.lock().expect("nobody has panicked");
            let page = String::from_utf8(page.clone()).expect("a log is text");
            page.lines().map(|line| line.trim().to_owned()).collect()
        }
    }

    /// The lines that `work` makes the program write at a level.
    fn lines(level: Level, json: bool, work: impl FnOnce(&Arc<RefusalLog>)) -> Vec<String> {
        let (page, _guard) = Page::begin(level, json);
        work(&Arc::default());
        page.lines()
    }

    fn refused(subject: Subject, condition: amqp::Symbol, text: &str) -> ClientRefusal {
        ClientRefusal {
            subject,
            link: Some("cbs\nWARN a link".to_owned()),
            entity: Some("orders".to_owned()),
            operation: None,
            condition,
            text: text.to_owned(),
        }
    }

    fn log_times(log: &Arc<RefusalLog>, refused: &ClientRefusal, times: usize) {
        let refusals = Refusals {
            first: vec![refused.clone(); times],
            left_out: 0,
        };
        log.amqp(PEER, ConnectionId(7), &refusals);
    }

    #[test]
    fn a_line_says_what_is_refused_to_whom_and_why() {
        let refused = refused(Subject::Attach, condition::NOT_FOUND, "It is gone.");
        let said = lines(Level::WARN, false, |log| log_times(log, &refused, 1));
        let line = "WARN an attach is refused: It is gone. peer=127.0.0.1:4711 connection=7 \
                    link=\"cbs\\\\nWARN a link\" entity=\"orders\" condition=amqp:not-found";
        assert_eq!(said, [line]);
    }

    #[test]
    fn in_json_each_field_is_one() {
        let refused = ClientRefusal {
            operation: Some("com.microsoft:peek-message"),
            link: None,
            ..refused(
                Subject::Request,
                condition::ARGUMENT_ERROR,
                "No \"number\".",
            )
        };
        let said = lines(Level::WARN, true, |log| log_times(log, &refused, 1));
        let json: serde_json::Value = serde_json::from_str(&said[0]).expect("it is JSON");
        let fields = serde_json::json!({
            "message": "a request is refused: No \"number\".",
            "peer": "127.0.0.1:4711", "connection": 7, "entity": "orders",
            "operation": "com.microsoft:peek-message", "condition": "com.microsoft:argument-error",
        });
        assert_eq!(json["fields"], fields);
        assert_eq!(json["level"], "WARN");
    }

    #[test]
    fn what_matters_less_is_said_at_lower_levels() {
        let idle = refused(Subject::Connection, condition::CONNECTION_FORCED, "Idle.");
        let time_out = refused(Subject::Attach, condition::TIMEOUT, "No session.");
        let both = |log: &Arc<RefusalLog>| {
            log_times(log, &idle, 1);
            log_times(log, &time_out, 1);
        };
        assert!(lines(Level::WARN, false, both).is_empty());
        let said = lines(Level::INFO, false, both);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("INFO a connection is closed: Idle."),
            "{said:?}"
        );
        let said = lines(Level::DEBUG, false, both);
        assert!(
            said[1].starts_with("DEBUG an attach is refused"),
            "{said:?}"
        );
    }

    #[tokio::test]
    async fn a_peer_has_so_many_lines() {
        let refused = refused(Subject::Attach, condition::NOT_FOUND, "It is gone.");
        let said = lines(Level::WARN, false, |log| log_times(log, &refused, 100));
        assert_eq!(said.len(), LINES as usize);
    }

    #[tokio::test]
    async fn suppressed_lines_are_reported_though_nothing_else_is_refused() {
        let refused = refused(Subject::Attach, condition::NOT_FOUND, "It is gone.");
        let (page, _guard) = Page::begin(Level::WARN, false);
        let log = Arc::new(RefusalLog::new(Duration::from_millis(50)));
        let refusals = Refusals {
            first: vec![refused; 100],
            left_out: 5,
        };
        log.amqp(PEER, ConnectionId(7), &refusals);
        // On a slow machine it may be several windows.
        let told = |line: &String| {
            let (_, behind) = line.split_once("WARN ")?;
            let (count, _) = behind.split_once(" more refusals are left out")?;
            count.parse::<usize>().ok()
        };
        let all = || {
            let lines = page.lines();
            let written = lines.iter().filter(|line| line.contains("It is gone."));
            written.count() + lines.iter().filter_map(told).sum::<usize>()
        };
        while all() < 105 {
            tokio::task::yield_now().await;
        }
        assert_eq!(all(), 105);
    }

    #[test]
    fn suppressed_levels_take_no_line_from_other_refusals() {
        let idle = refused(Subject::Connection, condition::CONNECTION_FORCED, "Idle.");
        let gone = refused(Subject::Attach, condition::NOT_FOUND, "It is gone.");
        let said = lines(Level::WARN, false, |log| {
            log_times(log, &idle, 100);
            log_times(log, &gone, 1);
        });
        assert_eq!(said.len(), 1);
    }

    fn http(target: &'static str, status: StatusCode, reason: Option<&Reason>) -> Vec<String> {
        let (method, uri) = (Method::GET, Uri::from_static(target));
        let severity = Severity::Warning;
        lines(Level::WARN, false, |log| {
            log.http(PEER, (&method, &uri), status, reason, severity);
        })
    }

    #[test]
    fn a_request_of_http_is_shown_without_its_query() {
        let reason = Reason {
            sub_code: Some(40_103),
            text: "InvalidSignature: no.".to_owned(),
            tracking_id: Some("0000-7_G2".to_owned()),
        };
        let target = "/orders?token=hush&sig=hush";
        let said = http(target, StatusCode::UNAUTHORIZED, Some(&reason));
        let line = "WARN an HTTP request is refused: InvalidSignature: no. peer=127.0.0.1:4711 \
                    method=GET path=\"/orders\" status=401 subcode=40103 tracking_id=\"0000-7_G2\"";
        assert_eq!(said, [line]);
    }

    #[test]
    fn a_request_without_a_reason_is_refused_in_the_words_of_its_status() {
        let said = http("http://user:hush@host/", StatusCode::NOT_FOUND, None);
        let line = "WARN an HTTP request is refused: Not Found peer=127.0.0.1:4711 method=GET \
                    path=\"/\" status=404";
        assert_eq!(said, [line]);
    }

    #[test]
    fn a_connection_beyond_the_limits_is_refused_with_the_limit() {
        let said = lines(Level::WARN, false, |log| {
            log.connection(PEER, "it is not within TLS");
            log.no_request(PEER, "invalid HTTP method parsed");
        });
        let expected = [
            "WARN a connection is refused: it is not within TLS peer=127.0.0.1:4711",
            "WARN an HTTP request is refused: invalid HTTP method parsed peer=127.0.0.1:4711",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn suppressed_lines_are_reported_by_peer_and_for_all_other_peers() {
        let said = lines(Level::WARN, false, |_| {
            log_suppressed(&[(Some(PEER.ip()), 7), (None, 5)]);
        });
        let expected = [
            "WARN 7 more refusals are left out peer=127.0.0.1",
            "WARN 5 more refusals of other peers are left out",
        ];
        assert_eq!(said, expected);
    }
}
