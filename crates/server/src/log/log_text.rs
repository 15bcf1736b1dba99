//! Log text: text from a peer, made safe for a line of the log.
//!
//! It is short, stays on its line, and has no control characters. Names are the client's own, and
//! a misconfigured client may send a key or a token as a name (a connection string as the name of
//! a queue). Text that looks like a secret is therefore left out, with everything behind it.

/// Most characters of a name.
pub const NAME: usize = 256;
/// Most characters of a sentence, which may hold a name.
pub const SENTENCE: usize = 512;

/// What stands before a key or a signature, in lower case.
const MARKS: [&str; 6] = [
    "sharedaccesssignature",
    "sharedaccesskey=",
    "sharedaccesskey%3d",
    "sig=",
    "sig%3d",
    "password=",
];
/// Characters of 32 bytes in base64, besides the `=` at their end.
const SECRET: usize = 43;

/// The first `most` characters of `text` that may be shown.
pub fn printable(text: &str, most: usize) -> String {
    let end = secret(text).unwrap_or(text.len());
    let mut printable = String::new();
    let mut length = 0;
    for character in text[..end].chars() {
        let shown = escaped(character);
        length += shown.chars().count();
        if length > most {
            return printable + "...";
        }
        printable.push_str(&shown);
    }
    if end < text.len() {
        printable.push_str("[left out]");
    }
    printable
}

fn escaped(character: char) -> String {
    match character {
        '"' | '\'' | '\\' => character.to_string(),
        other => other.escape_debug().to_string(),
    }
}

/// Where something begins that looks like a secret.
fn secret(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let marked = MARKS.iter().filter_map(|mark| lower.find(mark)).min();
    let ends = lower.match_indices('=').chain(lower.match_indices("%3d"));
    let keys = ends.filter_map(|(end, _)| {
        let base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let length = lower.as_bytes()[..end].iter().rev().take_while(base64);
        (length.count() >= SECRET).then(|| end - SECRET)
    });
    marked.into_iter().chain(keys).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(printable(text, NAME), expected);
    }

    #[test]
    fn an_ordinary_name_is_shown_as_it_is() {
        for name in [
            "",
            "orders",
            "Größe/Subscriptions/все",
            "a 'quoted' \"name\" with a \\",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "The token is not a shared access signature with sr, sig, se and skn.",
            "RootManageSharedAccessKey",
        ] {
            check(name, name);
        }
    }

    #[test]
    fn no_name_begins_another_line_or_moves_the_cursor() {
        check("a\nWARN b\r\t", "a\\nWARN b\\r\\t");
        check("\u{1b}[2J\0\u{7f}", "\\u{1b}[2J\\0\\u{7f}");
        check("\u{2028}\u{202e}\u{85}", "\\u{2028}\\u{202e}\\u{85}");
    }

    #[test]
    fn a_long_text_is_shortened() {
        check(&"x".repeat(NAME), &"x".repeat(NAME));
        check(&"é".repeat(NAME + 1), &("é".repeat(NAME) + "..."));
        assert!(printable(&"\0".repeat(100_000), NAME).len() <= NAME + 3);
    }

    #[test]
    fn what_looks_like_a_secret_is_left_out() {
        check(
            "Endpoint=sb://localhost;SharedAccessKeyName=app;SharedAccessKey=abc",
            "Endpoint=sb://localhost;SharedAccessKeyName=app;[left out]",
        );
        check("queue?SIG=abc&se=1", "queue?[left out]");
        check("/queue%3Fsig%3Dabc", "/queue%3F[left out]");
        check("to sharedAccessSignature sr=x", "to [left out]");
        let key = "5DbsbZW1NbEDk2bCCuo8cIzGN1Pd8NTv6r2IoRVWJV0";
        check(&format!("name {key}="), "name [left out]");
        check(&format!("name {key}%3D"), "name [left out]");
        check(&format!("name {key}"), &format!("name {key}"));
    }

    #[test]
    fn a_text_of_many_bytes_a_character_is_cut_between_characters() {
        let text = "é".repeat(100) + "sig=x";
        check(&text, &("é".repeat(100) + "[left out]"));
    }
}
