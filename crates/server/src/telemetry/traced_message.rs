//! Traced message: what spans say of a message that has a trace context.

use std::sync::Arc;

use amqp::Value;
use amqp::hexadecimal::{hexadecimal, uuid_text};
use amqp::message::{Properties, Sections};
use bytes::Bytes;

use super::sampler::Sampler;
use super::trace_context::TraceContext;

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct TracedMessage {
    pub context: TraceContext,
    pub id: Option<Arc<str>>,
}

impl TracedMessage {
    /// Of an encoded message, if it is sampled.
    pub fn of(payload: &Bytes, sampler: Sampler) -> Option<Self> {
        let sections = Sections::scan(payload).ok()?;
        let context = sampler.sampled(TraceContext::text_in(payload, &sections)?)?;
        let id = id(payload, &sections);
        Some(Self { context, id })
    }
}

fn id(payload: &Bytes, sections: &Sections) -> Option<Arc<str>> {
    let section = payload.slice(sections.properties.clone());
    match Properties::decode(&section).ok()?.message_id? {
        Value::String(text) => Some(text.as_str().into()),
        Value::Ulong(number) => Some(number.to_string().into()),
        Value::Uuid(uuid) => Some(uuid_text(&uuid).into()),
        Value::Binary(bytes) => Some(hexadecimal(&bytes).into()),
        _ => None,
    }
}
