//! Message: the sections of an encoded message, found without decoding them. [AMQP 3.2]
//!
//! The scanner walks descriptors and sizes only; the body is never parsed. The bare message
//! (properties to footer) is kept and forwarded as the bytes it came in.

mod arrange;
mod batch;
mod header;
mod map_section;
mod properties;
mod sections;

pub use crate::descriptor;
pub use arrange::{arrange, scan_in_any_order};
pub use batch::batch_parts;
pub use header::Header;
pub use map_section::{decode_map_section, encode_map_section};
pub use properties::{Properties, check_field};
pub use sections::{BodyKind, Sections};
