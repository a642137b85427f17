//! Loads the program that reports events, and reads them.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;

use anyhow::{bail, ensure, Context, Result};
use libbpf_rs::btf::types::{Func, Typedef};
use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{OpenObject, RingBuffer, RingBufferBuilder};
use zerocopy::FromBytes;

use crate::bpf_intf as bpf;
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel};
use crate::cpus::Cpus;
use crate::event::{Event, Left, Task, What, Work};
use crate::kind::{Place, Turn};
use crate::messages;
use crate::scheduler::{Contexts, Loaded};

const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// `task_struct.__state` of a task that will not be scheduled again.
const TASK_DEAD: u32 = 0x80;

/// `enum sfs_unit` of the kernel half.
const UNIT_CGROUP: u32 = 1;
const UNIT_THREAD: u32 = 2;

/// What the kernel reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A scheduling event.
    Event(Event),
    /// A cgroup has been made: its id and path.
    Cgroup(u64, String),
}

/// A watch.
pub struct Watch {
    skel: BpfSkel<'static>,
    events: RingBuffer<'static>,
    /// What was read from `events`.
    seen: Rc<RefCell<Vec<Report>>>,
    missing: Vec<&'static str>,
}

impl Watch {
    /// Loads the program beside the scheduler that runs. `bytes`, a power of two, is the memory for
    /// events that have not been read; a switch takes 184 bytes, a wake-up 96.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program, which needs root and a kernel with BTF, or scx_sfs is of
    /// another version.
    pub fn load(loaded: &Loaded, bytes: u32) -> Result<Self> {
        if !Path::new(VMLINUX_BTF).exists() {
            bail!(
                "this kernel has no type information in {VMLINUX_BTF}: boot one with \
                 CONFIG_DEBUG_INFO_BTF=y"
            );
        }
        if !nix::unistd::geteuid().is_root() {
            bail!("tracing needs root: it reads scheduling events of all processes");
        }
        let contexts = match loaded {
            Loaded::ScxSfs(_) => Some(Contexts::find()?),
            _ => None,
        };
        messages::keep();
        let watch = Self::open_and_attach(contexts.as_ref(), bytes);
        if watch.is_err() {
            messages::show();
        }
        watch
    }

    fn open_and_attach(contexts: Option<&Contexts>, bytes: u32) -> Result<Self> {
        // The program lives as long as the process.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = BpfSkelBuilder::default()
            .open(object)
            .context("cannot open the program that reports scheduling events")?;
        let memory = open.maps.events.set_max_entries(bytes);
        memory.context("cannot set the memory for scheduling events")?;
        if let Some(contexts) = contexts {
            use_contexts(&mut open, contexts)?;
        }
        let constants = open.maps.rodata_data.as_deref_mut();
        constants
            .context("the program has no constants")?
            .nr_cpu_ids = nr_cpu_ids()?;
        let missing = leave_out(&mut open)?;
        let mut skel = open.load().context(
            "the kernel refuses the program that reports scheduling events; it needs root and a \
             kernel with BTF",
        )?;
        skel.attach()
            .context("cannot attach the program that reports scheduling events")?;
        let unit = contexts.map(|contexts| contexts.unit);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let events = reader(&skel, unit, Rc::clone(&seen))?;
        Ok(Self {
            skel,
            events,
            seen,
            missing,
        })
    }

    /// Returns what this kernel cannot report, in words.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Begins to report events.
    ///
    /// # Errors
    ///
    /// The program has no data.
    pub fn start(&mut self) -> Result<()> {
        self.data()?.watching = true;
        Ok(())
    }

    /// Stops.
    ///
    /// # Errors
    ///
    /// The program has no data.
    pub fn stop(&mut self) -> Result<()> {
        self.data()?.watching = false;
        Ok(())
    }

    /// Returns the number of events lost since the start.
    ///
    /// # Errors
    ///
    /// The program has no data.
    pub fn lost(&mut self) -> Result<u64> {
        Ok(self.data()?.lost)
    }

    fn data(&mut self) -> Result<&mut crate::bpf_skel::types::bss> {
        let data = self.skel.maps.bss_data.as_deref_mut();
        data.context("the program that reports scheduling events has no data")
    }

    /// Puts what was reported since the last call into `reports` instead of what is there, almost in
    /// the order of time: CPUs write concurrently.
    ///
    /// # Errors
    ///
    /// The events cannot be read.
    pub fn read(&self, reports: &mut Vec<Report>) -> Result<()> {
        let read = self.events.consume_raw();
        ensure!(read >= 0, "cannot read the scheduling events: {read}");
        reports.clear();
        // Both keep their memory.
        std::mem::swap(reports, &mut self.seen.borrow_mut());
        Ok(())
    }
}

/// Returns a reader of the events, which puts them into `seen`.
fn reader(
    skel: &BpfSkel<'_>,
    unit: Option<u32>,
    seen: Rc<RefCell<Vec<Report>>>,
) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    let failed = "cannot read the scheduling events";
    let add = move |bytes: &[u8]| {
        seen.borrow_mut().extend(report_of(bytes, unit));
        0
    };
    builder.add(&skel.maps.events, add).context(failed)?;
    builder.build().context(failed)
}

/// Lets the program read the scheduler's maps.
fn use_contexts(open: &mut OpenBpfSkel<'_>, contexts: &Contexts) -> Result<()> {
    let tasks = open.maps.task_ctxs.reuse_fd(contexts.tasks.as_fd());
    tasks.context("cannot use the tasks' contexts of scx_sfs")?;
    let sandboxes = open.maps.sandboxes.reuse_fd(contexts.sandboxes.as_fd());
    sandboxes.context("cannot use the sandboxes of scx_sfs")?;
    let constants = open.maps.rodata_data.as_deref_mut();
    let constants = constants.context("the program has no constants")?;
    let places = contexts.places;
    constants.with_contexts = true;
    constants.unit = contexts.unit;
    constants.at_turn = places.turn;
    constants.at_sandbox = places.sandbox;
    constants.at_own = places.own;
    constants.at_arrived = places.arrived;
    constants.at_function = places.function;
    constants.at_seq = places.seq;
    constants.at_open = places.open;
    constants.at_shared = places.shared;
    Ok(())
}

/// Leaves out programs on what this kernel does not have. Returns what is missed.
fn leave_out(open: &mut OpenBpfSkel<'_>) -> Result<Vec<&'static str>> {
    let types = Btf::from_vmlinux().context("the kernel's type information cannot be read")?;
    let point = |name: &str| types.type_by_name::<Typedef<'_>>(name).is_some();
    let function = |name: &str| types.type_by_name::<Func<'_>>(name).is_some();
    let mut missing = Vec::new();
    // A part of scx's headers, which needs a kernel with sched_ext.
    open.progs.scx_lib_init_probe.set_autoload(false);
    if !point("btf_trace_sched_exit_tp") {
        open.progs.on_schedule.set_autoload(false);
        missing.push("turns and invocations that change while a task keeps its CPU");
    }
    let moves = [
        (&mut open.progs.on_move, "scx_bpf_dsq_move"),
        (&mut open.progs.on_move_vtime, "scx_bpf_dsq_move_vtime"),
    ];
    for (program, name) in moves {
        if !function(name) {
            program.set_autoload(false);
            missing.push("the end of a stay out of quota, and other changes of the queue");
        }
    }
    let others = [
        (&mut open.progs.on_class, "__sched_setscheduler"),
        (&mut open.progs.on_inet_accept, "inet_accept"),
        (&mut open.progs.on_unix_accept, "unix_accept"),
    ];
    for (program, name) in others {
        if !function(name) {
            program.set_autoload(false);
        }
    }
    missing.dedup();
    Ok(missing)
}

/// Returns the number of CPUs that there may be.
fn nr_cpu_ids() -> Result<u32> {
    let cpus = libbpf_rs::num_possible_cpus().context("cannot find out the number of CPUs")?;
    Ok(cpus as u32)
}

/// Returns what a record of the ring buffer has. None: it is of an unknown kind, or cut.
fn report_of(bytes: &[u8], unit: Option<u32>) -> Option<Report> {
    let kind = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    let what = match kind {
        bpf::sfs_trace_kind_SFS_TRACE_SWITCH => {
            let (event, _) = bpf::sfs_trace_switch::read_from_prefix(bytes).ok()?;
            let io = flag(&event.prev, bpf::sfs_trace_flags_SFS_TRACE_IO);
            What::Switch {
                cpu: event.cpu as usize,
                prev: task_of(&event.prev, unit),
                left: match event.left {
                    0 => Left::Runnable,
                    state if state & TASK_DEAD != 0 => Left::Dead,
                    _ => Left::Asleep { io },
                },
                next: task_of(&event.next, unit),
            }
        }
        bpf::sfs_trace_kind_SFS_TRACE_CONFINED => {
            let (event, _) = bpf::sfs_trace_confined::read_from_prefix(bytes).ok()?;
            What::Confined(event.pid, Cpus::of_words(event.cpus))
        }
        bpf::sfs_trace_kind_SFS_TRACE_CGROUP => {
            let (event, _) = bpf::sfs_trace_cgroup::read_from_prefix(bytes).ok()?;
            let end = event.path.iter().position(|byte| *byte == 0);
            let path = &event.path[..end.unwrap_or(event.path.len())];
            let path = String::from_utf8_lossy(path).into_owned();
            return Some(Report::Cgroup(event.id, path));
        }
        _ => {
            let (event, _) = bpf::sfs_trace_single::read_from_prefix(bytes).ok()?;
            let task = task_of(&event.task, unit);
            match kind {
                bpf::sfs_trace_kind_SFS_TRACE_WAKE => What::Wake { task, new: false },
                bpf::sfs_trace_kind_SFS_TRACE_NEW => What::Wake { task, new: true },
                bpf::sfs_trace_kind_SFS_TRACE_MOVED => What::Moved(task),
                bpf::sfs_trace_kind_SFS_TRACE_LOOK => What::Look(event.cpu as usize, task),
                _ => return None,
            }
        }
    };
    let at_ns = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
    Some(Report::Event(Event { at_ns, what }))
}

fn flag(task: &bpf::sfs_trace_task, flag: u32) -> bool {
    u32::from(task.flags) & flag != 0
}

/// Returns the task; `unit` is that of scx_sfs, None: it does not run.
fn task_of(task: &bpf::sfs_trace_task, unit: Option<u32>) -> Task {
    let has_context = unit.is_some() && flag(task, bpf::sfs_trace_flags_SFS_TRACE_CONTEXT);
    let turn = if has_context {
        Turn::of_number(task.turn)
    } else {
        Turn::Other
    };
    let id = match unit {
        Some(UNIT_CGROUP) => task.sandbox,
        Some(UNIT_THREAD) => task.pid as u64,
        _ => task.tgid as u64,
    };
    Task {
        pid: task.pid,
        tgid: task.tgid,
        comm: task.comm,
        cgroup: task.cgroup,
        // Ids of another scheduler's queues have another meaning.
        place: unit.and_then(|_| Place::of_queue(task.queue)),
        turn,
        real_time: flag(task, bpf::sfs_trace_flags_SFS_TRACE_REAL_TIME),
        kernel: flag(task, bpf::sfs_trace_flags_SFS_TRACE_KERNEL),
        confined: flag(task, bpf::sfs_trace_flags_SFS_TRACE_CPUS),
        last: flag(task, bpf::sfs_trace_flags_SFS_TRACE_LAST),
        work: (has_context && id != 0).then_some(Work {
            unit: id,
            seq: task.seq,
            open: flag(task, bpf::sfs_trace_flags_SFS_TRACE_OPEN),
            arrived_at: task.arrived_at,
            function: task.function,
            sandbox: task.sandbox,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn single(kind: u32) -> bpf::sfs_trace_single {
        let task = bpf::sfs_trace_task {
            arrived_at: 5,
            function: 6,
            sandbox: 7,
            cgroup: 8,
            queue: 0x2_0000,
            pid: 10,
            tgid: 9,
            seq: 3,
            turn: 1,
            flags: (bpf::sfs_trace_flags_SFS_TRACE_CONTEXT | bpf::sfs_trace_flags_SFS_TRACE_OPEN)
                as u16,
            comm: *b"node\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        bpf::sfs_trace_single {
            at_ns: 77,
            kind,
            cpu: 2,
            task,
        }
    }

    fn task(unit: Option<u32>) -> Task {
        task_of(&single(0).task, unit)
    }

    #[test]
    fn records_become_events() {
        let event = single(bpf::sfs_trace_kind_SFS_TRACE_LOOK);
        let report = report_of(event.as_bytes(), Some(0));
        let what = What::Look(2, task(Some(0)));
        assert_eq!(report, Some(Report::Event(Event { at_ns: 77, what })));
    }

    #[test]
    fn cut_and_unknown_records_are_left_out() {
        let event = single(bpf::sfs_trace_kind_SFS_TRACE_WAKE);
        let bytes = event.as_bytes();
        for end in 0..bytes.len() {
            assert_eq!(report_of(&bytes[..end], None), None, "{end} bytes");
        }
        assert_eq!(report_of(single(99).as_bytes(), None), None);
    }

    #[test]
    fn the_unit_is_the_schedulers() {
        let unit = |unit| task(Some(unit)).work.unwrap().unit;
        assert_eq!((unit(0), unit(UNIT_CGROUP), unit(UNIT_THREAD)), (9, 7, 10));
        assert_eq!(task(Some(0)).turn, Turn::Filter);
        assert_eq!(task(Some(0)).place, Place::of_queue(0x2_0000));
        // Nothing of it has a meaning with another scheduler.
        assert_eq!(task(None).work, None);
        assert_eq!(task(None).turn, Turn::Other);
        assert_eq!(task(None).place, None);
    }
}
