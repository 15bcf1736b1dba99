//! Outputs: what a step is about to say, as rules see it. Answers wait here, and so do deliveries,
//! if they are not what `receive` makes of them.

use crate::api::output::{Delivery, Output};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::fault::receive::{self, Gone};

/// Does what rules say to a step's outputs, which are those from `first` on.
pub(crate) fn look_at(directory: &mut Directory, first: usize, cx: &mut Context<'_>) {
    let faults = &mut directory.faults;
    let mut said = faults.delays.take_said();
    if said.is_empty() && !faults.match_deliveries() && !faults.delays.may_keep() {
        return note_handed_out(directory, first, cx);
    }
    let mut gone = Gone::default();
    // What comes of an effect is looked at too.
    while cx.effects.outputs.len() > first {
        note_handed_out(directory, first, cx);
        for output in cx.effects.outputs.split_off(first) {
            said.extend(look_at_one(directory, output, &mut gone, cx));
        }
    }
    cx.effects.outputs.append(&mut said);
}

/// Returns an output that is to be said now.
fn look_at_one(
    directory: &mut Directory,
    output: Output,
    gone: &mut Gone,
    cx: &mut Context<'_>,
) -> Option<Output> {
    let delays = &mut directory.faults.delays;
    match delays.keep_answer(output, cx.broker_now.mono)? {
        Output::Deliver { receiver, delivery } => {
            receive::deliver(directory, receiver, delivery, gone, cx)
        }
        output => delays.keep_in_order(output),
    }
}

/// The rules learn of the messages that are handed out.
fn note_handed_out(directory: &mut Directory, first: usize, cx: &Context<'_>) {
    if !directory.faults.follow_messages() {
        return;
    }
    for delivery in cx.effects.outputs[first..].iter().flat_map(deliveries) {
        let message = &delivery.message;
        if let Some(queue) = directory.get(message.entity) {
            let namespace = queue.namespace;
            directory.faults.note_handed_out(namespace, message);
        }
    }
}

fn deliveries(output: &Output) -> &[Delivery] {
    match output {
        Output::Deliver { delivery, .. } => std::slice::from_ref(delivery),
        Output::Deferred {
            result: Ok(deliveries),
            ..
        } => deliveries,
        _ => &[],
    }
}
