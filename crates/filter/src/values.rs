//! Values: what expressions calculate with: their kinds, order, arithmetic and patterns.

pub mod arithmetic;
pub mod compare;
pub mod decimal;
pub mod like;
pub mod ticks;
pub mod value;
