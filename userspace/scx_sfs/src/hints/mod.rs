//! Hints from the platform: the socket that they come to, what is refused, and
//! what the kernel half is told (`docs/hints.md`).
//!
//! | module | what |
//! |---|---|
//! | [`options`] | `--hint-listen` and what goes with it |
//! | [`socket`] | the socket: made, protected, read in batches, removed |
//! | [`sender`] | who has sent a datagram, and who may |
//! | [`rates`] | how many hints each sender may send |
//! | [`intake`] | from a datagram to what the kernel half takes |
//! | [`counters`] | what has been counted |
//! | [`complaints`] | at most one log line a second for each kind of trouble |

pub mod complaints;
pub mod counters;
pub mod intake;
pub mod options;
mod rates;
mod sender;
pub mod socket;

use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{bail, Context, Result};
use nix::time::{clock_gettime, ClockId};
use tracing::{info, warn};

pub use counters::HintCounters;
pub use intake::{KernelHint, Verdicts};
pub use options::{HintOptions, Owner};
pub use sender::SenderGroup;

use crate::bpf_intf::SFS_HINT_BATCH;
use complaints::Complaints;
use intake::Intake;
use sender::Admission;
use sfs_hint::Address;
use socket::HintSocket;

/// Most hints that the kernel half takes at once.
pub const KERNEL_BATCH: usize = SFS_HINT_BATCH as usize;

/// Datagrams after which [`HintListener::drain`] returns, so that a flood keeps
/// the loader from nothing else for long. What is left wakes it again.
const DATAGRAMS_A_CALL: usize = 256;

/// The same for hints; the last datagrams received may bring some more.
const HINTS_A_CALL: u64 = 4096;

/// What the clocks say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// `CLOCK_MONOTONIC` in ns.
    pub now_ns: u64,
    /// `CLOCK_REALTIME` - `CLOCK_MONOTONIC` in ns.
    pub wall_offset_ns: u64,
}

impl Clock {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// The system has no such clocks.
    pub fn read() -> Result<Self> {
        let ns = |id| -> Result<u64> {
            let time = clock_gettime(id).context("cannot read the clock")?;
            Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
        };
        let now_ns = ns(ClockId::CLOCK_MONOTONIC)?;
        let wall_ns = ns(ClockId::CLOCK_REALTIME)?;
        Ok(Self {
            now_ns,
            wall_offset_ns: wall_ns.saturating_sub(now_ns),
        })
    }
}

/// The listener. Dropping it removes its socket's file.
pub struct HintListener {
    socket: HintSocket,
    admission: Admission,
    intake: Intake,
    complaints: Complaints,
    deaf: bool,
}

impl HintListener {
    /// Starts to listen at `address`; `options` say who may send.
    ///
    /// # Errors
    ///
    /// Somebody listens there already, the system refuses, or `address` is one of UDP,
    /// which `options` do not allow.
    pub fn listen(address: &Address, options: &HintOptions) -> Result<Self> {
        check_who_can_send(address, options)?;
        if let Some(warning) = warning_of_senders(address, options) {
            warn!("{warning}");
        }
        let socket = HintSocket::bind(address, options)
            .with_context(|| format!("cannot listen for hints at {address}"))?;
        info!("listening for hints at {}", socket.address());
        Ok(Self {
            socket,
            admission: Admission::new(options),
            intake: Intake::new(options),
            complaints: Complaints::default(),
            deaf: false,
        })
    }

    /// Returns where it listens; a port of 0 is that which the system has given.
    pub fn address(&self) -> &Address {
        self.socket.address()
    }

    /// Returns the descriptor that can be read when hints have come; none if that
    /// has failed.
    pub fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.deaf).then(|| self.socket.as_fd())
    }

    /// Returns what has been counted since [`HintListener::listen`].
    pub fn counters(&self) -> HintCounters {
        self.intake.counters
    }

    /// Returns the name that the number `function` stands for, unless it has
    /// been forgotten.
    pub fn function_name(&self, function: u64) -> Option<&str> {
        self.intake.names.name(function)
    }

    /// Takes what has arrived, and hands it to `apply` in batches of at most
    /// [`KERNEL_BATCH`]. Returns with hints left if there are many. A batch that
    /// `apply` fails for is counted and lost.
    ///
    /// # Errors
    ///
    /// The socket cannot be read any more, and [`HintListener::poll_fd`] returns
    /// none from now on.
    pub fn drain(
        &mut self,
        clock: Clock,
        apply: &mut dyn FnMut(&[KernelHint]) -> Result<Verdicts>,
    ) -> Result<()> {
        let result = self.take_what_is_there(clock, apply);
        self.deaf = result.is_err();
        result
    }

    fn take_what_is_there(
        &mut self,
        clock: Clock,
        apply: &mut dyn FnMut(&[KernelHint]) -> Result<Verdicts>,
    ) -> Result<()> {
        let enough = self.intake.counters.received + HINTS_A_CALL;
        let mut datagrams = 0;
        while datagrams < DATAGRAMS_A_CALL && self.intake.counters.received < enough {
            let Self {
                socket,
                admission,
                intake,
                complaints,
                deaf: _,
            } = self;
            let batch = socket
                .receive(|sender, datagram| match sender.key() {
                    Some(key) if admission.admits(&sender) => {
                        intake.take(key, datagram, clock, complaints);
                    }
                    _ => intake.deny(&sender, clock, complaints),
                })
                .context("cannot receive hints")?;
            self.intake.apply(clock, apply, &mut self.complaints);
            self.count_dropped(batch.dropped, clock);
            datagrams += batch.datagrams;
            if !batch.full {
                break;
            }
        }
        Ok(())
    }

    fn count_dropped(&mut self, dropped: u64, clock: Clock) {
        if dropped == 0 {
            return;
        }
        self.intake.counters.dropped += dropped;
        if let Some(count) = self.complaints.dropped.due(dropped, clock.now_ns) {
            warn!("datagrams with hints that the system has dropped: {count}; more arrive than are read");
        }
    }
}

/// Refuses a socket that anybody could send to, unless that is asked for.
fn check_who_can_send(address: &Address, options: &HintOptions) -> Result<()> {
    if matches!(address, Address::Udp(_)) && !options.hint_allow_udp {
        bail!(
            "hints over UDP ({address}) may come from any process of this machine; listen at \
             the path of a Unix socket, or allow that with --hint-allow-udp"
        );
    }
    Ok(())
}

/// Returns what to warn of: a socket that anybody can send to, or fill.
fn warning_of_senders(address: &Address, options: &HintOptions) -> Option<String> {
    let names_senders = !options.hint_allow_uid.is_empty() || !options.hint_allow_cgroup.is_empty();
    match address {
        Address::Udp(_) => Some(format!(
            "hints over UDP ({address}) are taken from any process of this machine, containers \
             in its network included: each of them can give functions new credit"
        )),
        Address::Unix(_) if options.hint_mode & !WIDEST_MODE != 0 && !names_senders => {
            Some(format!(
                "--hint-mode {:04o} lets every user fill the socket, but hints are taken from \
                 root only: name the senders (--hint-allow-uid, --hint-allow-cgroup), or use \
                 mode 0660 with --hint-owner",
                options.hint_mode
            ))
        }
        Address::Unix(_) => None,
    }
}

/// Owner and group.
const WIDEST_MODE: u32 = 0o660;

impl Drop for HintListener {
    /// The log has at most one line a second for each kind; this is the rest.
    fn drop(&mut self) {
        let counters = self.counters();
        if counters != HintCounters::default() {
            info!("hints: {counters}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::Uid;

    fn warns(address: &str, options: &HintOptions) -> bool {
        warning_of_senders(&address.parse().unwrap(), options).is_some()
    }

    #[test]
    fn a_socket_for_everybody_draws_a_warning_unless_senders_are_named() {
        for (hint_mode, wide) in [(0o600, false), (0o660, false), (0o666, true), (0o602, true)] {
            let nobody_named = HintOptions {
                hint_mode,
                ..HintOptions::default()
            };
            assert_eq!(warns("/run/x", &nobody_named), wide, "{hint_mode:o}");
            let by_user = HintOptions {
                hint_allow_uid: vec![Uid::from_raw(7)],
                ..nobody_named.clone()
            };
            let by_group = HintOptions {
                hint_allow_cgroup: vec![SenderGroup::parse("a/b").unwrap()],
                ..nobody_named
            };
            assert!(!warns("/run/x", &by_user) && !warns("/run/x", &by_group));
        }
        let allowed = HintOptions {
            hint_allow_udp: true,
            ..HintOptions::default()
        };
        assert!(warns("udp:127.0.0.1:9", &allowed));
    }
}
