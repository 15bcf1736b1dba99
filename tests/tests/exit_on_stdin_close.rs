//! `--exit-on-stdin-close`: a broker ends with the program that started it, however that one dies.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use e2e::broker::program;
use tempfile::TempDir;

/// `command` with a pipe on standard input and output, keeping temporary files in `directory`.
fn spawn(mut command: Command, directory: &TempDir) -> Child {
    command
        .current_dir(directory.path())
        .env("TMPDIR", directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.spawn().expect("the program is there")
}

fn options() -> [&'static str; 5] {
    let port = "127.0.0.1:0";
    [
        "serve",
        "--ephemeral",
        "--exit-on-stdin-close",
        "--listen",
        port,
    ]
}

fn is_empty(directory: &TempDir) -> bool {
    let entries = fs::read_dir(directory.path()).expect("it is there");
    entries.count() == 0
}

#[test]
fn the_end_of_standard_input_stops_the_broker_in_order() {
    let directory = TempDir::new().expect("there is room");
    let mut command = Command::new(program());
    command.args(options());
    let mut broker = spawn(command, &directory);
    let mut stdout = BufReader::new(broker.stdout.take().expect("it is piped"));
    let mut ready = String::new();
    stdout.read_line(&mut ready).expect("it is text");
    assert!(
        ready.starts_with("railbus ready listen=127.0.0.1:"),
        "{ready}"
    );
    assert!(!is_empty(&directory));
    drop(broker.stdin.take());
    assert!(broker.wait().expect("it is our child").success());
    assert!(is_empty(&directory), "the ephemeral data is removed");
}

#[test]
fn a_broker_ends_when_its_parent_is_killed() {
    let directory = TempDir::new().expect("there is room");
    // Only the shell has the end of the pipe that can be written to.
    let script = r#""$0" "$@" <pipe & exec 3>pipe; rm pipe; wait"#;
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("mkfifo pipe; {script}"));
    command.arg(program()).args(options());
    let mut parent = spawn(command, &directory);
    let mut stdout = BufReader::new(parent.stdout.take().expect("it is piped"));
    let mut ready = String::new();
    stdout.read_line(&mut ready).expect("it is text");
    assert!(ready.starts_with("railbus ready "), "{ready}");
    parent.kill().expect("it is our child");
    parent.wait().expect("it is our child");
    // Standard output ends when the last process that has it has ended: the broker.
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("it is text");
    assert_eq!(rest, "");
    assert!(is_empty(&directory), "the ephemeral data is removed");
}
