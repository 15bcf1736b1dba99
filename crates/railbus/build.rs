//! Build: has the linker put the functions that run side by side.
//!
//! `order.txt` names them (`cargo xtask order` makes it). They lie in few pages then, so the system
//! maps 5 MiB of a broker's code rather than 14. Not every linker knows such a list, so one is
//! asked first: if it does not, the program is the same and takes more memory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIST: &str = "order.txt";
/// Variables that choose the linker and its arguments.
const CHOICES: [&str; 3] = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_LINKER"];

fn main() {
    println!("cargo::rerun-if-changed={LIST}");
    for choice in CHOICES {
        println!("cargo::rerun-if-env-changed={choice}");
    }
    let Some(folder) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        return;
    };
    // The target folder may be that of several clones, and outlive this one.
    let list = folder.join(LIST);
    if let Err(error) = fs::copy(LIST, &list) {
        println!("cargo::warning={LIST} can not be copied: {error}");
        return;
    }
    let arguments = arguments(&list);
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && links(&folder, &arguments) {
        for argument in arguments {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

/// Names that a newer compiler gives other functions are no news.
fn arguments(list: &Path) -> [String; 4] {
    let ordered = format!("--symbol-ordering-file={}", list.display());
    let [linker, quiet] = ["-Xlinker", "--no-warn-symbol-ordering"].map(str::to_owned);
    [linker.clone(), ordered, linker, quiet]
}

/// Whether an empty program can be linked with these arguments.
fn links(folder: &Path, arguments: &[String]) -> bool {
    let (source, program) = (folder.join("empty.rs"), folder.join("empty"));
    if fs::write(&source, "fn main() {}\n").is_err() {
        return false;
    }
    let mut compile = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compile.arg(source).arg("-o").arg(program);
    if let Some(target) = env::var_os("TARGET") {
        compile.arg("--target").arg(target);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    compile.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compile.arg(format!("-Clinker={linker}"));
    }
    compile.args(arguments.iter().map(|one| format!("-Clink-arg={one}")));
    compile.output().is_ok_and(|output| output.status.success())
}
