//! Standard input as a lifeline: it ends when the last process that can write to it has ended.
//!
//! A program that starts a broker gives it a pipe and keeps the other end. The system closes that
//! end however the program dies, SIGKILL included, on Linux as on macOS. A thread waits for it in
//! one read, so nothing polls. What is written to the pipe is ignored.

use std::io::Read;

use tokio::sync::oneshot;

/// Waits until standard input has ended or cannot be read.
///
/// # Errors
/// When the system starts no thread.
pub async fn closed() -> std::io::Result<()> {
    let (sender, receiver) = oneshot::channel::<()>();
    let wait = move || {
        read_to_end(std::io::stdin().lock());
        drop(sender);
    };
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    thread.spawn(wait)?;
    // Nothing is sent: the sender is dropped at the end of the input.
    drop(receiver.await);
    Ok(())
}

/// Returns when nothing more can come. Reads that a signal interrupts are repeated.
fn read_to_end(mut input: impl Read) {
    let mut ignored = [0; 512];
    loop {
        match input.read(&mut ignored) {
            Ok(0) => return,
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return,
            Ok(_) | Err(_) => {}
        }
    }
}
