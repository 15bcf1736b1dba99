//! Receiving: locks messages, prints them and then settles them.
//!
//! A message is printed before it is settled, so none is lost when the output breaks. Those that
//! are to be abandoned stay locked until the end, since they would come again at once.

use amqp::{Attach, DeliveryState, Role, Symbol, Target, Value};
use bytes::Bytes;
use endpoint::{Event, LinkId, SessionId};

use super::Error;
use super::client::{Client, refused, source};
use super::output::print;
use crate::arguments::ReceiveArguments;

/// (docs/spec/amqp.md#3.4)
const SESSION_FILTER: &str = "com.microsoft:session-filter";
/// The property of the wait for a session, and the condition if there was none.
/// (docs/spec/amqp.md#3.4)
const TIMEOUT: &str = "com.microsoft:timeout";
/// Long enough for a session that is there, in milliseconds.
const SESSION_TIME_OUT_MS: u32 = 500;
/// Messages that are locked at a time.
const WINDOW: u32 = 64;

/// A message that was received and is locked.
struct LockedMessage {
    session: SessionId,
    delivery_id: u32,
    payload: Bytes,
}

/// Receives as many as are asked for, or as are there.
pub async fn receive(client: &mut Client, arguments: &ReceiveArguments) -> Result<(), Error> {
    let address = super::address(&arguments.source);
    let attach = attach(client, &address, arguments);
    let link = match client.attach_without_time_out(attach, &address).await {
        // No session has messages, which is what is asked for unless it is to be waited for.
        Err(Error::Refused { condition, .. })
            if condition.as_str() == TIMEOUT && !arguments.wait =>
        {
            return Ok(());
        }
        attached => attached?,
    };
    let mut held = Vec::new();
    let mut left = arguments.count;
    while left > 0 {
        let wanted = left.min(WINDOW);
        let taken = batch(client, link, wanted, arguments, &mut held).await?;
        // Without a wait, fewer are all that there were.
        left = if taken < wanted { 0 } else { left - taken };
    }
    for locked in held {
        let abandoned = DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: None,
        };
        settle(client, &locked, abandoned).await?;
    }
    Ok(())
}

/// Prints and settles as many as are wanted, or as are there. Messages that are to be abandoned are
/// held until the end, or they would come again at once.
async fn batch(
    client: &mut Client,
    link: LinkId,
    wanted: u32,
    arguments: &ReceiveArguments,
    held: &mut Vec<LockedMessage>,
) -> Result<u32, Error> {
    client.credit(link, wanted, !arguments.wait);
    let mut taken = 0;
    // A drain has its answer even if it brought as many as were wanted.
    while taken < wanted || !arguments.wait {
        let Some(locked) = next(client, link, arguments.wait).await? else {
            break;
        };
        print(&locked.payload, arguments.source.json)?;
        taken += 1;
        if arguments.abandon {
            held.push(locked);
        } else {
            settle(client, &locked, DeliveryState::Accepted).await?;
        }
    }
    Ok(taken)
}

fn attach(client: &mut Client, address: &str, arguments: &ReceiveArguments) -> Attach {
    let mut attach = client.link(Role::Receiver, source(address), Target::default());
    let Some(id) = arguments.session_id.as_deref() else {
        return attach;
    };
    let id = match id {
        "" => Value::Null,
        id => Value::from(id),
    };
    if let Some(source) = attach.source.as_deref_mut() {
        let filter = Value::Symbol(Symbol::new(SESSION_FILTER));
        source.filter = Some(vec![(filter, id)]);
    }
    let millis = if arguments.wait {
        u32::MAX
    } else {
        SESSION_TIME_OUT_MS
    };
    let timeout = Value::Symbol(Symbol::new(TIMEOUT));
    attach.properties = Some(vec![(timeout, Value::Uint(millis))]);
    attach
}

/// The next message; none when all that was there has come.
async fn next(
    client: &mut Client,
    link: LinkId,
    wait: bool,
) -> Result<Option<LockedMessage>, Error> {
    let pick = |event: &Event| match event {
        Event::Delivery {
            link: l,
            session,
            delivery_id,
            payload,
            ..
        } if *l == link => Some(Ok(Some(LockedMessage {
            session: *session,
            delivery_id: *delivery_id,
            payload: payload.clone(),
        }))),
        Event::Drained { link: l } if *l == link => Some(Ok(None)),
        Event::Detached { link: l, error, .. } if *l == link => {
            Some(Err(refused("the link", error.as_ref())))
        }
        _ => None,
    };
    match wait {
        true => client.wait(pick).await,
        false => client.answer("a receive", pick).await,
    }
}

/// Settles a message; returns when the broker has confirmed it.
async fn settle(
    client: &mut Client,
    locked: &LockedMessage,
    state: DeliveryState,
) -> Result<(), Error> {
    client.dispose(locked.session, locked.delivery_id, state);
    let what = "a settlement";
    client
        .answer(what, |event| match event {
            Event::Updated {
                delivery_id, state, ..
            } if *delivery_id == locked.delivery_id => Some(match state {
                Some(DeliveryState::Rejected(error)) => Err(refused(what, error.as_ref())),
                _ => Ok(()),
            }),
            _ => None,
        })
        .await
}
