//! Build: passes the list of functions that `RAILBUS_ORDER` names to the linker.
//!
//! `cargo xtask package` makes the list and sets the variable. Without it the linker places
//! functions as usual, and the program is the same but for memory at start.

use std::env;

fn main() {
    println!("cargo::rerun-if-env-changed=RAILBUS_ORDER");
    if let Ok(list) = env::var("RAILBUS_ORDER") {
        println!("cargo::rerun-if-changed={list}");
        println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={list}");
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
}
