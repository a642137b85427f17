//! The kernel half: loading it, and talking to it.
//!
//! | module | purpose |
//! |---|---|
//! | `tunables` | settings made before loading |
//! | `load` | loading |
//! | `sandboxes` | which cgroups are sandboxes |
//! | `hints` | hints from the platform |
//! | `ranking` | ranks of functions |
//! | `queues` | lengths of the queues |
//! | `exit` | the end of the scheduler |
//! | `shared` | words and structs that both halves use |
//! | `messages` | libbpf's messages |

mod exit;
mod hints;
mod load;
mod messages;
mod queues;
mod ranking;
mod sandboxes;
mod shared;
mod tunables;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};
use scx_utils::{scx_ops_attach, try_set_rlimit_infinity};
use sfs_policy::Mode;

pub use hints::{KernelHint, Verdicts, KERNEL_BATCH};
pub use queues::Queues;
pub use ranking::Ranking;
pub use tunables::{Policy, Slice, Span, Tunables};

use crate::boundary;
use crate::bpf_intf::{
    sfs_completion, sfs_event, sfs_mode_SFS_MODE_FAIR_ONLY, sfs_mode_SFS_MODE_FILTER,
    sfs_mode_switch, sfs_stats,
};
use crate::bpf_skel::BpfSkel;
use crate::left_out::LeftOut;
use crate::realtime::RealTime;
use load::explained;
use shared::{read_struct, run_program, Word};

/// The scheduler, loaded and attached. Dropping it returns the machine to its default
/// scheduler.
pub struct KernelHalf<'object> {
    skel: BpfSkel<'object>,
    link: Option<Link>,
    /// The programs that watch boundaries.
    watchers: Vec<Link>,
    left_out: LeftOut,
    /// Whether it was logged that the lengths of the queues could not be measured.
    queues_failed: bool,
}

impl<'object> KernelHalf<'object> {
    /// Loads the scheduler for functions that may use `cpus` CPUs, with `slice` as the initial
    /// slice. Tasks started within one of the spans `past` were functions before. It schedules
    /// nothing until `attach()`.
    ///
    /// # Errors
    ///
    /// The kernel rejects it; nothing stays loaded.
    pub fn load(
        tunables: &Tunables,
        cpus: u32,
        slice: Slice,
        past: &[Span],
        object: &'object mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        try_set_rlimit_infinity();
        messages::keep();
        explained(Self::open_and_load(tunables, cpus, slice, past, object))
    }

    /// Starts scheduling.
    ///
    /// # Errors
    ///
    /// The kernel rejects it; nothing stays loaded.
    pub fn attach(&mut self) -> Result<()> {
        self.watchers = boundary::attach(&mut self.skel);
        explained(self.attach_scheduler())
    }

    /// The kernel hands over the tasks one by one. Tasks already handed over do not run until
    /// all are, while the others can run before this thread. Hence the real-time priority:
    /// without it, tasks waited for seconds on a busy machine.
    fn attach_scheduler(&mut self) -> Result<()> {
        let skel = &mut self.skel;
        let _first = RealTime::enter();
        self.link = Some(scx_ops_attach!(skel, sfs_ops)?);
        Ok(())
    }

    /// Creates a ring buffer reader: events of the kernel half go to `take`, completed
    /// invocations to `learn`.
    ///
    /// # Errors
    ///
    /// Out of memory or descriptors.
    pub fn events<'take>(
        &self,
        mut take: impl FnMut(sfs_event) + 'take,
        mut learn: impl FnMut(sfs_completion) + 'take,
    ) -> Result<RingBuffer<'take>> {
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&self.skel.maps.events, move |bytes| {
                if let Some(event) = read_struct::<sfs_event>(bytes) {
                    take(event);
                }
                0
            })
            .context("cannot read the kernel half's events")?
            .add(&self.skel.maps.completions, move |bytes| {
                if let Some(completion) = read_struct::<sfs_completion>(bytes) {
                    learn(completion);
                }
                0
            })
            .context("cannot read the kernel half's completions")?;
        builder
            .build()
            .context("cannot read the kernel half's events")
    }

    /// Returns the BPF map of arrivals.
    pub fn iat_map(&self) -> BorrowedFd<'_> {
        self.skel.maps.iat_map.as_fd()
    }

    /// Sets S and the values that follow from it. Invocations keep the credit they already
    /// have.
    pub fn set_slice(&mut self, slice: Slice) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            Word::store(&mut data.slice_ns, slice.slice_ns);
            Word::store(&mut data.overload_wait_ns, slice.overload_wait_ns);
        }
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            Word::store(&mut bss.recover_wait_ns, slice.recover_wait_ns);
        }
    }

    /// Switches the mode and moves the backlog. Returns the number of tasks moved.
    ///
    /// # Errors
    ///
    /// The kernel does not run the BPF program for it.
    pub fn switch_mode(&mut self, mode: Mode) -> Result<u64> {
        let mut switch = sfs_mode_switch {
            mode: match mode {
                Mode::Filter => sfs_mode_SFS_MODE_FILTER,
                Mode::FairOnly => sfs_mode_SFS_MODE_FAIR_ONLY,
            },
            moved: 0,
            left: 0,
        };
        let mut moved = 0;
        loop {
            run_program(&mut self.skel.progs.switch_mode, &mut switch)
                .context("cannot switch the mode")?;
            moved += u64::from(switch.moved);
            if switch.left == 0 {
                return Ok(moved);
            }
        }
    }

    /// Dismisses a report of overload that the loader does not act on.
    pub fn dismiss_overload(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            Word::store(&mut bss.overload_since, 0);
        }
    }

    /// Returns the counters of each CPU.
    ///
    /// # Errors
    ///
    /// The map cannot be read.
    pub fn stats(&self) -> Result<Vec<sfs_stats>> {
        let per_cpu = self
            .skel
            .maps
            .stats
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .context("cannot read the kernel half's counters")?
            .context("the kernel half has no counters")?;
        Ok(per_cpu
            .iter()
            .filter_map(|bytes| read_struct(bytes))
            .collect())
    }
}

fn ignore(error: libbpf_rs::Error, kind: ErrorKind) -> libbpf_rs::Result<()> {
    if error.kind() == kind {
        Ok(())
    } else {
        Err(error)
    }
}
