//! Developer commands: `cargo xtask run`, `test`, `sim`, `bench`, `console`, `package`, `dist`,
//! `tidy`, `fuzz` and `torture`.
//!
//! They do all set-up on a fresh machine and say what they install. This program itself needs a
//! Rust toolchain and nothing else: it must not depend on RocksDB.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

use xtask::workspace::Workspace;
use xtask::{bench, console, dist, package, run, sim, test, tidy, torture};

/// Developer commands of Railbus.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds the broker and starts it with the example entities
    Run {
        /// Further options of `railbus serve`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        serve: Vec<String>,
    },
    /// Checks everything, or the named steps
    Test {
        /// Only what takes seconds: format, rules, lints and tests of the pure crates
        #[arg(long)]
        quick: bool,
        /// Prints the steps' names
        #[arg(long)]
        list: bool,
        /// A server to compare with, whose suite runs too: `rabbitmq`
        #[arg(long, value_name = "SERVER")]
        with: Vec<String>,
        /// Names of the steps to run
        steps: Vec<String>,
    },
    /// Runs the simulator: whole brokers under virtual time, with faults by seed
    Sim {
        /// How many operations; without it ten million, or the one run that the seed names
        #[arg(long)]
        operations: Option<u64>,
        /// The first seed
        #[arg(long)]
        seed: Option<u64>,
        /// With the journal on a model of a disk below the brokers
        #[arg(long)]
        disk: bool,
    },
    /// Measures a release build on loopback
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the measurement; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Makes the program to install: stripped, with the functions that run side by side
    Package {
        /// Where the program goes
        out: PathBuf,
    },
    /// Makes all packages that users install, with checksums
    Dist {
        /// A new or empty folder for them
        out: PathBuf,
    },
    /// Builds the web console, which a later build of the broker embeds
    Console,
    /// Checks the project's own rules
    Tidy,
    /// Runs fuzz targets: all of them, or those named
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Names of the targets
        targets: Vec<String>,
    },
    /// Crashes, power cuts, failing disks and hostile clients, in turns, for hours
    Torture {
        /// For how long rounds begin; a part of an hour is fine
        #[arg(long)]
        hours: f64,
        /// Rounds at a time, each with a seed of its own
        #[arg(long, default_value_t = 2)]
        at_once: usize,
        /// Forgets what earlier runs reached
        #[arg(long)]
        fresh: bool,
        /// Names of the tasks; all of them if none is given
        tasks: Vec<String>,
    },
}

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Run { serve } => run::run(&workspace, &serve),
        Command::Test { list: true, .. } => test::list(&workspace),
        Command::Test {
            quick, steps, with, ..
        } => test::run(&workspace, quick, &steps, &with),
        Command::Sim {
            operations,
            seed,
            disk,
        } => sim::run(&workspace, operations, seed, disk),
        Command::Bench { arguments } => bench::run(&workspace, &arguments),
        Command::Package { out } => package::run(&workspace, &out),
        Command::Dist { out } => dist::run(&workspace, &out),
        Command::Console => console::run(&workspace),
        Command::Tidy => check_tidy(&workspace),
        Command::Fuzz { seconds, targets } => test::fuzz::run(&workspace, seconds, &targets),
        Command::Torture {
            hours,
            at_once,
            fresh,
            tasks,
        } => torture::run(
            &workspace,
            &torture::Options {
                hours,
                at_once,
                is_fresh: fresh,
                tasks,
            },
        ),
    }
}

fn check_tidy(workspace: &Workspace) -> Result<()> {
    let findings = tidy::check(workspace.root())?;
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    Ok(())
}
