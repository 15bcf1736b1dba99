//! `railbus send`, `receive` and `peek`: messages over AMQP, with the project's own engine as
//! client.
//!
//! A received message is printed before it is settled, so a message is received again, and not
//! lost, if the command ends in between.

mod client;
mod node;
mod output;
mod receive;
mod send;

use std::process::ExitCode;

use amqp::Symbol;

use crate::arguments::{PeekArguments, ReceiveArguments, SendArguments, SourceArguments};
use crate::command_error::CommandError;
use crate::remote::runtime::runtime;
use crate::remote::{self, Remote};
use client::Client;

pub use client::{describe_error, refused};

/// Why messages did not go as they should.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Remote(#[from] remote::Error),
    #[error("{authority} ended the connection: {reason}")]
    Ended { authority: String, reason: String },
    #[error("{what} was refused with {condition}: {reason}")]
    Refused {
        what: String,
        condition: Symbol,
        reason: String,
    },
    #[error("{0} was refused without a reason")]
    Silent(String),
    #[error("{what} was refused with {code}: {reason}")]
    Request {
        what: String,
        code: i64,
        reason: String,
    },
    #[error("no answer to {0}")]
    Late(String),
    #[error("a message cannot be read: {0}")]
    Unreadable(#[from] amqp::decode::DecodeError),
    #[error("the message cannot be sent: {0}")]
    Message(serde_json::Error),
    #[error("stdout cannot be written: {0}")]
    Output(std::io::Error),
}

/// Sends messages, and prints their number if there is more than one.
pub fn send(arguments: &SendArguments) -> Result<ExitCode, CommandError> {
    let remote = Remote::new(&arguments.broker)?;
    let messages = send::messages(arguments)?;
    runtime()?.block_on(async {
        let mut client = Client::open(&remote).await?;
        client.show_token(&arguments.entity).await?;
        send::send(&mut client, &arguments.entity, &messages).await?;
        client.close().await;
        Ok::<(), Error>(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Receives messages and prints each.
pub fn receive(arguments: &ReceiveArguments) -> Result<ExitCode, CommandError> {
    let source = &arguments.source;
    let remote = Remote::new(&source.broker)?;
    runtime()?.block_on(async {
        let mut client = Client::open(&remote).await?;
        client.show_token(&source.entity).await?;
        receive::receive(&mut client, arguments).await?;
        client.close().await;
        Ok::<(), Error>(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Shows messages that stay where they are.
pub fn peek(arguments: &PeekArguments) -> Result<ExitCode, CommandError> {
    let source = &arguments.source;
    let remote = Remote::new(&source.broker)?;
    runtime()?.block_on(async {
        let mut client = Client::open(&remote).await?;
        client.show_token(&source.entity).await?;
        let (from, count) = (arguments.from, arguments.count);
        for payload in client.peek(&address(source), from, count).await? {
            output::print(&payload, source.json)?;
        }
        client.close().await;
        Ok::<(), Error>(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Where a receiver attaches.
fn address(source: &SourceArguments) -> String {
    match source.dead_letter {
        true => format!("{}/$DeadLetterQueue", source.entity),
        false => source.entity.clone(),
    }
}
