//! Build: has the linker put the functions that run side by side.
//!
//! `order.txt` names them (`cargo xtask order` makes it). They lie in few pages then, so the system maps a broker's
//! 4 MiB of code rather than 14. Only the linker that Rust brings along for this target is known to
//! understand the list; with another one, or another target, the program is the same and takes more memory.

use std::env;

/// The one target for which Rust links with LLD unless told otherwise.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// How somebody may have chosen another linker.
const CHOICES: [&str; 3] = ["linker", "fuse-ld", "link-self-contained"];

fn main() {
    println!("cargo::rerun-if-changed=order.txt");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = env::var_os("RUSTC_LINKER").is_some()
        || CHOICES.iter().any(|choice| flags.contains(choice));
    if is("TARGET", TARGET) && is("PROFILE", "release") && !chosen {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={folder}/order.txt");
        // Names that a newer compiler gives other functions are no news.
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
}
