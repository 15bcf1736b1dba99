//! Secrets: what the log of no broker may hold, in whatever form it could stand there.
//!
//! Keys are known by their text. A token's signature is made while a test runs, so it is known by
//! its marks and by its looks: 32 bytes in base64 are nothing else in our logs.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What stands around secrets whose text is not known beforehand.
const MARKS: [&str; 4] = [
    "SharedAccessSignature ",
    "sig=",
    "PRIVATE KEY",
    "SharedAccessKey=",
];
/// Characters of 32 bytes in base64, besides the `=` at its end.
const SIGNATURE: usize = 43;
/// Shorter keys are found by chance.
const LEAST: usize = 8;

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    forms: Vec<String>,
}

impl Secrets {
    /// Takes a list of keys, one a line.
    pub fn add(&mut self, list: &str) {
        let keys = list.lines().map(str::trim);
        for key in keys.filter(|key| key.len() >= LEAST) {
            self.forms.extend(forms(key));
        }
    }

    /// The first line of a log with a secret in it.
    pub fn find<'a>(&self, log: &'a str) -> Option<&'a str> {
        log.lines().find(|line| self.is_in(line))
    }

    fn is_in(&self, line: &str) -> bool {
        let decoded = percent_decoded(line);
        [line, &decoded].into_iter().any(|text| {
            MARKS.iter().any(|mark| text.contains(mark))
                || self.forms.iter().any(|form| text.contains(form))
                || has_signature(text)
        })
    }
}

/// A key as text, as `Debug` shows bytes, in hex, and within whatever is in base64.
fn forms(key: &str) -> Vec<String> {
    let bytes = key.as_bytes();
    let numbers: Vec<_> = bytes.iter().map(u8::to_string).collect();
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        _ = write!(hex, "{byte:02x}");
        hex
    });
    let mut forms = vec![key.to_owned(), numbers.join(", "), hex.to_uppercase(), hex];
    forms.extend((0..3).map(|before| within_base64(bytes, before)));
    forms
}

/// The characters of base64 that tell nothing but `key`, behind `before` other bytes.
fn within_base64(key: &[u8], before: usize) -> String {
    let padded = [vec![0; before].as_slice(), key].concat();
    let encoded = STANDARD.encode(&padded);
    let from = (before * 8).div_ceil(6);
    let until = padded.len() * 8 / 6;
    encoded[from..until].to_owned()
}

/// Whether there is a text of base64 that is as long as a signature.
fn has_signature(text: &str) -> bool {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    let mut runs = text.split('=');
    runs.next_back();
    let lengths = runs.map(|run| run.chars().rev().take_while(|&c| is_base64(c)).count());
    lengths.into_iter().any(|length| length == SIGNATURE)
}

fn percent_decoded(text: &str) -> String {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        let byte = after
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                decoded.push(byte.into());
                rest = &after[2..];
            }
            None => {
                decoded.push('%');
                rest = after;
            }
        }
    }
    decoded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "SAS_KEY_VALUE";

    fn check(line: &str, is_found: bool) {
        let mut secrets = Secrets::default();
        secrets.add(&format!("{KEY}\nshort\n\n"));
        let log = format!("INFO listening on 127.0.0.1:5672\n{line}\nINFO stopping");
        assert_eq!(secrets.find(&log), is_found.then_some(line), "{line}");
    }

    #[test]
    fn a_key_is_found_in_every_form() {
        check("DEBUG key SAS_KEY_VALUE", true);
        check("DEBUG the key is SAS%5FKEY%5fVALUE", true);
        check(&format!("TRACE {:?}", KEY.as_bytes()), true);
        check("TRACE 5341535f4b45595f56414c5545", true);
        check("TRACE 5341535F4B45595F56414C5545", true);
    }

    #[test]
    fn a_key_is_found_within_base64_wherever_it_begins() {
        for rule in ["", "a", "ab", "RootManageSharedAccessKey:"] {
            for rest in ["", "x", "\0\0"] {
                let encoded = STANDARD.encode(format!("{rule}{KEY}{rest}"));
                check(&format!("TRACE authorization: Basic {encoded}"), true);
            }
        }
    }

    #[test]
    fn a_signature_is_found_by_its_marks_and_by_its_looks() {
        let signature = STANDARD.encode([0xfb; 32]);
        check("TRACE SharedAccessSignature sr=x", true);
        check("TRACE ...&sig=abc", true);
        check(&format!("TRACE got {signature}"), true);
        let encoded = signature.replace('=', "%3D").replace('+', "%2b");
        check(&format!("TRACE got \"{encoded}\""), true);
    }

    #[test]
    fn innocent_lines_are_left_alone() {
        check("DEBUG committed groups=56 messages=2 bytes=86585", false);
        check("INFO reloaded: the rule app has changed: 100% short", false);
        check("WARN a queue called %f%zz%", false);
        check(
            &format!("TRACE token={}=", "a".repeat(SIGNATURE + 1)),
            false,
        );
    }
}
