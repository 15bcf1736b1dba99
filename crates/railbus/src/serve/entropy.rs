//! Entropy: the seed of lock tokens, from the operating system. A lock token must be
//! unpredictable.

use crate::command_error::CommandError;

/// 32 unpredictable bytes.
pub fn seed() -> Result<[u8; 32], CommandError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| CommandError::System(std::io::Error::other(error)))?;
    Ok(seed)
}
