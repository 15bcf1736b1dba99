//! Expression: from a text to a flat program, and the machine that runs it on a message.
//!
//! The lexer finds tokens, the parser builds a tree, and the program is made of the tree once. SQL
//! filters, actions and selectors share all of it; a dialect says which grammar holds.

pub mod dialect;
pub mod error;
pub mod evaluation;
pub mod fields;
pub mod fuel;
pub mod lexer;
pub mod machine;
pub mod needs;
pub mod parameters;
pub mod parser;
pub mod program;
pub mod scan;
pub mod token;
pub mod tree;
