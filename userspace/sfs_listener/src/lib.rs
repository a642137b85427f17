//! Hints from the platform: receives them, refuses invalid ones, and passes the others to the
//! kernel half (`docs/hints.md`).
//!
//! | module | purpose |
//! |---|---|
//! | [`options`] | `--hint-listen` and related options |
//! | [`socket`] | the socket: created, protected, read in batches, removed |
//! | [`sender`] | the sender of a datagram, and who may send |
//! | [`rates`] | rate limit of each sender |
//! | [`intake`] | from a datagram to a hint for the kernel half |
//! | [`counters`] | counters |
//! | [`complaints`] | at most one log line a second for each kind of problem |

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
pub use options::{HintOptions, Owner};
pub use sender::SenderGroup;

use complaints::Complaints;
use intake::Intake;
use sender::Admission;
use sfs_bpf::kernel::{KernelHint, Verdicts};
use sfs_hint::Address;
use socket::HintSocket;

/// Datagrams after which [`HintListener::drain`] returns, so that a flood does not block the
/// loader for long. Datagrams left over wake it up again.
const DATAGRAMS_A_CALL: usize = 256;

/// The same for hints; the last datagrams may exceed it.
const HINTS_A_CALL: u64 = 4096;

/// Clock readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// `CLOCK_MONOTONIC` in ns.
    pub now_ns: u64,
    /// `CLOCK_REALTIME` - `CLOCK_MONOTONIC` in ns.
    pub wall_offset_ns: u64,
}

impl Clock {
    /// Reads the clocks.
    ///
    /// # Errors
    ///
    /// The system does not have these clocks.
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

/// The listener. Dropping it removes the socket file.
pub struct HintListener {
    socket: HintSocket,
    admission: Admission,
    intake: Intake,
    complaints: Complaints,
    deaf: bool,
}

impl HintListener {
    /// Starts to listen at `address`; `options` define who may send.
    ///
    /// # Errors
    ///
    /// Another program listens there, the system refuses, or `address` is a UDP address, which
    /// `options` do not allow.
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

    /// Returns the address it listens at. Port 0 is replaced by the assigned port.
    pub fn address(&self) -> &Address {
        self.socket.address()
    }

    /// Takes over who may send, at which rate, and whether service times are used. The address,
    /// the mode and the owner of the socket stay as they are.
    pub fn reconfigure(&mut self, options: &HintOptions) {
        self.admission = Admission::new(options);
        self.intake.reconfigure(options);
    }

    /// Returns the descriptor that becomes readable when hints arrive; None after a failure.
    pub fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.deaf).then(|| self.socket.as_fd())
    }

    /// Returns the counters since [`HintListener::listen`].
    pub fn counters(&self) -> HintCounters {
        self.intake.counters
    }

    /// Returns the name with number `function`, unless it has been forgotten.
    pub fn function_name(&self, function: u64) -> Option<&str> {
        self.intake.names.name(function)
    }

    /// Receives hints and passes them to `apply` in batches of at most
    /// [`KERNEL_BATCH`](sfs_bpf::kernel::KERNEL_BATCH). If
    /// there are many, it returns with some left. A batch for which `apply` fails is counted
    /// and lost.
    ///
    /// # Errors
    ///
    /// The socket cannot be read any more, and [`HintListener::poll_fd`] returns None from now
    /// on.
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
            warn!(
                "datagrams with hints dropped by the system: {count}; they arrive faster \
                 than they are read"
            );
        }
    }
}

/// Rejects a socket to which anybody can send, unless the options allow it.
fn check_who_can_send(address: &Address, options: &HintOptions) -> Result<()> {
    if matches!(address, Address::Udp(_)) && !options.hint_allow_udp {
        bail!(
            "hints over UDP ({address}) may come from any process of this machine; listen at a \
             Unix socket, or allow UDP with --hint-allow-udp"
        );
    }
    Ok(())
}

/// Returns a warning if anybody can send to the socket or fill it.
fn warning_of_senders(address: &Address, options: &HintOptions) -> Option<String> {
    let names_senders = !options.hint_allow_uid.is_empty() || !options.hint_allow_cgroup.is_empty();
    match address {
        Address::Udp(_) => Some(format!(
            "hints over UDP ({address}) are accepted from any process of this machine, \
             including containers in its network: each of them can give functions new credit"
        )),
        Address::Unix(_) if options.hint_mode & !WIDEST_MODE != 0 && !names_senders => {
            Some(format!(
                "--hint-mode {:04o} lets every user fill the socket, but hints are accepted \
                 from root only: name the senders (--hint-allow-uid, --hint-allow-cgroup), or \
                 use mode 0660 with --hint-owner",
                options.hint_mode
            ))
        }
        Address::Unix(_) => None,
    }
}

/// Access for owner and group.
const WIDEST_MODE: u32 = 0o660;

impl Drop for HintListener {
    /// Logs the totals, since other lines are limited to one a second for each kind.
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
