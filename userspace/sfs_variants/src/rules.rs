//! What is not mutated, because no invariant of the model could or should notice it.

/// Files without mutants: their numbers are also those of the loader, which is built from them.
const FILES: [&str; 2] = ["counters.h", "intf.h"];

/// Functions that serve the debug dump or count for statistics only, and calls of them.
const STATISTICS: [&str; 14] = [
    "sfs_dump",
    "sfs_dump_cpu",
    "sfs_dump_task",
    "state_name",
    "filter_length",
    "measure_queues",
    "own_lengths",
    "count",
    "count_n",
    "count_begun",
    "count_filter_start",
    "bpf_printk",
    "scx_bpf_dump",
    "UEI_RECORD",
];

/// Calls that the verifier demands, or that order memory: the model has one thread, and no
/// references to count.
const VERIFIER: [&str; 12] = [
    "__sink",
    "barrier",
    "barrier_var",
    "bpf_rcu_read_lock",
    "bpf_rcu_read_unlock",
    "bpf_preempt_disable",
    "bpf_preempt_enable",
    "bpf_task_release",
    "bpf_cgroup_release",
    "bpf_cpumask_release",
    "scx_bpf_put_idle_cpumask",
    "smp_mb",
];

/// Constants that the model has as well (`userspace/sfs_kernel_model/src`), or that name bits of the
/// kernel.
const CONSTANTS: [&str; 4] = [
    "SHARED_SHIFT",
    "NR_SHARED",
    "SFS_TASK_DEAD",
    "NSEC_PER_MSEC",
];

/// Calls with flags as their last number that the model's kernel does not have: Linux 7.1 was the
/// first.
const NEWER_FLAGS: [&str; 1] = ["scx_bpf_dsq_move_to_local"];

/// Returns whether a file of the kernel half has mutants.
#[must_use]
pub fn takes_file(name: &str) -> bool {
    (name.ends_with(".h") || name.ends_with(".c")) && !FILES.contains(&name)
}

/// Returns whether the body of a function has mutants.
#[must_use]
pub fn takes_function(name: &str) -> bool {
    !STATISTICS.contains(&name)
}

/// Returns whether a statement that begins with this word has mutants: `count(...)` has none.
#[must_use]
pub fn takes_statement(first: &str) -> bool {
    !STATISTICS.contains(&first) && !VERIFIER.contains(&first)
}

/// Returns whether the value of a constant has mutants. Numbers of dispatch queues are names.
#[must_use]
pub fn takes_constant(name: &str) -> bool {
    !CONSTANTS.contains(&name) && !name.starts_with("DSQ_") && name != "NSEC_PER_SEC"
}

/// Returns whether the last argument of a call has mutants, if it is a number.
#[must_use]
pub fn takes_last_argument(call: &str) -> bool {
    !NEWER_FLAGS.contains(&call)
}

/// Returns whether a condition is mutated: that of debug output is not.
#[must_use]
pub fn takes_condition(text: &str) -> bool {
    text != "debug"
}
