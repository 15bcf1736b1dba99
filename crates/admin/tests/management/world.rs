//! World: a broker on a disk in memory, and requests that are carried to it at once.

use admin::{Exchange, ReasonPhrase, RequestContext, Response, Settings, Step};
use broker::{
    BrokerSettings, Command, ConnectionId, DeadLetterReason, ForwardError, Mono, Now, Output,
    RequestId, Shard, Tier, Wall,
};
use bytes::Bytes;
use http::Request;
use store::{MemoryDisk, NamespaceId};

/// 2026-03-01T10:00:00.123Z.
pub const START: u64 = 1_772_359_200_123;

pub struct World {
    pub settings: Settings,
    pub mono: u64,
    disk: MemoryDisk,
    shard: Shard,
    keys: u8,
}

/// A request whose path and query are these.
pub fn request(method: &str, uri: &str, body: &str) -> Request<Bytes> {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("Host", "localhost:5300");
    request
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap()
}

/// The same, of an update.
pub fn update(uri: &str, body: &str) -> Request<Bytes> {
    let mut request = request("PUT", uri, body);
    request
        .headers_mut()
        .insert("If-Match", "*".parse().unwrap());
    request
}

/// An entry with one description.
pub fn entry(kind: &str, inner: &str) -> String {
    format!(
        r#"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><{kind} xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">{inner}</{kind}></content></entry>"#
    )
}

pub fn queue(inner: &str) -> String {
    entry("QueueDescription", inner)
}

/// A response, taken apart.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub kind: String,
    pub etag: Option<String>,
    pub body: String,
}

impl Answered {
    fn of(response: &Response) -> Self {
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        Self {
            status: response.status().as_u16(),
            kind: header("content-type").unwrap_or_default(),
            etag: header("etag"),
            body: String::from_utf8(response.body().to_vec()).unwrap(),
        }
    }

    /// What is between the first tags of that name.
    pub fn value(&self, name: &str) -> Option<&str> {
        let start = self.body.find(&format!("<{name}>"))? + name.len() + 2;
        let end = self.body[start..].find(&format!("</{name}>"))?;
        Some(&self.body[start..start + end])
    }

    /// What is in the description, between the tags of that name.
    pub fn inner(&self, kind: &str) -> &str {
        let start = self.body.find(&format!("<{kind} ")).unwrap();
        let start = start + self.body[start..].find('>').unwrap() + 1;
        let end = self.body[start..].find(&format!("</{kind}>")).unwrap();
        &self.body[start..start + end]
    }

    /// The names of the elements just inside the description.
    pub fn elements(&self, kind: &str) -> Vec<String> {
        let (mut depth, mut names) = (0, Vec::new());
        for tag in self.inner(kind).split('<').skip(1) {
            let tag = tag.split('>').next().unwrap();
            if tag.starts_with('/') {
                depth -= 1;
                continue;
            }
            if depth == 0 {
                let name = tag.split([' ', '/']).next().unwrap();
                names.push(name.to_owned());
            }
            depth += i32::from(!tag.ends_with('/'));
        }
        names
    }

    pub fn is_missing(&self) -> bool {
        let title = r#"<title type="text">Publicly Listed Services</title>"#;
        self.status == 200 && self.body.starts_with("<feed ") && self.body.contains(title)
    }
}

impl World {
    pub fn new() -> Self {
        Self::of(Tier::Standard)
    }

    /// A namespace of a tier.
    pub fn of(tier: Tier) -> Self {
        let disk = MemoryDisk::new();
        disk.set_automatic(true);
        let settings = Settings {
            tier,
            ..Settings::default()
        };
        Self {
            shard: open(&disk, 0, tier),
            settings,
            mono: 0,
            disk,
            keys: 0,
        }
    }

    pub fn restart(&mut self) {
        self.shard = open(&self.disk, self.mono, self.settings.tier);
    }

    /// Carries a request to the broker.
    pub fn send(&mut self, request: &Request<Bytes>) -> Answered {
        let response = self.carry(request);
        Answered::of(&response)
    }

    fn carry(&mut self, request: &Request<Bytes>) -> Response {
        let keys = &mut self.keys;
        let context = RequestContext {
            now: Wall(START + self.mono),
            tracking: 7,
            random: &mut || {
                *keys += 1;
                [*keys; 32]
            },
        };
        let begun = Exchange::begin(&self.settings, request, context);
        self.answer(begun)
    }

    /// Carries a request to the broker whose caller may not manage; with the reason phrase.
    pub fn deny(&mut self, request: &Request<Bytes>) -> (Answered, Option<String>) {
        let now = Wall(START + self.mono);
        let begun = Exchange::begin_denied(&self.settings, request, now, 7);
        let response = self.answer(begun);
        let phrase = response.extensions().get::<ReasonPhrase>();
        let phrase = phrase.map(|phrase| phrase.0.clone());
        (Answered::of(&response), phrase)
    }

    fn answer(&mut self, begun: Result<(Exchange, broker::Order), Box<Response>>) -> Response {
        let (mut exchange, mut order) = match begun {
            Ok(begun) => begun,
            Err(response) => return *response,
        };
        loop {
            match exchange.handle_answer(self.order(order)) {
                Step::Ask(next) => order = next,
                Step::Respond(response) => return response,
            }
        }
    }

    /// Carries an order to the broker.
    pub fn order(&mut self, order: broker::Order) -> Result<broker::Answer, broker::EntityError> {
        let connection = ConnectionId(1);
        let command = Command::Administer {
            request: RequestId {
                connection,
                token: 0,
            },
            namespace: NamespaceId(0),
            order: Box::new(order),
        };
        let said = self.turn(command);
        let mut answers = said.into_iter().filter_map(|output| match output {
            Output::Administered { result, .. } => Some(*result),
            _ => None,
        });
        answers.next().unwrap()
    }

    /// One turn of the broker.
    pub fn turn(&mut self, command: Command) -> Vec<Output> {
        let mut said = Vec::new();
        let now = now(self.mono);
        self.shard
            .turn(now, &mut vec![command], &mut said, &mut Vec::new());
        said
    }

    pub fn get(&mut self, uri: &str) -> Answered {
        self.send(&request("GET", uri, ""))
    }

    pub fn put(&mut self, uri: &str, body: &str) -> Answered {
        self.send(&request("PUT", uri, body))
    }

    pub fn update(&mut self, uri: &str, body: &str) -> Answered {
        self.send(&update(uri, body))
    }

    pub fn delete(&mut self, uri: &str) -> Answered {
        self.send(&request("DELETE", uri, ""))
    }

    /// Makes something that can be made.
    pub fn make(&mut self, uri: &str, kind: &str, inner: &str) -> Answered {
        let made = self.put(uri, &entry(kind, inner));
        assert_eq!(made.status, 201, "{made:?}");
        made
    }
}

fn open(disk: &MemoryDisk, mono: u64, tier: Tier) -> Shard {
    let store = Box::new(disk.crash());
    let settings = BrokerSettings {
        tier,
        ..BrokerSettings::default()
    };
    Shard::open(settings, describe, store, now(mono)).unwrap()
}

/// Forward errors in the broker's own words.
fn describe(error: &ForwardError) -> DeadLetterReason {
    DeadLetterReason {
        reason: "ForwardError".to_owned(),
        description: error.to_string(),
    }
}

fn now(mono: u64) -> Now {
    Now {
        wall: Wall(START + mono),
        mono: Mono(mono),
    }
}
