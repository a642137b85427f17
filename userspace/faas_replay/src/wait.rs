//! Waiting for processes that have ended.

use super::board::State;
use super::meter::Usage;
use nix::errno::Errno;

/// Waits for any child; `None` if WNOHANG is given and none has ended.
///
/// # Errors
/// Like wait4.
pub fn wait4(options: i32) -> Result<Option<(libc::pid_t, State, Usage)>, Errno> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right types.
    let waited = unsafe { libc::wait4(-1, &mut status, options, &mut usage) };
    let pid = Errno::result(waited)?;
    if pid == 0 {
        return Ok(None);
    }
    let state = if libc::WIFEXITED(status) {
        State::Exited(libc::WEXITSTATUS(status) as u32)
    } else {
        State::Killed(libc::WTERMSIG(status) as u32)
    };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let usage = Usage {
        cpu_us: us(usage.ru_utime) + us(usage.ru_stime),
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    };
    Ok(Some((pid, state, usage)))
}
