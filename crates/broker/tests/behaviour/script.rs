//! Scripts: one shard on a memory store, driven by lines of text under virtual time.
//!
//! Each line is a time and a command; what the shard says comes out as lines. A time with a `!`
//! comes before the shard has noticed it. Reads are made at once and answered at once, unless the
//! script says `reads late` (or `reads fresh`, if they see what was written meanwhile). At the end
//! the store must be in good order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use broker::{
    Broker, BrokerSettings, Browsed, Command, ConnectionId, DeadLetterReason, Delivery, Ensured,
    ForwardError, Incoming, LockToken, MessageState, Mono, Now, Operation, Order, Output,
    ReadRequest, ReceiveMode, ReceiverId, RefusalReport, RequestId, Shard, Subqueue, SubqueueId,
    TransactionId, Wall,
};
use bytes::{Bytes, BytesMut};
use expect_test::Expect;
use store::image::MessageKey;
use store::{EntityId, Index, MemoryDisk, Query, SequenceNumber};

use crate::world::administer;

/// The wall clock when a script begins.
pub const START: u64 = 1_700_000_000_000;
const QUEUE: EntityId = EntityId(1);
const NOWHERE: EntityId = EntityId(99);

mod activity;
mod answering;
mod asked;
mod attaching;
pub mod audits;
mod client_affine;
mod clock;
mod deleting;
mod entities;
mod limits;
mod lineage;
mod nodes;
mod outcome;
mod policies;
mod redriving;
mod restarting;
mod routers;
mod sessions;
mod snapshots;
mod topics;

use asked::asked;
use clock::Clock;
use entities::queue_settings;
pub use sessions::audit_sessions;

/// Forward errors in the broker's own words: the variant's name, and its text.
pub fn describe(error: &ForwardError) -> DeadLetterReason {
    let variant = format!("{error:?}");
    let name = variant.split(' ').next();
    DeadLetterReason {
        reason: name.unwrap_or_default().to_owned(),
        description: error.to_string(),
    }
}

/// Runs a script with the default settings.
#[allow(
    clippy::needless_pass_by_value,
    reason = "an expectation is written in place"
)]
pub fn check(script: &str, expected: Expect) {
    check_with(BrokerSettings::default(), script, expected);
}

/// Runs a script.
#[allow(
    clippy::needless_pass_by_value,
    reason = "an expectation is written in place"
)]
pub fn check_with(settings: BrokerSettings, script: &str, expected: Expect) {
    expected.assert_eq(&run(settings, script));
}

/// Runs a script and leaves out the first lines of what was said.
#[allow(
    clippy::needless_pass_by_value,
    reason = "an expectation is written in place"
)]
pub fn check_after(settings: BrokerSettings, script: &str, skip: usize, expected: Expect) {
    let said = run(settings, script);
    let rest: String = said.split_inclusive('\n').skip(skip).collect();
    expected.assert_eq(&rest);
}

/// What is said when a script runs: the same whether the broker's time passes, or that of its
/// namespace alone.
pub fn run(settings: BrokerSettings, script: &str) -> String {
    let said = run_by(Clock::Broker, settings.clone(), script);
    // A fork has a clock of its own.
    if !script.contains("fork") {
        let by_namespace = run_by(Clock::OF_NAMESPACE, settings, script);
        assert_eq!(by_namespace, said, "by the clock of the namespace");
    }
    said
}

fn run_by(clock: Clock, settings: BrokerSettings, script: &str) -> String {
    let mut stage = Stage::new(settings, clock);
    for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
        stage.line(line);
    }
    stage.finish();
    stage.said
}

struct Stage {
    settings: BrokerSettings,
    disk: MemoryDisk,
    shard: Shard,
    mono: u64,
    wall_offset: i64,
    clock: Clock,
    /// Whether there has been a line: a script that makes no queue gets one.
    has_begun: bool,
    late_reads: bool,
    /// Late reads see what was written until they are answered.
    fresh_reads: bool,
    /// Reads that were made and not answered.
    waiting: Vec<(Query, Command)>,
    tokens: BTreeMap<(String, u64), LockToken>,
    payloads: BTreeMap<(String, u64), Bytes>,
    /// Transactions by name, with their connections.
    transactions: BTreeMap<String, (ConnectionId, TransactionId)>,
    requests: Vec<String>,
    nodes: nodes::Names,
    said: String,
}

impl Stage {
    fn new(settings: BrokerSettings, clock: Clock) -> Self {
        let disk = MemoryDisk::new();
        disk.set_automatic(true);
        let now = Now {
            wall: Wall(START),
            mono: Mono(0),
        };
        let shard = Shard::open(settings.clone(), describe, Box::new(disk.open()), now).unwrap();
        Self {
            settings,
            disk,
            shard,
            mono: 0,
            wall_offset: 0,
            clock,
            has_begun: false,
            late_reads: false,
            fresh_reads: false,
            waiting: Vec::new(),
            tokens: BTreeMap::new(),
            payloads: BTreeMap::new(),
            transactions: BTreeMap::new(),
            requests: Vec::new(),
            nodes: nodes::Names::default(),
            said: String::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let at = words.next().unwrap();
        match at.strip_prefix('!') {
            Some(at) => self.mono = millis(at),
            None => self.advance(millis(at)),
        }
        let words: Vec<&str> = words.collect();
        if !std::mem::replace(&mut self.has_begun, true) && !["queue", "topic"].contains(&words[0])
        {
            self.ensure(&[]);
        }
        self.command(words[0], &words[1..]);
    }

    /// Lets time pass, stopping wherever the shard wants to be told.
    fn advance(&mut self, to: u64) {
        assert!(to >= self.mono, "time goes on in a script");
        while let Some(at) = self.next_deadline().filter(|at| *at <= to) {
            self.mono = self.mono.max(at);
            self.turn(Vec::new());
        }
        self.mono = to;
    }

    fn command(&mut self, verb: &str, args: &[&str]) {
        match verb {
            "wait" => {}
            "queue" => self.ensure(args),
            "own" => self.own(args),
            "remove" => self.remove(args),
            "policy" => self.policy(args),
            "clear-policy" => self.clear_policy(args),
            "applied" => self.applied(args),
            "info" => self.info(args),
            "counts" => self.counts(args),
            "queues" => self.queues(),
            "send" => self.send(args),
            "topic" => self.topic(args),
            "subscription" => self.subscription(args),
            "rule" => self.rule(args),
            "remove-rule" => self.remove_rule(args),
            "rules" => self.rules(args),
            "router" | "unroute" | "bind" | "unbind" | "bindings" | "publish" => {
                self.router_command(verb, args);
            }
            "attach" => self.attach(args),
            "subscribe" => self.subscribe(args),
            "unsubscribe" => self.unsubscribe(args),
            "limit" => self.limit(args),
            "visit" => self.visit(args),
            "detach" | "lose" | "disconnect" => self.leave(verb, args),
            "redeclare" => self.redeclare(),
            "written" => self.turn(vec![Command::Written {
                connection: receiver(args[0]).connection,
                bytes: args[1].parse().unwrap(),
            }]),
            "complete" | "abandon" | "defer" | "reject" | "release" | "undelivered" => {
                self.settle(verb, args);
            }
            "redrive" => self.redrive(args),
            "renew" => self.renew(args),
            "peek" => self.peek(args),
            "peek-due" => self.peek_due(args),
            "fetch" => self.fetch(args),
            "cancel" => self.cancel(args),
            "delete" => self.delete(args),
            "declare" => self.declare(args),
            "in" => self.enlist(args),
            "fail-transaction" => self.fail_transaction(args),
            "commit" | "roll-back" => self.discharge(verb, args),
            "end" => self.turn(vec![Command::EndTransactions {
                connection: receiver(args[0]).connection,
                coordinator: receiver(args[0]).link,
            }]),
            "counters" => self.counters(args),
            "trace" => self.trace(args),
            "activity" => self.activity(args),
            "jump" => self.wall_offset += signed_millis(args[0]),
            "reads" => {
                self.late_reads = args == ["late"] || args == ["fresh"];
                self.fresh_reads = args == ["fresh"];
            }
            "answer" => self.answer(args),
            "asked" => self.asked(),
            "blocks" => self.blocks(),
            "rows" => self.rows(),
            "history" => self.history(),
            "disk" => self.disk.set_nearly_full(args == ["full"]),
            "sync" => self.sync(args),
            "limits" => self.limits(args),
            "make" | "open" | "close" | "dynamic" => self.node_command(verb, args),
            "snapshot" | "restore" | "drop" | "fork" | "snapshots" => {
                self.snapshot_command(verb, args);
            }
            "fail" => self.disk.fail("the disk is on fire"),
            "restart" => self.restart(args == ["older"]),
            other => self.session_command(other, args),
        }
    }

    fn ensure(&mut self, args: &[&str]) {
        let settings = queue_settings(args);
        let request = self.request("queue");
        self.turn(vec![administer(
            request,
            Order::ensure(vec![Ensured::Queue {
                path: named(args, "name=").unwrap_or("q").to_owned(),
                settings,
            }]),
        )]);
    }

    /// The queue that `in=` names; the first one otherwise.
    fn entity(&self, args: &[&str]) -> EntityId {
        named(args, "in=").map_or(QUEUE, |name| self.named_entity(name))
    }

    fn named_entity(&self, name: &str) -> EntityId {
        if let Some(node) = self.nodes.get(name) {
            return node;
        }
        let mut queues = self.shard.broker.queues();
        let found = queues.find(|queue| queue.path == name);
        found.map_or(NOWHERE, |queue| queue.id)
    }

    fn send(&mut self, args: &[&str]) {
        let entity = self.entity(args);
        let request = self.request("send");
        self.turn(vec![Command::Send {
            request,
            entity,
            messages: messages(args),
        }]);
    }

    fn attach(&mut self, args: &[&str]) {
        let command = attaching::command(args, self.entity(args));
        self.turn(vec![command]);
    }

    /// A receiver comes and goes in one turn.
    fn visit(&mut self, args: &[&str]) {
        let attach = attaching::command(args, self.entity(args));
        let receiver = receiver(args[0]);
        self.turn(vec![attach, Command::Detach { receiver }]);
    }

    fn declare(&mut self, args: &[&str]) {
        let request = self.request_of(args[1], &format!("declare {}", args[0]));
        self.turn(vec![Command::Declare {
            request,
            namespace: store::NamespaceId(0),
            coordinator: receiver(args[1]).link,
        }]);
    }

    /// The transaction with a name; one that never was otherwise.
    fn transaction(&self, name: &str) -> (ConnectionId, TransactionId) {
        let found = self.transactions.get(name).copied();
        found.unwrap_or((ConnectionId(1), TransactionId(1)))
    }

    /// A request about a transaction: by its own connection, or another that is named.
    fn request_within(&mut self, args: &[&str], what: &str) -> (RequestId, TransactionId) {
        let (connection, transaction) = self.transaction(args[0]);
        let by = args.iter().find_map(|arg| arg.strip_prefix("by="));
        let by = by.map_or_else(|| format!("r{}", connection.0), str::to_owned);
        (self.request_of(&by, what), transaction)
    }

    fn enlist(&mut self, args: &[&str]) {
        let what = format!("in {}", args.join(" "));
        let (request, transaction) = self.request_within(args, &what);
        let (verb, rest) = (args[1], &args[2..]);
        let operation = if verb == "send" {
            Operation::Send {
                entity: self.entity(rest),
                messages: messages(rest),
            }
        } else if verb == "set-state" {
            Operation::SetSessionState {
                entity: self.entity(rest),
                session: rest[0].to_owned().into(),
                state: sessions::state_of(rest.get(1).filter(|arg| !arg.contains('='))),
            }
        } else if verb == "cancel" {
            Operation::Cancel {
                entity: self.entity(rest),
                numbers: numbers(rest).into_iter().map(SequenceNumber).collect(),
            }
        } else {
            let tokens = numbers(rest).into_iter();
            Operation::Settle {
                subqueue: SubqueueId {
                    entity: self.entity(rest),
                    subqueue: subqueue(rest),
                },
                session: None,
                tokens: tokens.map(|number| self.token(rest[0], number)).collect(),
                outcome: outcome::outcome(verb, rest),
                on_rollback: named(rest, "otherwise=").map(|verb| outcome::outcome(verb, &[])),
            }
        };
        self.turn(vec![Command::Enlist {
            request,
            transaction,
            operation: Box::new(operation),
            scope: named(args, "scope=").map(|name| self.named_entity(name)),
            refusal: if args.contains(&"unheard") {
                RefusalReport::Unreported
            } else if args.contains(&"misread") {
                RefusalReport::Misread
            } else {
                RefusalReport::Reported
            },
        }]);
    }

    fn fail_transaction(&mut self, args: &[&str]) {
        let (connection, transaction) = self.transaction(args[0]);
        self.turn(vec![Command::FailTransaction {
            connection,
            transaction,
            reason: args[1..].join(" "),
        }]);
    }

    fn discharge(&mut self, verb: &str, args: &[&str]) {
        let what = format!("{verb} {}", args.join(" "));
        let (request, transaction) = self.request_within(args, &what);
        self.turn(vec![Command::Discharge {
            request,
            transaction,
            fail: verb == "roll-back",
        }]);
    }

    fn limit(&mut self, args: &[&str]) {
        self.turn(vec![Command::Credit {
            receiver: receiver(args[0]),
            limit: args[1].parse().unwrap(),
            drain: args.contains(&"drain"),
        }]);
    }

    /// The token that a receiver was given last for a number; one that was never given otherwise.
    fn token(&self, holder: &str, number: u64) -> LockToken {
        let key = (holder.to_owned(), number);
        self.tokens.get(&key).copied().unwrap_or(LockToken(1))
    }

    fn renew(&mut self, args: &[&str]) {
        let tokens = numbers(args).into_iter();
        let tokens = tokens.map(|number| self.token(args[0], number)).collect();
        let request = self.request(&format!("renew {}", args.join(" ")));
        self.turn(vec![Command::Renew {
            request,
            subqueue: SubqueueId {
                entity: self.entity(args),
                subqueue: subqueue(args),
            },
            tokens,
        }]);
    }

    fn peek(&mut self, args: &[&str]) {
        let request = self.request("peek");
        let bytes = args.iter().find_map(|a| a.strip_prefix("bytes="));
        self.turn(vec![Command::Peek {
            request,
            subqueue: SubqueueId {
                entity: self.entity(args),
                subqueue: subqueue(args),
            },
            state: named(args, "state=").map(|state| match state {
                "active" => MessageState::Active,
                "scheduled" => MessageState::Scheduled,
                _ => MessageState::Deferred,
            }),
            from: SequenceNumber(args[0].parse().unwrap()),
            count: args[1].parse().unwrap(),
            max_bytes: bytes.map_or(1 << 20, |bytes| bytes.parse().unwrap()),
        }]);
    }

    /// From a moment and a number on.
    fn peek_due(&mut self, args: &[&str]) {
        let request = self.request("peek");
        let number = SequenceNumber(args[1].parse().unwrap());
        self.turn(vec![Command::PeekSchedule {
            request,
            entity: self.entity(args),
            from: (Wall(START + millis(args[0])), number),
            count: args[2].parse().unwrap(),
            max_bytes: named(args, "bytes=").map_or(1 << 20, |bytes| bytes.parse().unwrap()),
        }]);
    }

    fn fetch(&mut self, args: &[&str]) {
        let request = self.request_of(args[0], &format!("fetch {}", args.join(" ")));
        self.turn(vec![Command::ReceiveDeferred {
            request,
            session: named(args, "session=").map(|it| it.to_owned().into()),
            subqueue: SubqueueId {
                entity: self.entity(args),
                subqueue: subqueue(args),
            },
            numbers: numbers(args).into_iter().map(SequenceNumber).collect(),
            mode: mode(args),
            max_bytes: if args.contains(&"little") { 4 } else { 1 << 20 },
        }]);
    }

    fn cancel(&mut self, args: &[&str]) {
        let request = self.request(&format!("cancel {}", args.join(" ")));
        self.turn(vec![Command::CancelScheduled {
            request,
            entity: self.entity(args),
            numbers: numbers(args).into_iter().map(SequenceNumber).collect(),
        }]);
    }

    fn counters(&mut self, args: &[&str]) {
        let info = self.shard.broker.queue(self.entity(args)).unwrap();
        let mut text = format!(
            "active {} dead {} deferred {} bytes {}",
            info.active, info.dead_letter, info.deferred, info.bytes
        );
        if info.scheduled > 0 {
            write!(text, " scheduled {}", info.scheduled).unwrap();
        }
        if info.schedule_lag_ms > 0 {
            write!(text, " lag {}", time(info.schedule_lag_ms)).unwrap();
        }
        self.tell(&text);
    }

    fn sync(&mut self, args: &[&str]) {
        match args {
            ["manual"] => self.disk.set_automatic(false),
            _ => {
                self.disk.sync_all();
                self.turn(Vec::new());
            }
        }
    }

    fn turn(&mut self, mut commands: Vec<Command>) {
        commands.splice(..0, self.advance_clock());
        loop {
            let (mut said, mut asked) = (Vec::new(), Vec::new());
            self.shard
                .turn(self.broker_now(), &mut commands, &mut said, &mut asked);
            for output in said {
                self.hear(output);
            }
            for request in asked {
                self.read(request);
            }
            if self.late_reads || self.waiting.is_empty() {
                return;
            }
            commands = self.answers();
        }
    }

    /// Reads at once: the answer may be old when it is given.
    fn read(&mut self, request: ReadRequest) {
        let reader = self.shard.store().reader();
        let found = reader.read(request.after, &request.query);
        let loaded = Command::Loaded {
            read: request.read,
            found,
        };
        self.waiting.push((request.query, loaded));
    }

    fn asked(&mut self) {
        let asked: Vec<String> = self.waiting.iter().map(|(query, _)| asked(query)).collect();
        self.tell(&format!("asked for {}", asked.join(", ")));
    }

    /// How many blocks have a deadline in the store.
    fn blocks(&mut self) {
        let blocks = self.disk.with_current(|image| image.expiries.len());
        self.tell(&format!("blocks with a deadline: {blocks}"));
    }

    /// How many rows and bodies the store holds.
    fn rows(&mut self) {
        let held = |image: &store::Image| (image.messages.len(), image.bodies.len());
        let (rows, bodies) = self.disk.with_durable(held);
        self.tell(&format!("{rows} rows and {bodies} bodies"));
    }

    /// How many message ids the store remembers, and in how many periods.
    fn history(&mut self) {
        let (ids, periods) = self.disk.with_current(|image| {
            let indexes = image.entries.keys().map(|(_, of, _)| *of);
            let periods = image.heads.values().map(|head| head.periods.len());
            let ids = indexes.filter(|of| *of == Index::DuplicateId).count();
            (ids, periods.sum::<usize>())
        });
        self.tell(&format!("history of {ids} ids in {periods} periods"));
    }

    fn request(&mut self, what: &str) -> RequestId {
        self.request_of("r0", what)
    }

    fn request_of(&mut self, who: &str, what: &str) -> RequestId {
        self.requests.push(what.to_owned());
        RequestId {
            connection: receiver(who).connection,
            token: self.requests.len() as u64 - 1,
        }
    }

    fn what(&self, request: RequestId) -> String {
        self.requests[usize::try_from(request.token).unwrap()].clone()
    }

    fn hear(&mut self, output: Output) {
        let text = match output {
            Output::Administered { request, result }
                if let Some(text) = routers::answered(&self.what(request), &result) =>
            {
                text
            }
            Output::Administered { request, result }
                if let Some(text) = snapshots::answered(&self.what(request), &result) =>
            {
                text
            }
            Output::Administered { request, result } => {
                match (self.what(request).as_str(), *result) {
                    ("remove", Ok(_)) => "removed".to_owned(),
                    ("remove", Err(error)) => format!("not removed: {error}"),
                    (what, Ok(_)) if what.starts_with("unsubscribe") => format!("{what}: done"),
                    (_, Ok(_)) => return,
                    (what, Err(error)) if what.starts_with("unsubscribe") => {
                        format!("{what}: {error}")
                    }
                    (what, Err(error)) if what.contains("policy") => format!("{what}: {error}"),
                    (_, Err(error)) => format!("queue: {}", error.cause()),
                }
            }
            Output::Sent {
                request, result, ..
            } if self.what(request).starts_with("in ") => match result {
                Ok(SequenceNumber(0)) => format!("{}: held", self.what(request)),
                Ok(first) => format!("{}: held from {first}", self.what(request)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Declared { request, result } => match result {
                Ok(transaction) => {
                    let name = self.what(request).replace("declare ", "");
                    let known = (request.connection, transaction);
                    self.transactions.insert(name, known);
                    format!("{}: done", self.what(request))
                }
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Discharged { request, result } => match result {
                Ok(()) => format!("{}: done", self.what(request)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::TimedOut {
                connection,
                transaction,
            } => {
                let known = (connection, transaction);
                let mut names = self.transactions.iter();
                let (name, _) = names.find(|(_, other)| **other == known).unwrap();
                format!("r{} hears that {name} timed out", connection.0)
            }
            Output::Sent {
                result, duplicates, ..
            } => match result {
                Ok(first) if duplicates.is_empty() => format!("sent from {first}"),
                Ok(first) => {
                    let known = duplicates.iter().map(|(_, number)| number.to_string());
                    let known: Vec<_> = known.collect();
                    format!("sent from {first}, known as {}", known.join(" "))
                }
                Err(error) => format!("send refused: {error}"),
            },
            Output::Deliver { receiver, delivery } => {
                let name = name_of(receiver);
                self.remember(&name, &delivery);
                format!("{name} gets {}", self.delivery(&delivery))
            }
            Output::DeliveryTimedOut { receiver, token } => {
                let number = self.number_of(token);
                format!("{} has held #{number} for too long", name_of(receiver))
            }
            Output::LockEnded {
                connection,
                token,
                result,
            } => {
                let number = self.number_of(token);
                let end = outcome::end(&result);
                format!("r{} hears that the lock of #{number} {end}", connection.0)
            }
            Output::Activity { receiver, active } => attaching::told(&name_of(receiver), active),
            Output::Drained { receiver } => format!("{} drained", name_of(receiver)),
            Output::Settled { request, result } => match result {
                Ok(()) => format!("{}: done", self.what(request)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Renewed { request, result } => match result {
                Ok(ms) => format!("{}: until {}", self.what(request), time(self.mono + ms)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Browsed { request, result } => match result {
                Ok(messages) => {
                    let shown: Vec<_> = messages.iter().map(activity::peeked).collect();
                    format!("{}: {}", self.what(request), shown.join(", "))
                }
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Deferred { request, result } => {
                let name = format!("r{}", request.connection.0);
                match result {
                    Ok(deliveries) => {
                        deliveries.iter().for_each(|d| self.remember(&name, d));
                        let gets: Vec<_> = deliveries.iter().map(|d| self.delivery(d)).collect();
                        format!("{}: {}", self.what(request), gets.join(", "))
                    }
                    Err(error) => format!("{}: {error}", self.what(request)),
                }
            }
            Output::Cancelled { request, result } => match result {
                Ok(()) => format!("{}: done", self.what(request)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Deleted { request, result } => match result {
                Ok(count) => format!("{}: {count}", self.what(request)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Evicted { receiver, reason } => {
                format!("{} evicted: {reason}", name_of(receiver))
            }
            Output::RulesChanged(..) => return,
            Output::EntityChanged(change) if change.settings.is_some() => return,
            Output::EntityChanged(change) => format!("{} is gone", change.path),
            Output::Subscribed { receiver, result } => {
                client_affine::subscribed(&name_of(receiver), &result)
            }
            Output::NodeOpened { link, result } => self.hear_node(link, result),
            Output::NodeClosed { link } => format!("{} loses its node", nodes::name_of(link)),
            other => match self.hear_rules(&other).or_else(|| self.published(&other)) {
                Some(text) => text,
                None => self.hear_session(other),
            },
        };
        self.tell(&text);
    }

    fn remember(&mut self, name: &str, delivery: &Delivery) {
        let key = (name.to_owned(), delivery.message.number.0);
        let payload = delivery.message.payload.clone();
        self.payloads.insert(key.clone(), payload);
        self.tokens.insert(key, delivery.token);
    }

    fn delivery(&self, delivery: &Delivery) -> String {
        let until = match delivery.lock_ms() {
            Some(u64::MAX) => " until it goes".to_owned(),
            Some(ms) => format!(" until {}", time(self.mono + ms)),
            None => String::new(),
        };
        format!("{}{until}", browsed(&delivery.message))
    }

    fn tell(&mut self, text: &str) {
        writeln!(self.said, "{} {text}", time(self.mono)).unwrap();
    }

    fn finish(&mut self) {
        if self.late_reads {
            self.late_reads = false;
            self.answer(&[]);
        }
        self.audit();
    }

    /// The store is in good order, and the counters are those of a recount.
    fn audit(&self) {
        assert_eq!(self.disk.violations(), vec![]);
        self.disk.with_durable(|image| {
            let borrows = |key: &MessageKey| {
                let row = &image.messages[key];
                self.shard.broker.borrows(key.0, row)
            };
            assert_eq!(image.audit_with(borrows), vec![]);
        });
        audits::expiries(&self.disk);
        audits::schedule(&self.disk);
        audit_sessions(&self.disk);
    }
}

/// A broker must be able to move between threads with its shard.
#[test]
fn a_shard_can_be_sent_to_another_thread() {
    fn check<T: Send>() {}
    check::<Shard>();
    check::<Broker>();
}

fn browsed(message: &Browsed) -> String {
    let mut text = format!("{} {}", message.number, topics::shown(&message.payload));
    if message.delivery_count > 0 {
        write!(text, " count {}", message.delivery_count).unwrap();
    }
    if message.state != broker::MessageState::Active {
        write!(text, " {:?}", message.state).unwrap();
    }
    for (key, value) in message.changes().iter().chain(message.annotations()) {
        write!(text, " {key}={:?}", text_of(value)).unwrap();
    }
    if message.enqueued_number != message.number {
        write!(text, " first {}", message.enqueued_number).unwrap();
    }
    // Of what has come by a router; of what was forwarded the source is told.
    let mut annotations = message.annotations().iter();
    let is_routed = annotations.any(|(key, _)| key == broker::ROUTER);
    let deaths = message.deaths().filter(|_| is_routed);
    for death in deaths.iter().flat_map(|deaths| &deaths.list) {
        let (queue, reason, count) = (&death.queue, death.reason, death.count);
        write!(text, " died in {queue} {reason:?} {count}").unwrap();
    }
    if let Some(source) = message.dead_letter_source() {
        write!(text, " from dead letters of {source}").unwrap();
    }
    if let Some(expires) = message.expires {
        write!(text, " expires {}", time(expires.0 - START)).unwrap();
    }
    text
}

/// The text of a string in its smallest encoding.
fn text_of(value: &Bytes) -> String {
    assert_eq!(value[0], 0xa1, "a short string");
    String::from_utf8_lossy(&value[2..]).into_owned()
}

/// Messages as a script writes them: `text`, `text*times`, `text@id`, `text+due`,
/// `text:session`.
fn messages(args: &[&str]) -> Vec<Incoming> {
    let ttl_ms = named(args, "ttl=").map(millis);
    let transfer_to = named(args, "to=").map(Arc::from);
    let priority = named(args, "priority=").map(|level| level.parse().unwrap());
    let encoded = args.contains(&"encoded");
    let words = ["encoded", "unheard", "misread"];
    let is_option = |arg: &str| arg.contains('=') || words.contains(&arg);
    let mut messages = Vec::new();
    for text in args.iter().filter(|arg| !is_option(arg)) {
        let (text, times) = text.split_once('*').unwrap_or((text, "1"));
        let (text, id) = text.split_once('@').unwrap_or((text, ""));
        // What comes after a + is when it is scheduled for, counted from the script's begin.
        let (text, due) = text.split_once('+').unwrap_or((text, "0s"));
        let scheduled = Some(Wall(START + millis(due))).filter(|_| due != "0s");
        for _ in 0..times.parse::<usize>().unwrap() {
            let (text, session) = text.split_once(':').unwrap_or((text, ""));
            let session_id = (!session.is_empty()).then(|| Bytes::from(session.to_owned()));
            let message_id = (!id.is_empty()).then(|| encoded_text(id));
            let payload = match encoded {
                true => encoded_message(text, id, session, args),
                false => Bytes::from(text.to_owned()),
            };
            messages.push(Incoming {
                payload,
                message_id,
                session_id,
                ttl_ms,
                priority,
                scheduled,
                transfer_to: transfer_to.clone(),
                ..Incoming::default()
            });
        }
    }
    messages
}

/// `r1` is link 0 of connection 1, `r1/2` link 2 of the same.
fn receiver(name: &str) -> ReceiverId {
    let name = name.strip_prefix('r').unwrap();
    let (connection, link) = name.split_once('/').unwrap_or((name, "0"));
    ReceiverId {
        connection: ConnectionId(connection.parse().unwrap()),
        link: link.parse().unwrap(),
    }
}

fn name_of(receiver: ReceiverId) -> String {
    match receiver.link {
        0 => format!("r{}", receiver.connection.0),
        link => format!("r{}/{link}", receiver.connection.0),
    }
}

fn subqueue(args: &[&str]) -> Subqueue {
    if args.contains(&"dead") {
        Subqueue::DeadLetter
    } else if args.contains(&"transfer") {
        Subqueue::TransferDeadLetter
    } else {
        Subqueue::Main
    }
}

fn mode(args: &[&str]) -> ReceiveMode {
    if args.contains(&"delete") {
        ReceiveMode::ReceiveAndDelete
    } else if args.contains(&"hold") {
        ReceiveMode::LinkLock
    } else {
        ReceiveMode::PeekLock
    }
}

/// The value of the argument that begins with `prefix`.
fn named<'a>(args: &[&'a str], prefix: &str) -> Option<&'a str> {
    args.iter().find_map(|arg| arg.strip_prefix(prefix))
}

/// A string in its smallest encoding.
fn encoded_text(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    amqp::encode::string(&mut out, text);
    out.freeze()
}

/// A message with an id and its text as data.
fn encoded_message(text: &str, id: &str, session: &str, args: &[&str]) -> Bytes {
    let mut out = BytesMut::new();
    let properties = amqp::message::Properties {
        message_id: (!id.is_empty()).then(|| amqp::Value::String(id.into())),
        group_id: (!session.is_empty()).then(|| session.to_owned()),
        subject: named(args, "label=").map(str::to_owned),
        ..Default::default()
    };
    properties.encode(&mut out);
    if let Some(n) = named(args, "n=") {
        let n = n.parse().map_or(amqp::Value::from(n), amqp::Value::Long);
        amqp::message::encode_map_section(&mut out, 0x74, &[(amqp::Value::from("n"), n)]);
    }
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, text.as_bytes());
    out.freeze()
}

fn numbers(args: &[&str]) -> Vec<u64> {
    let numbers = args.iter().filter_map(|arg| arg.strip_prefix('#'));
    numbers.map(|number| number.parse().unwrap()).collect()
}

fn signed_millis(text: &str) -> i64 {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    sign * i64::try_from(millis(text.trim_start_matches(['-', '+']))).unwrap()
}

fn millis(text: &str) -> u64 {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().unwrap();
    number
        * match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "y" => 365 * 24 * 3_600_000,
            other => panic!("unknown unit {other}"),
        }
}

fn time(ms: u64) -> String {
    match ms.is_multiple_of(1_000) {
        true => format!("{}s", ms / 1_000),
        false => format!("{ms}ms"),
    }
}
