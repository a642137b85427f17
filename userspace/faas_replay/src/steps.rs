//! The steps at which dispatcher and helpers may fail, as numbers on the board.

use super::realtime::HOW_TO_PERMIT;
use nix::errno::Errno;

/// Ended processes are collected until this long before the next arrival.
pub const MARGIN_NS: u64 = 300_000;

/// The step that failed, and why.
pub type Failure = (u64, Errno);

/// Taking real-time priority.
pub const STEP_REALTIME: u64 = 1;
/// Restricting the children to some CPUs.
pub const STEP_PIN: u64 = 2;
/// Giving the children their policy.
pub const STEP_POLICY: u64 = 3;
/// Waiting for the children.
pub const STEP_WAIT: u64 = 4;
/// Starting sandboxes through the keeper.
pub const STEP_KEEPER: u64 = 5;
/// Making a socket for a sandbox.
pub const STEP_SOCKET: u64 = 6;
/// Starting the first sandboxes.
pub const STEP_PRESTART: u64 = 7;
/// Waiting until they accept requests.
pub const STEP_READY: u64 = 8;

/// An error on the board in one sentence.
pub fn explain(error: u64) -> Option<String> {
    let errno = Errno::from_raw(error as i32);
    Some(match error >> 32 {
        0 => return None,
        STEP_REALTIME => format!("{HOW_TO_PERMIT} ({errno})"),
        STEP_PIN => format!("cannot restrict the children to the first CPUs: {errno}"),
        STEP_POLICY => format!("cannot set the scheduling policy of the children: {errno}"),
        STEP_WAIT => format!("cannot wait for the children: {errno}"),
        STEP_KEEPER => format!("the process that starts the sandboxes cannot be reached: {errno}"),
        STEP_SOCKET => format!("cannot make a socket for a sandbox: {errno}"),
        STEP_PRESTART => format!(
            "cannot start a sandbox before the replay: {errno}; a smaller --prestart needs fewer \
             processes, memory and files"
        ),
        STEP_READY => format!("the sandboxes did not become ready to accept requests: {errno}"),
        step => format!("step {step} failed: {errno}"),
    })
}
