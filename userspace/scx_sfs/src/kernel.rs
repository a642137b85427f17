//! The kernel half: loading it, and talking to it.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Mutex;

use anyhow::{bail, Context, Result};
use libbpf_rs::libbpf_sys::{bpf_object_open_opts, size_t};
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{
    set_print, ErrorKind, Link, MapCore, MapFlags, OpenObject, PrintLevel, ProgramInput,
    ProgramMut, RingBuffer, RingBufferBuilder,
};
use scx_sfs::exit_text::{dump_lines, RawExit};
use scx_sfs::hints::{KernelHint, Verdicts};
use scx_utils::{
    compat, scx_ops_attach, scx_ops_load, scx_ops_open, try_set_rlimit_infinity, uei_exited,
    ScxExitKind, UserExitInfo,
};
use sfs_policy::learn::Table;
use sfs_policy::Mode;
use tracing::{debug, warn};

use crate::boundary;
use crate::bpf_intf::{
    sfs_completion, sfs_event, sfs_hint, sfs_hint_batch, sfs_mode_switch, sfs_rank_table,
    sfs_stats, SFS_HINT_BATCH, SFS_NO_TABLE,
};
use crate::bpf_intf::{sfs_mode_SFS_MODE_FAIR_ONLY, sfs_mode_SFS_MODE_FILTER};
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel};
use crate::history::Span;
use crate::learn::Ranking;
use crate::left_out::LeftOut;
use crate::options::Options;
use crate::preflight::isolated_cpus;
use crate::quota;
use crate::realtime::RealTime;
use crate::shards;

/// The scheduler, loaded and attached. Dropping it puts the machine back on its
/// default scheduler.
pub struct KernelHalf<'object> {
    skel: BpfSkel<'object>,
    link: Option<Link>,
    /// The programs that see boundaries.
    watchers: Vec<Link>,
    left_out: LeftOut,
}

/// The three values that follow from S; all in ns of CPU time or of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// S.
    pub slice_ns: u64,
    /// O x S: the queueing delay at which overload begins.
    pub overload_wait_ns: u64,
    /// The delay at which it is over.
    pub recover_wait_ns: u64,
}

impl<'object> KernelHalf<'object> {
    /// Loads the scheduler, for functions that may use `cpus` CPUs, with `slice` to start
    /// with. What has been started in one of the spans `past` has been a function before. It
    /// schedules nothing until `attach()`.
    ///
    /// # Errors
    ///
    /// The kernel refuses it; nothing stays loaded.
    pub fn load(
        options: &Options,
        cpus: u32,
        slice: Slice,
        past: &[Span],
        object: &'object mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        try_set_rlimit_infinity();
        set_print(Some((PrintLevel::Debug, keep_libbpf_message)));
        explained(Self::open_and_load(options, cpus, slice, past, object))
    }

    /// Has the scheduler schedule.
    ///
    /// # Errors
    ///
    /// The kernel refuses it; nothing stays loaded.
    pub fn attach(&mut self) -> Result<()> {
        self.watchers = boundary::attach(&mut self.skel);
        explained(self.attach_scheduler())
    }

    /// The kernel hands it the tasks one by one. Those that it has already do not run until
    /// all are handed over, and the others run before this thread, unless that is a real-time
    /// one: on a busy machine they waited for seconds.
    fn attach_scheduler(&mut self) -> Result<()> {
        let skel = &mut self.skel;
        let _first = RealTime::enter();
        self.link = Some(scx_ops_attach!(skel, sfs_ops)?);
        Ok(())
    }

    fn open_and_load(
        options: &Options,
        cpus: u32,
        slice: Slice,
        past: &[Span],
        object: &'object mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        let builder = BpfSkelBuilder::default();
        let kernel_config = kernel_config()?;
        let open_options = Some(open_options(options, &kernel_config));
        let mut skel = scx_ops_open!(builder, object, sfs_ops, open_options)?;
        if options.verbose {
            log_verifier_statistics(&mut skel);
        }

        let ops = skel.struct_ops.sfs_ops_mut();
        ops.exit_dump_len = options.exit_dump_len;
        ops.flags = *compat::SCX_OPS_ENQ_EXITING
            | *compat::SCX_OPS_ENQ_LAST
            | *compat::SCX_OPS_ENQ_MIGRATION_DISABLED;
        if options.partial {
            ops.flags |= *compat::SCX_OPS_SWITCH_PARTIAL;
        }

        if !quota::kernel_tells()? {
            warn!(
                "this kernel does not tell a scheduler of cpu.max (6.17 and later do): {}",
                if options.ignore_quotas {
                    "quotas of cgroups are not kept"
                } else {
                    "scx_sfs leaves when a cgroup has a quota"
                }
            );
            skel.struct_ops.sfs_ops_mut().cgroup_set_bandwidth = std::ptr::null_mut();
            skel.progs.sfs_cgroup_set_bandwidth.set_autoload(false);
        }

        let partition = shards::partition(options.filter_shards)?;
        debug!("FILTER has {} shards", partition.shards);
        let tunables = skel
            .maps
            .rodata_data
            .as_mut()
            .context("the kernel half has no tunables")?;
        tunables.fair_slice_ns = options.fair_slice_us * 1000;
        tunables.fair_max_wait_ns = options.fair_max_wait_ms * 1_000_000;
        tunables.iat_window = options.iat_window;
        tunables.overload_enabled = !options.no_overload;
        tunables.loader_tgid = std::process::id() as i32;
        tunables.nr_cpu_ids = *scx_utils::NR_CPU_IDS as u32;
        tunables.nr_shards = partition.shards;
        tunables.cpu_shards = partition.of_cpu;
        tunables.debug = options.debug;
        tunables.policy = options.policy.number();
        tunables.ageing_tenths = (options.ageing * 10.0).round() as u32;
        tunables.unit = options.unit.number();
        tunables.boundaries = options.boundaries().fold(0, |all, one| all | one.bit());
        tunables.identity = options.identity().number();
        tunables.only_sandboxes = !options.cgroup.is_empty();
        tunables.idle_boundary_ns = options.idle_boundary_ms * 1_000_000;
        tunables.receive_port = options.receive_port.to_be();
        // With --cgroup the cgroups tell.
        let past = if options.cgroup.is_empty() { past } else { &[] };
        for (place, span) in tunables.past.iter_mut().zip(past) {
            (place.from, place.to) = (span.from, span.to);
        }
        boundary::choose_programs(&mut skel, &options.boundary, options.identity());
        skel.maps
            .sandboxes
            .set_max_entries(options.max_sandboxes)
            .context("cannot make room for sandboxes")?;
        make_room_for_groups(&mut skel, options.max_cgroups)?;

        let mut skel = scx_ops_load!(skel, sfs_ops, uei)?;
        let mut half = {
            let data = skel.maps.data_data.as_mut();
            data.context("the kernel half has no data")?
                .nr_function_cpus = cpus;
            Self {
                skel,
                link: None,
                watchers: Vec::new(),
                left_out: LeftOut::default(),
            }
        };
        half.set_slice(slice);
        Ok(half)
    }

    /// Makes a ring buffer of the kernel half's events and of the invocations that
    /// have ended; `take` and `learn` get each.
    ///
    /// # Errors
    ///
    /// Out of memory or of descriptors.
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

    /// Returns the BPF map with the arrivals.
    pub fn iat_map(&self) -> BorrowedFd<'_> {
        self.skel.maps.iat_map.as_fd()
    }

    /// Sets S and what follows from it. Invocations keep the credit that they
    /// have been given.
    pub fn set_slice(&mut self, slice: Slice) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            write_shared(&mut data.slice_ns, slice.slice_ns);
            write_shared(&mut data.overload_wait_ns, slice.overload_wait_ns);
        }
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            write_shared(&mut bss.recover_wait_ns, slice.recover_wait_ns);
        }
    }

    /// Tells the kernel half that the cgroup `id` is a sandbox of `function`. Where
    /// there is no room for it, that is said, and it becomes one when another goes.
    pub fn add_sandbox(&mut self, id: u64, function: u64) {
        match self.put_sandbox(id, function) {
            Ok(()) => self.take_left_out(),
            Err(error) => self.left_out.add(id, function, &error),
        }
    }

    /// Tells the kernel half that the cgroup `id` is no sandbox any more.
    pub fn remove_sandbox(&mut self, id: u64) {
        if self.left_out.remove(id) {
            return;
        }
        let map = &self.skel.maps.sandboxes;
        let removed = map
            .delete(&id.to_ne_bytes())
            .or_else(|error| ignore(error, ErrorKind::NotFound));
        if let Err(error) = removed {
            // No task is in it any more, so that nobody looks for it.
            warn!("cannot tell the kernel half that a sandbox is gone: {error}");
        }
        self.take_left_out();
    }

    /// There has been room: takes as many of those left out as there is room for now.
    fn take_left_out(&mut self) {
        while let Some((id, function)) = self.left_out.first() {
            if self.put_sandbox(id, function).is_err() {
                break;
            }
            self.left_out.remove(id);
        }
        self.count_sandbox_change();
    }

    /// Returns how many sandboxes there is no room for.
    pub fn sandboxes_left_out(&self) -> usize {
        self.left_out.len()
    }

    fn put_sandbox(&self, id: u64, function: u64) -> libbpf_rs::Result<()> {
        let map = &self.skel.maps.sandboxes;
        // The last field of `struct sandbox` is the function; the others begin at 0.
        let mut value = vec![0; map.value_size() as usize - size_of::<u64>()];
        value.extend(function.to_ne_bytes());
        map.update(&id.to_ne_bytes(), &value, MapFlags::NO_EXIST)
            .or_else(|error| ignore(error, ErrorKind::AlreadyExists))
    }

    /// Has tasks look anew for the sandbox that they are in.
    fn count_sandbox_change(&mut self) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            let next = data.sandbox_generation.wrapping_add(1);
            write_shared(&mut data.sandbox_generation, next);
        }
    }

    /// Applies hints from the platform, at most [`SFS_HINT_BATCH`] of them.
    ///
    /// # Errors
    ///
    /// The kernel does not run the program that does it.
    pub fn apply_hints(&mut self, batch: &[KernelHint]) -> Result<Verdicts> {
        let map = &self.skel.maps.hints;
        for (index, hint) in (0u32..SFS_HINT_BATCH).zip(batch) {
            let value = sfs_hint {
                pid: hint.pid,
                flags: 0,
                arrived_at: hint.arrived_at,
                function: hint.function,
                service_ns: hint.service_ns,
            };
            map.update(&index.to_ne_bytes(), bytes_of(&value), MapFlags::ANY)
                .context("cannot hand a hint to the kernel half")?;
        }
        let mut arguments = sfs_hint_batch {
            nr: batch.len().min(SFS_HINT_BATCH as usize) as u32,
            applied: 0,
            dead: 0,
            foreign: 0,
            stale: 0,
        };
        run_program(&mut self.skel.progs.apply_hints, &mut arguments)
            .context("cannot apply hints")?;
        Ok(Verdicts {
            applied: arguments.applied.into(),
            foreign: arguments.foreign.into(),
            dead: arguments.dead.into(),
            stale: arguments.stale.into(),
        })
    }

    /// Switches the mode and takes the backlog along. Returns how many tasks
    /// that moved.
    ///
    /// # Errors
    ///
    /// The kernel does not run the program that does it.
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

    /// Takes back a report of overload that the loader does not act on.
    pub fn dismiss_overload(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            write_shared(&mut bss.overload_since, 0);
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

    /// Returns whether the kernel has ejected or unloaded the scheduler.
    pub fn exited(&self) -> bool {
        uei_exited!(&self.skel, uei)
    }

    /// Returns the kernel's kind of exit (enum scx_exit_kind); 0: it has not ended.
    pub fn exit_kind(&self) -> i32 {
        let data = self.skel.maps.data_data.as_ref();
        data.map_or(0, |data| data.uei.kind)
    }

    /// Unloads the scheduler and says why it has ended.
    ///
    /// # Errors
    ///
    /// It has ended with an error; the kernel's dump goes to standard error.
    pub fn unload(&mut self) -> Result<UserExitInfo> {
        drop(self.link.take());
        self.watchers.clear();
        let info = self.exit_info()?;
        // It panics if standard error cannot be written: then nobody can be told.
        match catch_unwind(AssertUnwindSafe(|| info.report())) {
            Ok(reported) => reported?,
            Err(_) if self.has_failed() => bail!("cannot say why the scheduler has ended"),
            Err(_) => {}
        }
        Ok(info)
    }

    /// Returns what the kernel has said of the end, and prints its dump, if there is one.
    /// (scx's `uei_read!` panics where a name in it is no UTF-8.)
    fn exit_info(&self) -> Result<UserExitInfo> {
        let data = self.skel.maps.data_data.as_ref();
        let uei = &data.context("the kernel half has no data")?.uei;
        let has = |field| compat::struct_has_field("scx_exit_info", field).unwrap_or(false);
        // The kernel half writes no more: it is unloaded.
        let raw = RawExit {
            kind: uei.kind,
            code: has("exit_code").then_some(uei.exit_code),
            cpu: has("exit_cpu").then_some(uei.exit_cpu),
            reason: &uei.reason,
            message: &uei.msg,
        };
        let map = &self.skel.maps.data_uei_dump;
        let dump = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let dump = dump.ok().flatten().unwrap_or_default();
        dump_lines(&dump).iter().for_each(|line| crate::note(line));
        Ok(raw.into_info())
    }

    /// Returns whether it has ended otherwise than somebody asked for.
    fn has_failed(&self) -> bool {
        let data = self.skel.maps.data_data.as_ref();
        data.is_none_or(|data| data.uei.kind > ScxExitKind::UnregKern as i32)
    }
}

impl Ranking for KernelHalf<'_> {
    fn set_rank_table(&mut self, id: u16, table: &Table) -> Result<()> {
        let value = sfs_rank_table {
            rank: table.rank,
            worse: table.worse,
            pad: [0; 12],
        };
        let map = &self.skel.maps.rank_tables;
        map.update(
            &u32::from(id).to_ne_bytes(),
            bytes_of(&value),
            MapFlags::ANY,
        )
        .context("cannot hand a rank table to the kernel half")
    }

    fn set_strangers(&mut self, id: u16) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            write_shared(&mut data.strangers, id.into());
        }
    }

    fn set_function_table(&mut self, function: u64, id: u16) -> Result<()> {
        let (key, value) = (function.to_ne_bytes(), u32::from(id).to_ne_bytes());
        let map = &self.skel.maps.function_tables;
        map.update(&key, &value, MapFlags::ANY)
            .context("cannot tell the kernel half of another function")
    }

    fn forget_function(&mut self, function: u64) -> Result<()> {
        let map = &self.skel.maps.function_tables;
        map.delete(&function.to_ne_bytes())
            .or_else(|error| ignore(error, ErrorKind::NotFound))
            .context("cannot have the kernel half forget a function")
    }

    /// A word in memory that is shared: what is queued by rank is served first, what is
    /// queued from now on goes to FILTER or FAIR (rank.bpf.h).
    fn rank_no_more(&mut self) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            write_shared(&mut data.strangers, SFS_NO_TABLE);
        }
    }
}

/// Adds to an error of the kernel what is known of its cause.
fn explained<T>(result: Result<T>) -> Result<T> {
    match isolated_cpus() {
        Some(cpus) if result.is_err() => result.with_context(|| {
            format!(
                "the kernel takes no sched_ext scheduler while its command line isolates \
                 CPUs (isolcpus={cpus}): isolate them in a cpuset partition instead \
                 (cpuset.cpus.partition)"
            )
        }),
        _ => {
            if result.is_err() {
                show_libbpf_messages();
            }
            result
        }
    }
}

/// Returns what the kernel half must know of the kernel's configuration, in the form of
/// its file: with it, nobody needs the file, which is not there on every machine.
fn kernel_config() -> Result<CString> {
    // A task has this field with preemptible RCU only.
    let preemptible = compat::struct_has_field("task_struct", "rcu_read_lock_nesting")?;
    let value = if preemptible { 'y' } else { 'n' };
    Ok(CString::new(format!("CONFIG_PREEMPT_RCU={value}\n"))?)
}

/// Returns libbpf's options: the user's, and the configuration if the user has none.
/// They are good for as long as that is.
fn open_options(options: &Options, kernel_config: &CStr) -> bpf_object_open_opts {
    let given = options.libbpf.clone().into_bpf_open_opts();
    let mut open = given.unwrap_or_else(|| bpf_object_open_opts {
        sz: size_of::<bpf_object_open_opts>() as size_t,
        ..bpf_object_open_opts::default()
    });
    if open.kconfig.is_null() {
        open.kconfig = kernel_config.as_ptr();
    }
    open
}

fn ignore(error: libbpf_rs::Error, kind: ErrorKind) -> libbpf_rs::Result<()> {
    if error.kind() == kind {
        Ok(())
    } else {
        Err(error)
    }
}

/// Writes a word that the kernel half reads at any time.
fn write_shared<T>(word: &mut T, value: T) {
    // SAFETY: `word` is a valid reference; volatile, since it is read elsewhere.
    unsafe { std::ptr::from_mut(word).write_volatile(value) }
}

/// Runs a program of the kernel half that takes and fills a C struct of intf.h.
fn run_program<T: Copy>(program: &mut ProgramMut<'_>, arguments: &mut T) -> Result<()> {
    // SAFETY: `arguments` is a plain C struct of integers that outlives the slice.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut((&raw mut *arguments).cast::<u8>(), size_of::<T>())
    };
    let input = ProgramInput {
        context_in: Some(bytes),
        ..ProgramInput::default()
    };
    let output = program.test_run(input)?;
    if output.return_value != 0 {
        bail!("error {}", output.return_value);
    }
    Ok(())
}

/// Returns the bytes of a C struct of intf.h.
fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the structs of intf.h consist of integers without gaps between them.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }
}

/// Returns the struct at the start of `bytes`, if they are long enough.
fn read_struct<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: only used for the C structs of intf.h, which consist of integers,
    // so that any bytes are valid; the length is checked.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Has the kernel half keep so many groups, and list all of them at a time that are out of quota.
fn make_room_for_groups(skel: &mut OpenBpfSkel<'_>, most: u32) -> Result<()> {
    let maps = [&mut skel.maps.groups, &mut skel.maps.throttled_groups];
    for map in maps {
        map.set_max_entries(most)
            .context("cannot make room for cgroups")?;
    }
    Ok(())
}

/// Has libbpf report what the verifier did for each program.
fn log_verifier_statistics(skel: &mut OpenBpfSkel<'_>) {
    const BPF_LOG_STATS: u32 = 4; // kernel/bpf/verifier.c, include/linux/bpf_verifier.h

    for mut program in skel.open_object_mut().progs_mut() {
        program.set_log_level(BPF_LOG_STATS);
    }
}

/// What libbpf said while loading. Much of it is benign ("member not found in
/// kernel, skipping"), so it is shown only if loading fails, or with --verbose.
static LIBBPF_MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Lines shown of it; a verifier's log ends with what matters.
const SHOWN_MESSAGES: usize = 60;

fn keep_libbpf_message(level: PrintLevel, message: String) {
    let message = message.trim_end();
    message.lines().for_each(|line| debug!("{line}"));
    if level == PrintLevel::Debug {
        return;
    }
    if let Ok(mut messages) = LIBBPF_MESSAGES.lock() {
        messages.extend(message.lines().map(str::to_owned));
    }
}

fn show_libbpf_messages() {
    let Ok(mut messages) = LIBBPF_MESSAGES.lock() else {
        return;
    };
    let skipped = messages.len().saturating_sub(SHOWN_MESSAGES);
    for message in &messages[skipped..] {
        crate::note(message);
    }
    messages.clear();
}
