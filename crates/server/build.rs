//! Build: embeds the files of the web console, if `cargo xtask console` has made them.
//!
//! `console/dist` is always there, so that cargo sees when its files come and go.

use std::path::Path;
use std::{env, fs};

/// The files of the console.
const FILES: [&str; 3] = ["index.html", "console.js", "console.css"];

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let dist = Path::new(&root).join("../../console/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let files = FILES.map(|name| dist.join(format!("{name}.gz")));
    let code = match files.iter().all(|file| file.is_file()) {
        true => {
            let files = files.map(|file| format!("include_bytes!({file:?})"));
            format!("Some([{}])", files.join(", "))
        }
        false => "None".to_owned(),
    };
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("console.rs"), code).expect("the folder is writable");
}
