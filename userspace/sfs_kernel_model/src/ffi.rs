//! The compiled kernel half (`c/model.c`): its callbacks, and what the model reads of it.

pub use sfs_kernel_objects::maps::MapInfo;

/// A task of the kernel; only the kernel half looks into it.
#[repr(C)]
#[derive(Debug)]
pub struct TaskStruct {
    _opaque: [u8; 0],
}

/// `struct model_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Number of CPUs.
    pub cpus: u32,
    /// `enum sfs_policy_kind`.
    pub policy: u32,
    /// S in ns.
    pub slice_ns: u64,
}

/// Where the fields of a task are; `struct model_task`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Fields {
    /// The task.
    pub task: *mut TaskStruct,
    /// `scx.slice`, ns.
    pub slice: *mut u64,
    /// `scx.dsq_vtime`.
    pub vtime: *mut u64,
    /// `se.sum_exec_runtime`, ns.
    pub cpu_time_ns: *mut u64,
    /// `scx.weight`, 100 for a nice value of 0.
    pub weight: *mut u32,
    /// `__state`.
    pub state: *mut u32,
    /// `flags`.
    pub flags: *mut u32,
    /// `scx.flags`.
    pub scx_flags: *mut u32,
    /// `nr_cpus_allowed`.
    pub nr_cpus: *mut i32,
    /// `cpus_mask`, 64 CPUs to a word.
    pub cpus: *mut u64,
}

/// The number of counted queues; `NR_SHARED`.
pub const COUNTED_QUEUES: usize = 8;

/// How often tasks are counted; `struct model_counts`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those with credit that are runnable.
    pub demand: i64,
    /// Runnable functions (`--policy learned`).
    pub present: i64,
    /// Short turns in the local queues of CPUs, which are to find them.
    pub first: i64,
    /// Those that wait, by the number of the queue.
    pub waiting: [i64; COUNTED_QUEUES],
}

/// The credit of an invocation; times in ns; `struct model_credit`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Credit {
    /// CPU time that it was charged for.
    pub used_ns: u64,
    /// CPU time at which its credit is over.
    pub credit_ns: u64,
    /// Its number within the unit.
    pub number: u32,
    /// It has credit.
    pub has_credit: bool,
}

extern "C" {
    /// The maps of the kernel half: a table of `count` entries that lives forever.
    pub fn model_list_maps(count: *mut u32) -> *const MapInfo;
    /// Sets the options, before load.
    pub fn model_tune(options: *const Options);
    /// Sets what CPUs share: a place for each.
    pub fn model_tune_topology(places: *const crate::topology::Place);
    /// update_builtin_idle().
    pub fn model_set_idle(cpu: u32, idle: bool);
    /// A task of a process of its own, and where its fields are; null: no memory.
    pub fn model_new_task(pid: i32, now: u64, fields: *mut Fields) -> *mut TaskStruct;
    /// Frees a task.
    pub fn model_free_task(task: *mut TaskStruct);
    /// Its process id.
    pub fn model_pid(task: *const TaskStruct) -> i32;
    /// ops.init_task(). Returns a negative errno if it is refused.
    pub fn model_init_task(task: *mut TaskStruct, fork: bool) -> i32;
    /// ops.exit_task().
    pub fn model_exit_task(task: *mut TaskStruct);
    /// ops.dump(), and ops.dump_cpu() of each CPU.
    pub fn model_dump();
    /// ops.dump_task().
    pub fn model_dump_task(task: *mut TaskStruct);
    /// Returns true if the task's mask is that of a section with migration disabled.
    pub fn model_is_confined(task: *const TaskStruct) -> bool;
    /// Confines the task to a CPU; a negative one gives it its own mask back.
    pub fn model_confine(task: *mut TaskStruct, cpu: i32);
    /// copy_process(): the child gets what it inherits.
    pub fn model_clone(parent: *mut TaskStruct, child: *mut TaskStruct, is_thread: bool);
    /// scx_cancel_fork().
    pub fn model_cancel_task(task: *mut TaskStruct);
    /// The program for exec sees that the task executes the program with this number.
    pub fn model_exec(task: *mut TaskStruct, name: u32);
    /// The program for accept sees the call, for the protocol with this number.
    pub fn model_enter_accept(protocol: u32, unused: i32);
    /// The same for its return.
    pub fn model_leave_accept(protocol: u32, err: i32);
    /// The program for receive sees the return, with the number of bytes or an errno.
    pub fn model_leave_receive(protocol: u32, got: i32);
    /// Options about boundaries: kinds, unit, idle time in ns, port.
    pub fn model_tune_boundaries(kinds: u32, shared_by: u32, idle_ns: u64, port: u16);
    /// The kind of a task's turn, from its context; `enum turn`.
    pub fn model_turn_in(context: *const u8) -> u32;
    /// When the task was queued, from its context; ns.
    pub fn model_queued_at_in(context: *const u8) -> u64;
    /// How far a task that begins a turn in FAIR is behind FAIR's virtual time, ns.
    pub fn model_behind_fair(task: *const TaskStruct) -> i64;
    /// How far behind it may be, ns.
    pub fn model_saves_up(task: *mut TaskStruct) -> u64;
    /// Returns true if processes with credit go before other functions.
    pub fn model_serves_filter() -> bool;
    /// Sets the priority; below 100 it is a real-time task.
    pub fn model_set_prio(task: *mut TaskStruct, prio: i32);
    /// Where the task's count of sections with migration disabled is.
    pub fn model_migration_disabled(task: *mut TaskStruct) -> *mut u16;
    /// ops.cpu_release().
    pub fn model_cpu_release(cpu: i32);
    /// ops.cpu_acquire().
    pub fn model_cpu_acquire(cpu: i32);
    /// The credit of the task's invocation. Returns false if it has none of its own: there is none
    /// yet, or it shares it.
    pub fn model_credit_of(task: *mut TaskStruct, credit: *mut Credit) -> bool;
    /// How often a task is counted.
    pub fn model_counts_of(task: *mut TaskStruct, counts: *mut Counts);
    /// Returns true if the kernel half counts the tasks that wait in each shared queue.
    pub fn model_counts_queues() -> bool;
    /// What is counted in all.
    pub fn model_counts_in_all(counts: *mut Counts);
    /// Callbacks pause from now on or not, next after so many counts; plain accesses count for
    /// `access`.
    pub fn model_set_pause(may: bool, counts: i64, access: u32);
    /// Callbacks pause from now on or not. Returns whether they did before.
    pub fn model_let_pause(may: bool) -> bool;
    /// A helper begins.
    pub fn model_point();

    /// ops.init(). Returns a negative errno if it fails.
    pub fn sfs_init() -> i32;
    /// ops.enable().
    pub fn sfs_enable(task: *mut TaskStruct);
    /// ops.select_cpu(). Returns a CPU.
    pub fn sfs_select_cpu(task: *mut TaskStruct, cpu: i32, flags: u64) -> i32;
    /// ops.runnable().
    pub fn sfs_runnable(task: *mut TaskStruct, flags: u64);
    /// ops.enqueue().
    pub fn sfs_enqueue(task: *mut TaskStruct, flags: u64);
    /// ops.dispatch().
    pub fn sfs_dispatch(cpu: i32, prev: *mut TaskStruct);
    /// ops.running().
    pub fn sfs_running(task: *mut TaskStruct);
    /// ops.tick().
    pub fn sfs_tick(task: *mut TaskStruct);
    /// ops.stopping().
    pub fn sfs_stopping(task: *mut TaskStruct, runnable: bool);
    /// ops.quiescent().
    pub fn sfs_quiescent(task: *mut TaskStruct, flags: u64);
    /// ops.yield().
    pub fn sfs_yield(from: *mut TaskStruct, to: *mut TaskStruct) -> bool;
}
