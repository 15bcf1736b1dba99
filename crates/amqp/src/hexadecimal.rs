//! Hexadecimal: bytes and UUIDs as text, with digits in lower case.

/// Two digits for each byte.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push(&mut text, bytes);
    text
}

/// A UUID in the form `8-4-4-4-12`.
#[must_use]
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for part in [0..4, 4..6, 6..8, 8..10, 10..16] {
        if part.start > 0 {
            text.push('-');
        }
        push(&mut text, &uuid[part]);
    }
    text
}

fn push(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(digit.into(), 16));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_uuids_become_text() {
        assert_eq!(hexadecimal(&[]), "");
        assert_eq!(hexadecimal(&[0x00, 0x0a, 0xff]), "000aff");
        let uuid: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap() * 17);
        assert_eq!(uuid_text(&uuid), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
