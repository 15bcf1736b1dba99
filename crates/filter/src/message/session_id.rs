//! Session id: what two ids of one session have in common. (docs/spec/entities.md#18)
//!
//! Ids that differ in letter case alone name one session. The folded form is what sessions are
//! compared and stored by, so it must never change.

use std::borrow::Cow;

/// The id after simple Unicode case folding.
#[must_use]
pub fn fold_session_id(id: &[u8]) -> Cow<'_, [u8]> {
    let fold = |c: char| {
        let folded = unicode_case_mapping::case_folded(c);
        folded.map_or(c, |code| char::from_u32(code.get()).unwrap_or(c))
    };
    if id.is_ascii() {
        return match id.iter().any(u8::is_ascii_uppercase) {
            true => Cow::Owned(id.to_ascii_lowercase()),
            false => Cow::Borrowed(id),
        };
    }
    match std::str::from_utf8(id) {
        Ok(text) if text.chars().any(|c| fold(c) != c) => {
            Cow::Owned(text.chars().map(fold).collect::<String>().into_bytes())
        }
        // Ids are AMQP strings; what a damaged store made of one stays as it is.
        _ => Cow::Borrowed(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_is_folded_to_one_letter() {
        for (id, folded) in [
            ("order-7", "order-7"),
            ("Order-7", "order-7"),
            ("ÄPFEL", "äpfel"),
            ("ΣΑΣ", "σασ"),
            ("straße", "straße"),
        ] {
            assert_eq!(*fold_session_id(id.as_bytes()), *folded.as_bytes());
        }
        assert_eq!(*fold_session_id(b"A\xff"), *b"A\xff");
    }
}
