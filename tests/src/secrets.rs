//! Secrets: the keys, tokens and signatures that tests have used, none of which a log may hold.
//!
//! Whatever a test shows to a broker, or writes into its configuration, is noted here. When a broker
//! ends, its whole log, with all that it could say, is searched for everything that was noted.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Shorter ones are found by chance.
const LEAST: usize = 8;

static SECRETS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Notes a key.
///
/// # Panics
/// When it is too short to be told from other text.
pub fn note(secret: &str) {
    assert!(secret.len() >= LEAST, "'{secret}' is too short a secret");
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.insert(secret.to_owned());
}

/// Notes what a header's line shows, if it shows who somebody is, and the signature in it.
pub fn note_header(line: &str) {
    let Some((name, value)) = line.split_once(':') else {
        return;
    };
    if !name.to_ascii_lowercase().ends_with("authorization") {
        return;
    }
    note(value.trim());
    for part in value.split([' ', '&']) {
        let part = part
            .strip_prefix("sig=")
            .unwrap_or(part)
            .trim_end_matches('=');
        if part.len() >= LEAST && !part.contains('=') {
            let is_scheme = part.eq_ignore_ascii_case("SharedAccessSignature");
            (!is_scheme).then(|| note(part));
        }
    }
}

/// Notes the keys of a configuration.
pub fn note_keys(toml: &str) {
    let lines = toml.lines().filter_map(|line| line.split_once('='));
    let keys = lines.filter(|(name, _)| name.trim().ends_with("ary-key"));
    for (_, key) in keys {
        note(key.trim().trim_matches(['\'', '"']));
    }
}

/// Looks for all of them in a log.
///
/// # Panics
/// When one is there.
pub fn look_for_in(log: &str) {
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    for secret in secrets.iter() {
        let line = log.lines().find(|line| line.contains(secret.as_str()));
        assert_eq!(line, None, "'{secret}' is in a log");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "is in a log")]
    fn a_signature_in_a_log_is_found() {
        note_header("authorization: SharedAccessSignature sr=x&sig=c2lnbmF0dXJl%3d&se=1&skn=root");
        look_for_in("an innocent line\nand one with c2lnbmF0dXJl%3d in it");
    }

    #[test]
    #[should_panic(expected = "is in a log")]
    fn a_key_of_a_configuration_in_a_log_is_found() {
        note_keys("[[auth.rules]]\nprimary-key = 'hidden-in-a-file'");
        look_for_in("with hidden-in-a-file");
    }
}
