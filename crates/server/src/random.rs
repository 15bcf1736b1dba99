//! Random bytes from the system: for keys, tracking ids and the seeds of message ids.

/// Unpredictable bytes.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("a system that runs a server has random bytes");
    bytes
}
