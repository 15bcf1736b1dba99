//! The Railbus message broker: `railbus serve`, `backup`, `restore`, `verify`, `clock`, `health`,
//! `ca`, `identity`, `config check` and `rule test`.
//!
//! Exit codes: 0 done or asked to stop, 1 failed while running, 2 refused to start. A code that is
//! not 0 comes with one sentence on stderr. A tested rule that does not match ends with 1, and one
//! that fails with 2; what the test says is on stdout.

mod arguments;
mod command_error;
mod commands;
mod config;
mod log;
mod processor;
mod remote;
mod serve;
mod settings;
mod stdout;
mod table;
mod tls;

use commands::administration;
use commands::backup;
use commands::bench;
use commands::bulk_operation;
use commands::ca;
use commands::check;
use commands::clock;
use commands::explain;
use commands::export;
use commands::health;
use commands::identity;
use commands::messaging;
use commands::plan;
use commands::restore;
use commands::verify;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tikv_jemallocator::Jemalloc;

use arguments::{Arguments, Command, ConfigCommand};
use command_error::CommandError;

/// RocksDB's memory too. Messages come from one thread and go on another, which costs glibc's
/// allocator a seventh of all processor time.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|refusal| {
        eprintln!("railbus: {refusal}");
        refusal.exit_code()
    })
}

fn run(arguments: Arguments) -> Result<ExitCode, CommandError> {
    let done = match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Restore(arguments) => restore::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Ca(command) => ca::run(command),
        Command::Identity(command) => identity::run(command),
        Command::Clock(arguments) => clock::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Config(ConfigCommand::Check { file }) => check::run(&file),
        Command::Config(ConfigCommand::Plan(arguments)) => return plan::show(&arguments),
        Command::Config(ConfigCommand::Apply(arguments)) => return plan::apply(&arguments),
        Command::Config(ConfigCommand::Export(arguments)) => export::run(&arguments),
        Command::Queue(command) => return administration::queue(command),
        Command::Topic(command) => return administration::topic(command),
        Command::Subscription(command) => return administration::subscription(command),
        Command::Rule(command) => return administration::rule(command),
        Command::Policy(command) => return administration::policy(command),
        Command::Namespace(command) => return administration::namespace(command),
        Command::Fault(command) => return administration::fault(command),
        Command::Send(arguments) => return messaging::send(&arguments),
        Command::Receive(arguments) => return messaging::receive(&arguments),
        Command::Peek(arguments) => return messaging::peek(&arguments),
        Command::Bench(arguments) => return bench::run(&arguments),
        Command::Explain(arguments) => return explain::run(&arguments),
        Command::Trace(arguments) => return administration::trace(&arguments),
        Command::Purge(arguments) => return bulk_operation::purge(&arguments),
        Command::Redrive(arguments) => return bulk_operation::redrive(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "railbus", &mut script);
            stdout::print(script)
        }
        Command::Man { folder } => {
            let written = clap_mangen::generate_to(Arguments::command(), &folder);
            written.map_err(|error| CommandError::Write {
                path: folder,
                error,
            })
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}
