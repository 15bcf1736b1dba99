//! Settlements as scripts write them: `abandon r1 #1 note=x`, where `x*40` is forty of them and a
//! name that begins with `x-` is an annotation; `wait=` delays the next delivery, and `reported`
//! has the connection of the receiver told of the end of its lock.

use broker::{Command, DeadLettering, LockToken, Outcome, RetryTime, SettleError, SubqueueId};
use bytes::BytesMut;

use super::{Stage, millis, named, numbers, receiver, subqueue};

impl Stage {
    pub(super) fn settle(&mut self, verb: &str, args: &[&str]) {
        let tokens: Vec<_> = numbers(args)
            .into_iter()
            .map(|number| self.token(args[0], number))
            .collect();
        let outcome = outcome(verb, args);
        let unheard = args.contains(&"unheard");
        let who = named(args, "session=").map_or("r0", |_| args[0]);
        let request = self.request_of(who, &format!("{verb} {}", args.join(" ")));
        let (entity, subqueue) = (self.entity(args), subqueue(args));
        self.turn(vec![match tokens[..] {
            [token] => Command::Settle {
                request: (!unheard).then_some(request),
                session: named(args, "session=").map(|it| it.to_owned().into()),
                subqueue: SubqueueId { entity, subqueue },
                token,
                outcome,
            },
            _ => Command::SettleMany {
                session: named(args, "session=").map(|it| it.to_owned().into()),
                request,
                subqueue: SubqueueId { entity, subqueue },
                tokens,
                outcome,
            },
        }]);
    }

    /// The number that a token was given for; 0 of one that is not known.
    pub(super) fn number_of(&self, token: LockToken) -> u64 {
        let held = self.tokens.iter().find(|(_, known)| **known == token);
        held.map_or(0, |((_, number), _)| *number)
    }
}

/// The outcome of a line.
pub(super) fn outcome(verb: &str, args: &[&str]) -> Outcome {
    if args.contains(&"reported") {
        let rest: Vec<&str> = args
            .iter()
            .copied()
            .filter(|it| *it != "reported")
            .collect();
        return Outcome::Reported {
            to: receiver(args[0]).connection,
            outcome: Box::new(outcome(verb, &rest)),
        };
    }
    let changes = args.iter().filter_map(|arg| {
        let (key, value) = arg.split_once('=')?;
        if matches!(key, "in" | "otherwise" | "wait") {
            return None;
        }
        let (value, times) = value.split_once('*').unwrap_or((value, "1"));
        let mut out = BytesMut::new();
        amqp::encode::string(&mut out, &value.repeat(times.parse().unwrap()));
        Some((key.to_owned(), out.freeze()))
    });
    let (annotations, changes): (Vec<_>, Vec<_>) =
        changes.partition(|(key, _): &(String, _)| key.starts_with("x-"));
    if !annotations.is_empty() {
        let args: Vec<&str> = args
            .iter()
            .copied()
            .filter(|it| !it.starts_with("x-"))
            .collect();
        return Outcome::Annotated {
            annotations,
            outcome: Box::new(outcome(verb, &args)),
        };
    }
    match verb {
        "complete" => Outcome::Complete,
        "abandon" => Outcome::Abandon {
            changes,
            retry: named(args, "wait=")
                .map_or(RetryTime::Backoff, |it| RetryTime::After(millis(it))),
        },
        "defer" => Outcome::Defer { changes },
        "reject" => Outcome::DeadLetter { changes },
        "release" => Outcome::Release,
        _ => Outcome::Undelivered,
    }
}

/// What a connection is told of the end of a lock.
pub(super) fn end(result: &Result<Option<Box<DeadLettering>>, SettleError>) -> String {
    match result {
        Ok(None) => "has ended".to_owned(),
        Ok(Some(dead)) => {
            let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".to_owned());
            let (reason, description) = (word(&dead.reason), word(&dead.description));
            format!("has made it a dead letter: {reason}, {description}")
        }
        Err(error) => format!("has not ended: {error}"),
    }
}
