//! Fan-out: a message that has arrived at a topic goes to the subscriptions that select it.
//!
//! All copies are made in one step with the message's leaving the topic, so all of them are there
//! or none. Copies that are as the message was sent share its body, which is stored once and goes
//! with the last of them; what a rule's action has changed has a body of its own.
//! (docs/spec/entities.md#17.2)

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use filter::{Environment, Facts, Message, RuleSubset};
use store::{EntityId, MessageRow, Write};

use crate::api::id::Subqueue;
use crate::api::lineage::MessageEvent;
use crate::api::rule::distribution::{Content, Distribution, PlannedCopy, TOO_LARGE};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::forward::hop;
use crate::forward::transfer::Transfer;
use crate::message;
use crate::message::bodies::Body;
use crate::message::patch::Patch;
use crate::message::properties::Properties;
use crate::message::row;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::queue::rows::Rows;
use crate::receive::run::run;
use crate::send::enqueue;

/// The reason and the description of a dead letter without a session. (docs/spec/amqp.md#4.7)
const NO_SESSION: (Cow<'static, str>, Cow<'static, str>) = (
    Cow::Borrowed("Session id is null."),
    Cow::Borrowed(
        "Session enabled entity doesn't allow a message whose session identifier is null.",
    ),
);
/// Steps of an evaluation that take about as long as it takes to move a message.
const STEPS_PER_WORK: u64 = 256;

/// Why there are the topic and the subscriptions that want a copy.
const THERE: &str = "they were found in this step";

/// Lets a topic's next message go on. Returns whether it is worth going on.
pub(crate) fn publish_one(
    directory: &mut Directory,
    topic: EntityId,
    cx: &mut Context<'_>,
) -> bool {
    let source = directory.get_mut(topic).expect(THERE);
    let Some(mut transfer) = hop::next_transfer(source, Subqueue::Main, cx) else {
        run(source, cx);
        return false;
    };
    let distribution = distribution_of(directory, topic, &transfer, cx);
    let copies = distribution.copies();
    let copies: Vec<_> = copies.filter(|copy| directory.wants(copy)).collect();
    let sharing = copies.iter().filter(|copy| copy.content.is_as_sent());
    let sharing = u32::try_from(sharing.count()).unwrap_or(u32::MAX);
    cx.charge_pumps(copies.len().saturating_sub(1));
    if sharing > 1 {
        transfer.body.share();
    }
    let source = directory.get_mut(topic).expect(THERE);
    let topic_ttl_ms = source.settings.default_message_time_to_live;
    if sharing > 0 && cx.shared.lent.covers(transfer.entry.row.body) {
        own_body(source, &mut transfer, cx);
    }
    pass_on(source, &transfer, sharing, cx);
    let event = || MessageEvent::Distributed {
        copies: u32::try_from(copies.len()).unwrap_or(u32::MAX),
    };
    source.record(transfer.number, event, cx);
    run(source, cx);
    for copy in copies {
        let before = sent_row(&transfer, copy.content, topic_ttl_ms);
        let rule = directory.recorded_rule(topic, copy, cx);
        let queue = directory.get_mut(copy.subscription).expect(THERE);
        let event = || MessageEvent::Copied {
            from: transfer.place(),
            rule,
        };
        queue.record(queue.rows.next_arrival(), event, cx);
        take_copy(queue, &transfer, &before, copy.content, sharing > 1, cx);
        run(queue, cx);
    }
    true
}

impl Directory {
    /// Whether a copy is to be made. (docs/spec/entities.md#17.9)
    fn wants(&self, copy: &PlannedCopy<'_>) -> bool {
        match self.get(copy.subscription).map(|queue| &queue.kind) {
            Some(Kind::Subscription(it)) => {
                it.dead_lettering_on_filter_evaluation_exceptions
                    || !matches!(copy.content, Content::Failed(..))
            }
            // It has gone since the message was sent.
            _ => false,
        }
    }

    /// The name of the rule that a topic makes a copy by, if that is recorded.
    fn recorded_rule(
        &self,
        topic: EntityId,
        copy: PlannedCopy<'_>,
        cx: &Context<'_>,
    ) -> Option<Bytes> {
        let queue = self.get(topic).filter(|it| cx.records(it.namespace))?;
        let Kind::Topic(topic) = &queue.kind else {
            return None;
        };
        let rule = topic.rules.at(copy.subscription, copy.place)?;
        Some(Bytes::copy_from_slice(rule.name.as_bytes()))
    }
}

/// What the topic's rules make of the message: what those that were there when it was accepted made
/// of it, and what is to be evaluated here. (docs/spec/entities.md#17.1)
fn distribution_of(
    directory: &Directory,
    topic: EntityId,
    transfer: &Transfer,
    cx: &mut Context<'_>,
) -> Arc<Distribution> {
    let Some(Kind::Topic(topic)) = directory.get(topic).map(|queue| &queue.kind) else {
        unreachable!("only topics publish");
    };
    let rules = &topic.rules;
    let known = transfer.body.distribution.as_ref();
    let known = known.filter(|_| transfer.body.patch.is_none());
    let part = match known {
        Some(known) if !rules.any_late() => return Arc::clone(known),
        Some(_) => RuleSubset::Late,
        None if rules.is_empty() => return Arc::default(),
        None => RuleSubset::All,
    };
    let mut distribution = known.cloned().unwrap_or_default();
    let payload = seen_by_filters(&transfer.body);
    // It was checked when it came in; what cannot be read now matches nothing.
    if let Ok(message) = Message::read(&payload, facts(transfer)) {
        let environment = Environment {
            seed: cx.shared.tokens.next_seed(),
            ..Environment::default()
        };
        let steps = Arc::make_mut(&mut distribution).add(rules, part, &message, environment);
        cx.charge_pumps(usize::try_from(steps / STEPS_PER_WORK).unwrap_or(usize::MAX));
    }
    distribution
}

/// A message that was changed on its way (a dead letter that was forwarded) is seen as it is now.
fn seen_by_filters(body: &Body) -> Bytes {
    match &body.patch {
        Some(patch) => patch.applied(&body.payload),
        None => body.payload.clone(),
    }
}

fn facts(transfer: &Transfer) -> Facts<'_> {
    let row = &transfer.entry.row;
    let signed = |value: u64| i64::try_from(value).ok();
    let number = signed(transfer.number.0);
    // What was sent to the topic directly has none. (docs/spec/entities.md#5)
    let first = match row.enqueued_number {
        0 => None,
        first => signed(first),
    };
    Facts {
        enqueued_time_ms: signed(row.enqueued_ms),
        expires_at_ms: signed(row.expires_ms),
        sequence_number: number,
        enqueued_sequence_number: first,
        delivery_count: Some(0),
        state: Some(0),
        dead_letter_source: transfer.body.patch.as_deref().and_then(Patch::source),
        ..Facts::default()
    }
}

/// The body of a message belongs to a snapshot: the copies get one that is their own.
fn own_body(queue: &mut Queue, transfer: &mut Transfer, cx: &mut Context<'_>) {
    let number = queue.rows.take_arrival();
    let pointer = queue.rows.pointer(number);
    cx.write(Write::PutBody {
        pointer,
        body: transfer.body.payload.clone(),
    });
    transfer.entry.row.body = pointer;
}

/// A message leaves its topic; its body stays for those that share it.
fn pass_on(queue: &mut Queue, transfer: &Transfer, sharing: u32, cx: &mut Context<'_>) {
    queue
        .sub_mut(Subqueue::Main)
        .take_available(transfer.number);
    drop(cx.shared.bodies.take(transfer.entry.body));
    let patch = transfer.body.patch.clone();
    let part = Subqueue::Main.part();
    let message = message::Message::available(part, transfer.number, &transfer.entry, patch);
    let patched = message.patch.is_some();
    queue.erase_row(&message, patched, cx);
    let pointer = message.row.body;
    match sharing {
        0 => Rows::remove_body(&message.row, cx),
        1 => {}
        copies => cx.write(Write::ShareBody { pointer, copies }),
    }
}

/// The row that a copy comes from: an action's time to live stands in for the sender's.
/// (docs/spec/entities.md#17.10)
fn sent_row(transfer: &Transfer, content: &Content, topic_ttl_ms: u64) -> MessageRow {
    let row = transfer.entry.row;
    match content {
        Content::Changed {
            ttl_ms: Some(ttl_ms),
            ..
        } => MessageRow {
            ttl_ms: topic_ttl_ms.min(*ttl_ms),
            ..row
        },
        _ => row,
    }
}

/// A copy arrives here from the topic, where its row was `before`.
fn take_copy(
    queue: &mut Queue,
    transfer: &Transfer,
    before: &MessageRow,
    content: &Content,
    shared: bool,
    cx: &mut Context<'_>,
) {
    let number = queue.rows.take_number(row::priority(before));
    let enqueued = queue.rows.take_enqueued_time(cx);
    let mut row = enqueue::arriving_row(queue, before, transfer.number, number, enqueued);
    let mut body = Body {
        distribution: None,
        ..transfer.body.clone()
    };
    let mut properties = transfer.properties.clone();
    let shares = content.is_as_sent() && shared;
    let mut reason = None;
    match content {
        Content::Changed { payload, .. } => {
            row.size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            properties = Properties::of(payload);
            cx.write(Write::PutBody {
                pointer: row.body,
                body: payload.clone(),
            });
            // What the patch said is part of the message now.
            body = Body::new(payload.clone(), None);
        }
        Content::AsSent => row.body = transfer.entry.row.body,
        Content::TooLarge(text) => {
            row.body = transfer.entry.row.body;
            reason = Some((Cow::Borrowed(TOO_LARGE), Cow::Borrowed(text.as_str())));
        }
        Content::Failed(why, text) => {
            row.body = transfer.entry.row.body;
            reason = Some((Cow::Borrowed(*why), Cow::Borrowed(text.as_str())));
        }
    }
    if queue.settings.requires_session && properties.session_id.is_none() {
        reason.get_or_insert(NO_SESSION);
    }
    if let Some((reason, description)) = &reason {
        let patch = Patch::with_reason(body.patch.as_deref(), reason, description);
        body.patch = Some(Box::new(patch));
    }
    row.flags = row::copied(&transfer.entry.row, body.patch.is_some(), shares);
    row.session_hash = queue.rows.session_hash(properties.session_id.as_ref());
    if let Some(patch) = &body.patch {
        queue.rows.put_patch(number, patch, cx);
    }
    let subqueue = match reason {
        Some(_) => Subqueue::DeadLetter,
        None => Subqueue::Main,
    };
    if let (Some(_), Some(patch)) = (&reason, &body.patch) {
        queue.record_dead_letter(number, subqueue, patch, cx);
    }
    let session = properties.session_id.as_ref();
    enqueue::insert_message(queue, subqueue, session, number, row, body, cx);
}
