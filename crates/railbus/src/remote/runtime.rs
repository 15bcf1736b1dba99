//! Runtime: the tokio runtime of commands that send requests to a broker.

use tokio::runtime::{Builder, Runtime};

use crate::command_error::CommandError;

/// A runtime on this thread alone.
pub fn runtime() -> Result<Runtime, CommandError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(CommandError::System)
}
