//! Entropy: the seed of lock tokens, from the operating system. Nobody may guess a lock token.

use crate::command_error::CommandError;

/// 32 bytes that nobody knows.
pub fn seed() -> Result<[u8; 32], CommandError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| CommandError::System(std::io::Error::other(error)))?;
    Ok(seed)
}
