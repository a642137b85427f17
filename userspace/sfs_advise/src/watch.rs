//! Loads the BPF program that records processes, and reads it.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::path::Path;
use std::rc::Rc;

use anyhow::{bail, ensure, Context, Result};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{set_print, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};
use zerocopy::FromBytes;

use crate::bpf_intf::{self as bpf, sfs_advise_cpu, sfs_advise_kind_SFS_ADVISE_KINDS as KINDS};
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::process::Process;

const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// CPU time of a kind of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// In ns.
    pub ns: u64,
    /// Stays on a CPU.
    pub turns: u64,
}

/// CPU time by kind of tasks, of all CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usages {
    /// Processes that began during the recording.
    pub functions: Usage,
    /// Kernel threads and real-time tasks.
    pub kernel: Usage,
    /// Others.
    pub others: Usage,
}

/// The program in the kernel.
pub struct Watch {
    skel: BpfSkel<'static>,
    ended: RingBuffer<'static>,
    seen: Rc<RefCell<Vec<Process>>>,
}

impl Watch {
    /// Loads the program, which records at most `room` processes at a time. With `with_groups`
    /// they have their control groups.
    ///
    /// # Errors
    /// If the kernel refuses it, which needs root and a kernel with BTF.
    pub fn load(room: u32, with_groups: bool) -> Result<Self> {
        if !Path::new(VMLINUX_BTF).exists() {
            bail!(
                "this kernel has no type information in {VMLINUX_BTF}: boot one with \
                 CONFIG_DEBUG_INFO_BTF=y"
            );
        }
        if !nix::unistd::geteuid().is_root() {
            bail!("recording needs root: it sees the processes of all users; use sudo, or --from");
        }
        // libbpf's own output is not fit for users, and the error has the reason.
        let printed = set_print(None);
        let loaded = Self::open_and_attach(room, with_groups);
        set_print(printed);
        loaded
    }

    fn open_and_attach(room: u32, with_groups: bool) -> Result<Self> {
        // The program lives as long as the process.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = BpfSkelBuilder::default()
            .open(object)
            .context("cannot open the program that records processes")?;
        // A part of scx's headers, which needs a kernel with sched_ext.
        open.progs.scx_lib_init_probe.set_autoload(false);
        let memory = open.maps.processes.set_max_entries(room);
        memory.context("cannot set the memory for processes")?;
        let constants = open.maps.rodata_data.as_deref_mut();
        constants
            .context("the program has no constants")?
            .with_groups = with_groups;
        let mut skel = open.load().context(
            "the kernel refuses the program that records processes; it needs root and a kernel \
             with BTF",
        )?;
        skel.attach()
            .context("cannot attach the program that records processes")?;
        let seen = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&seen);
        let mut builder = RingBufferBuilder::new();
        builder.add(&skel.maps.ended, move |bytes| {
            into.borrow_mut().extend(Process::read(bytes));
            0
        })?;
        let ended = builder.build()?;
        Ok(Self { skel, ended, seen })
    }

    /// Begins to record at `now`, ns of CLOCK_MONOTONIC, not 0.
    ///
    /// # Errors
    /// If the program has no data.
    pub fn start(&mut self, now: u64) -> Result<()> {
        self.data()?.watching_since = now;
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// If the program has no data.
    pub fn stop(&mut self) -> Result<()> {
        self.start(0)
    }

    /// Returns the number of processes recorded since the start, also of those that have not ended.
    ///
    /// # Errors
    /// If the program has no data.
    pub fn begun(&mut self) -> Result<u64> {
        Ok(self.data()?.begun)
    }

    /// Returns the number of ended processes that could not be reported, and of processes for
    /// which there was no room.
    ///
    /// # Errors
    /// If the program has no data.
    pub fn lost(&mut self) -> Result<(u64, u64)> {
        let data = self.data()?;
        Ok((data.lost, data.missed))
    }

    fn data(&mut self) -> Result<&mut crate::bpf_skel::types::bss> {
        let data = self.skel.maps.bss_data.as_deref_mut();
        data.context("the program that records processes has no data")
    }

    /// Adds the processes that have ended since the last call.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn read_ended(&self, into: &mut Vec<Process>) -> Result<()> {
        let read = self.ended.consume_raw();
        ensure!(read >= 0, "cannot read the ended processes: error {read}");
        into.append(&mut self.seen.borrow_mut());
        Ok(())
    }

    /// Returns the processes that have not ended.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn unended(&self) -> Result<Vec<Process>> {
        let map = &self.skel.maps.processes;
        let mut found = Vec::new();
        for key in map.keys() {
            let value = map.lookup(&key, MapFlags::ANY);
            let value = value.context("cannot read a process")?;
            found.extend(value.as_deref().and_then(Process::read));
        }
        Ok(found)
    }

    /// Returns the CPU time up to `now`, ns of CLOCK_MONOTONIC. A CPU that had one task all the
    /// time counts as idle.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn usages(&self, now: u64) -> Result<Usages> {
        let map = &self.skel.maps.cpus;
        let cpus = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let cpus = cpus
            .context("cannot read the CPU time")?
            .unwrap_or_default();
        let mut all = Usages::default();
        for bytes in &cpus {
            let Ok((mut cpu, _)) = sfs_advise_cpu::read_from_prefix(bytes) else {
                continue;
            };
            if cpu.since != 0 && cpu.kind < u64::from(KINDS) {
                cpu.ns[cpu.kind as usize] += now.saturating_sub(cpu.since);
                cpu.turns[cpu.kind as usize] += 1;
            }
            all.add(&cpu);
        }
        Ok(all)
    }
}

impl Usages {
    fn add(&mut self, cpu: &sfs_advise_cpu) {
        let kinds = [
            (
                &mut self.functions,
                bpf::sfs_advise_kind_SFS_ADVISE_FUNCTION,
            ),
            (&mut self.kernel, bpf::sfs_advise_kind_SFS_ADVISE_KERNEL),
            (&mut self.others, bpf::sfs_advise_kind_SFS_ADVISE_OTHER),
        ];
        for (usage, kind) in kinds {
            usage.ns += cpu.ns[kind as usize];
            usage.turns += cpu.turns[kind as usize];
        }
    }
}
