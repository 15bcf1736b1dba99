//! Stop signal: the request to end early, by Ctrl-C or SIGTERM. A second one ends the process at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::command_error::CommandError;
use crate::remote::runtime::runtime;

/// What shells show for a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Whether a stop was requested.
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Listens from now on.
    pub fn listen() -> Result<Self, CommandError> {
        let stop_signal = Self(Arc::default());
        let asked = Arc::clone(&stop_signal.0);
        let runtime = runtime()?;
        let signals = {
            let _entered = runtime.enter();
            [SignalKind::interrupt(), SignalKind::terminate()].map(signal)
        };
        let [interrupt, terminate] = signals;
        let interrupt = interrupt.map_err(CommandError::System)?;
        let terminate = terminate.map_err(CommandError::System)?;
        thread::spawn(move || runtime.block_on(watch(interrupt, terminate, &asked)));
        Ok(stop_signal)
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

async fn watch(mut interrupt: Signal, mut terminate: Signal, asked: &AtomicBool) {
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    }
}
