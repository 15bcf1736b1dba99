//! The Railbus message broker: `railbus serve`, `clock`, `health` and `config check`.
//!
//! Exit codes: 0 done or asked to stop, 1 failed while running, 2 refused to start. A code that is not 0
//! comes with one sentence on stderr.

mod arguments;
mod check;
mod clock;
mod config;
mod connection_string;
mod data_directory;
mod entropy;
mod health;
mod keys;
mod log;
mod processor;
mod ready;
mod refusal;
mod remote;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command, ConfigCommand};
use refusal::Refusal;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("railbus: {refusal}");
            refusal.exit_code()
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Refusal> {
    match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Clock(arguments) => clock::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Config(ConfigCommand::Check { file }) => check::run(&file),
    }
}
