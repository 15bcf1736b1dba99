//! Support: a script language for one engine, and a pair of engines joined in memory.

pub mod pair;
pub mod print;
pub mod script;
pub mod words;

pub use pair::Pair;
pub use script::{Start, check, check_with};
