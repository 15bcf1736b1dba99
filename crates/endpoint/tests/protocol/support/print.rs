//! Print: frames and events as short lines, with only what is not the usual.

use std::fmt::Write;

use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::performative::Role;
use amqp::sasl::SaslFrame;
use amqp::{Attach, DeliveryState, Disposition, Error, Flow, Performative, Transfer};
use bytes::{Buf, Bytes, BytesMut};
use endpoint::Event;

/// Takes all headers and frames off `output`, one line each.
pub fn output(output: &mut BytesMut) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = next(output) {
        lines.push(line);
    }
    assert!(output.is_empty(), "the engine writes whole frames");
    lines
}

fn next(output: &mut BytesMut) -> Option<String> {
    for (header, name) in [
        (ProtocolHeader::Amqp, "AMQP"),
        (ProtocolHeader::Sasl, "SASL"),
    ] {
        if output.starts_with(&header.bytes()) {
            output.advance(8);
            return Some(name.to_owned());
        }
    }
    let frame = frame::split(output, u32::MAX).expect("the engine writes sound frames")?;
    Some(match frame.frame_type {
        FrameType::Sasl => sasl(&frame.body),
        FrameType::Amqp if frame.body.is_empty() => "empty".to_owned(),
        FrameType::Amqp => amqp(frame.channel, frame.body),
    })
}

fn sasl(body: &Bytes) -> String {
    match SaslFrame::decode(body).expect("the engine writes sound SASL frames") {
        SaslFrame::Mechanisms(mechanisms) => {
            let names: Vec<_> = mechanisms.iter().map(|name| name.as_str()).collect();
            format!("sasl-mechanisms {}", names.join(" "))
        }
        SaslFrame::Init { mechanism, .. } => format!("sasl-init {mechanism}"),
        SaslFrame::Challenge(_) => "sasl-challenge".to_owned(),
        SaslFrame::Response(_) => "sasl-response".to_owned(),
        SaslFrame::Outcome { code, .. } => format!("sasl-outcome {code:?}"),
    }
}

fn amqp(channel: u16, mut body: Bytes) -> String {
    let performative = Performative::decode(&mut body).expect("the engine writes performatives");
    let mut line = match performative {
        Performative::Open(_) | Performative::Close(_) => String::new(),
        _ => format!("{channel}: "),
    };
    match performative {
        Performative::Open(open) => {
            let _ = write!(
                line,
                "open max-frame-size={} channel-max={}",
                open.max_frame_size, open.channel_max
            );
        }
        Performative::Begin(begin) => {
            line += "begin";
            number(&mut line, "remote", begin.remote_channel);
            number(&mut line, "window", Some(begin.incoming_window));
        }
        Performative::Attach(attach) => line += &self::attach(&attach),
        Performative::Flow(flow) => line += &self::flow(&flow),
        Performative::Transfer(transfer) => line += &self::transfer(&transfer, &body),
        Performative::Disposition(disposition) => line += &self::disposition(&disposition),
        Performative::Detach(detach) => {
            let _ = write!(line, "detach h={}", detach.handle);
            flag(&mut line, "closed", detach.closed);
            line += &cause(detach.error.as_ref());
        }
        Performative::End(end) => {
            line += "end";
            line += &cause(end.error.as_ref());
        }
        Performative::Close(close) => {
            line += "close";
            line += &cause(close.error.as_ref());
        }
    }
    line
}

fn attach(attach: &Attach) -> String {
    let mut line = format!(
        "attach {} h={} {}",
        attach.name,
        attach.handle,
        role(attach.role)
    );
    number(&mut line, "idc", attach.initial_delivery_count);
    number(&mut line, "max-message-size", attach.max_message_size);
    let null = attach.source.is_none() && attach.target.is_none();
    flag(&mut line, "null", null);
    line
}

fn flow(flow: &Flow) -> String {
    let mut line = "flow".to_owned();
    number(&mut line, "h", flow.handle);
    number(&mut line, "dc", flow.delivery_count);
    number(&mut line, "credit", flow.link_credit);
    flag(&mut line, "drain", flow.drain);
    flag(&mut line, "echo", flow.echo);
    number(&mut line, "next-in", flow.next_incoming_id);
    number(&mut line, "in-window", Some(flow.incoming_window));
    number(&mut line, "next-out", Some(flow.next_outgoing_id));
    line
}

fn transfer(transfer: &Transfer, payload: &[u8]) -> String {
    let mut line = format!("transfer h={}", transfer.handle);
    number(&mut line, "id", transfer.delivery_id);
    let tag = transfer.delivery_tag.as_deref();
    number(&mut line, "tag", tag.map(String::from_utf8_lossy));
    number(&mut line, "format", transfer.message_format);
    match transfer.settled {
        Some(true) => line += " settled",
        Some(false) => line += " unsettled",
        None => {}
    }
    flag(&mut line, "more", transfer.more);
    flag(&mut line, "aborted", transfer.aborted);
    line += &state(transfer.state.as_ref());
    line += &body(payload);
    line
}

fn body(payload: &[u8]) -> String {
    if payload.len() > 20 {
        format!(" size={}", payload.len())
    } else {
        format!(" body={}", String::from_utf8_lossy(payload))
    }
}

fn disposition(disposition: &Disposition) -> String {
    let mut line = format!(
        "disposition {} first={}",
        role(disposition.role),
        disposition.first
    );
    number(&mut line, "last", disposition.last);
    flag(&mut line, "settled", disposition.settled);
    line += &state(disposition.state.as_ref());
    line
}

/// One line for an event.
pub fn event(event: &Event) -> String {
    match event {
        Event::SaslInit { mechanism, .. } => format!("SaslInit {mechanism}"),
        Event::SaslOutcome(code) => format!("SaslOutcome {code:?}"),
        Event::Opened(open) => format!("Opened {}", open.container_id),
        Event::Begun { session } => format!("Begun s{}", session.0),
        Event::AttachRequested { attach, .. } => {
            format!("AttachRequested {} {}", attach.name, role(attach.role))
        }
        Event::Attached { attach, .. } => format!("Attached {}", attach.name),
        Event::Credit { limit, drain, .. } => {
            let mut line = format!("Credit limit={limit}");
            flag(&mut line, "drain", *drain);
            line
        }
        Event::Drained { .. } => "Drained".to_owned(),
        Event::Delivery {
            delivery_id,
            settled,
            state,
            payload,
            ..
        } => {
            let mut line = format!("Delivery {delivery_id}");
            flag(&mut line, "settled", *settled);
            line += &self::state(state.as_ref());
            line + &body(payload)
        }
        Event::TooLarge {
            delivery_id,
            settled,
            state,
            ..
        } => {
            let mut line = format!("TooLarge {delivery_id}");
            flag(&mut line, "settled", *settled);
            line + &self::state(state.as_ref())
        }
        Event::Disposed {
            cookie,
            delivery_id,
            settled,
            state,
            ..
        } => {
            let mut line = format!("Disposed {delivery_id} cookie={cookie}");
            flag(&mut line, "settled", *settled);
            line + &self::state(state.as_ref())
        }
        Event::Missed { state, .. } => format!("Missed{}", self::state(state.as_ref())),
        Event::Updated {
            delivery_id,
            settled,
            state,
            ..
        } => {
            let mut line = format!("Updated {delivery_id}");
            flag(&mut line, "settled", *settled);
            line + &self::state(state.as_ref())
        }
        Event::Detached {
            closed,
            error,
            unsettled,
            ..
        } => {
            let mut line = "Detached".to_owned();
            flag(&mut line, "closed", *closed);
            line += &cause(error.as_ref());
            if !unsettled.is_empty() {
                let _ = write!(line, " unsettled={unsettled:?}");
            }
            line
        }
        Event::Ended { session, error } => format!("Ended s{}{}", session.0, cause(error.as_ref())),
        Event::Closed { error, .. } => format!("Closed{}", cause(error.as_ref())),
    }
}

pub fn role(role: Role) -> &'static str {
    match role {
        Role::Sender => "sender",
        Role::Receiver => "receiver",
    }
}

fn number(line: &mut String, name: &str, value: Option<impl std::fmt::Display>) {
    if let Some(value) = value {
        let _ = write!(line, " {name}={value}");
    }
}

fn flag(line: &mut String, name: &str, set: bool) {
    if set {
        let _ = write!(line, " {name}");
    }
}

fn cause(error: Option<&Error>) -> String {
    error.map_or(String::new(), |error| format!(" error={}", error.condition))
}

fn state(state: Option<&DeliveryState>) -> String {
    let name = match state {
        None => return String::new(),
        Some(DeliveryState::Received { .. }) => "received".to_owned(),
        Some(DeliveryState::Accepted) => "accepted".to_owned(),
        Some(DeliveryState::Rejected(error)) => format!("rejected{}", cause(error.as_ref())),
        Some(DeliveryState::Released) => "released".to_owned(),
        Some(DeliveryState::Modified { .. }) => "modified".to_owned(),
        Some(DeliveryState::Declared { .. }) => "declared".to_owned(),
        Some(DeliveryState::Transactional { outcome, .. }) => {
            format!("transactional({})", self::state(outcome.as_deref()).trim())
        }
    };
    format!(" state={name}")
}
