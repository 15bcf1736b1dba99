//! Outcomes as scripts write them: `abandon r1 #1 note=x`, where `x*40` is forty of them and a name
//! that begins with `x-` is an annotation; `wait=` delays the next delivery.

use broker::{Outcome, RetryTime};
use bytes::BytesMut;

use super::{millis, named};

/// The outcome of a line.
pub(super) fn outcome(verb: &str, args: &[&str]) -> Outcome {
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
