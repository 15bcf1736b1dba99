//! Secrets: the keys, tokens and signatures that tests have used, none of which a log may hold.
//!
//! Whatever a test shows to a broker, or writes into its configuration, is noted here. When a
//! broker ends, its whole log, with all that it could say, is searched for everything that was
//! noted. A test run searches it once more, with the logs of all other brokers, in every form that
//! a secret may have.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Notes the value of a header's line, if it authorizes a request, and the signature in it.
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

/// Hands a log in where the test run looks for it, with what was noted so far, if there is such a
/// place.
///
/// # Panics
/// When there is no room for it.
pub fn hand_in(log: &str) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(folder) = std::env::var_os("RAILBUS_LOGS").map(PathBuf::from) else {
        return;
    };
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let noted: Vec<_> = secrets.iter().map(String::as_str).collect();
    fs::write(folder.join(format!("{process}-{count}.log")), log).expect("there is room");
    let file = folder.join(format!("{process}.secrets"));
    fs::write(file, noted.join("\n")).expect("there is room");
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
