//! What the kernel half keeps of a task and of the machine, and what it answers about them
//! (`c/half/watch.h` of sfs_kernel_model). All are plain numbers; times are in ns.

use sfs_kernel_model::ffi::TaskStruct;
use std::ffi::{c_char, CStr};

/// Declares a structure of words, and their names in order.
macro_rules! words {
    ($(#[$about:meta])* $name:ident: $($word:ident)*) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[allow(missing_docs)] // the C side says what each is
        pub struct $name {
            $(pub $word: i64,)*
        }

        impl $name {
            /// The names of its words, in order.
            pub const NAMES: &[&str] = &[$(stringify!($word),)*];
        }
    };
}

words! {
    /// What it keeps. Words that begin with `i_` are the invocation's, `s_` the tenant's share's,
    /// `l_` those of the group with a quota, `c_` and `r_` the CPU's.
    Look:
    has_context has_inv inv_is own_is flags weight cpu_time vtime granted nr_cpus exit_code cpu
    cgroup sandbox woken_at charged queued_at queued waits_since starved_since served_at
    turn_used usual asleep_at asleep_clock paid paid_clock paid_seq mostly_sleeps prompt tokens
    filled_at filter_used fair_used deadline queue_key fair_vtime
    slice slice_end ranked_used taken claim_end fair_weight booked active tenant in_demand is_present limit turn
    seen_seq rank queue stopped_on first_on fresh forked found_at_load has_left chose_idle
    handed_over slept has_key outranked leaves left_turn in_call yielded may_be_held exits_at
    has_exit i_arrived i_credit i_used
    i_ended i_function i_service i_born i_slept_at i_slept i_burst i_quiet i_state i_open
    i_kinds i_seq i_graced i_counted i_threads has_share s_tokens s_clock s_filled_at s_usable
    s_weight s_runnable s_line s_used s_filter s_denied s_second s_reports j_tenant j_has j_window j_arrivals j_granted j_tokens
    j_clock j_filled_at j_usable j_weight j_runnable j_line has_limit
    l_quota l_used c_served_at c_asked_at c_looked_at c_preempted_until c_outside c_next_due
    c_turn_due c_short c_own c_called c_dispatching c_has_run c_runs c_local_short c_in_release
    c_taken c_first c_tokens c_filled_at c_fair r_rank r_deadline now fair_now slice_ns mode
    policy unit kinds identity only_sandboxes cpus nr_shards window idle_ns default_table
    overload_enabled overload_at recover_at overload_since overload_told recovery_told
    loader_tgid tgid sharing_clock overtaken present demand waits_filter waits_fair waits_ranked
    waits_system waits_prompt waits_outside arrivals credit_avg shares_clock shares_weight
    debt_at last_tenant others_began_at nr_limited receive_port
    comm_a comm_b parent_a parent_b owner sections
}

words! {
    /// What it answers if it is asked.
    Answers:
    next_turn turn_ns is_function is_system has_credit credit_left debt debt_in_vtime pinned
    fair_turn fair_vtime ahead saved_up group_weight due_interval due_turn overload_wait
    expected_delay due bucket longest_debt line vtime_of_all is_daemon prompt_turn
    loader_is_late debts_are_known attained longest_slice farthest_key waits_long stays
    out_of_quota weighted ranked_over is_short is_prompt has_rank tenant_of identity
    fair_waiting fair_waiting_own filter_waiting filter_head functions_wait short_waits
    ranked_head claimer due_queue elsewhere is_taken
}

extern "C" {
    /// Returns whether a timer of this map is the guard's.
    pub fn model_is_guard(map: *const std::ffi::c_void) -> bool;
    /// Returns whether the cgroup with this id is a sandbox.
    pub fn model_is_sandbox(id: u64) -> bool;
    fn model_list_words(answers: bool, count: *mut u32) -> *const *const c_char;
    fn model_look(task: *mut TaskStruct, cpu: i32, answers: bool, words: *mut i64);
}

/// Looks at a task and a CPU. Not while the state is held.
pub fn look(task: *mut TaskStruct, cpu: usize) -> Look {
    let mut look = Look::default();
    // SAFETY: the task is one of the machine's, and the structure has the words that are written
    // (`agrees()`).
    unsafe { model_look(task, cpu as i32, false, (&raw mut look).cast()) };
    look
}

/// Asks the kernel half about them. Not while the state is held.
pub fn ask(task: *mut TaskStruct, cpu: usize) -> Answers {
    let mut answers = Answers::default();
    // SAFETY: as above.
    unsafe { model_look(task, cpu as i32, true, (&raw mut answers).cast()) };
    answers
}

/// Returns whether the C side has the same words. A kernel half of the past has none.
#[must_use]
pub fn agrees() -> bool {
    let (there, answered) = (listed(false), listed(true));
    assert!(
        there.is_empty() || (there == Look::NAMES && answered == Answers::NAMES),
        "the words in c/half/watch.h and in look.rs differ"
    );
    !there.is_empty()
}

fn listed(answers: bool) -> Vec<&'static str> {
    let mut count = 0;
    // SAFETY: returns a table of `count` texts that live forever.
    let names = unsafe {
        let first = model_list_words(answers, &mut count);
        (0..count as usize).map(move |n| CStr::from_ptr(*first.add(n)))
    };
    names.map(|name| name.to_str().unwrap_or("")).collect()
}

impl Look {
    /// Its words in order.
    pub fn words(&self) -> &[i64] {
        // SAFETY: it consists of such words.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast(), Self::NAMES.len()) }
    }
}

/// What any CPU may want to know of another one; times in ns.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct OfCpu {
    /// It runs FAIR work that FILTER may preempt.
    pub is_fair: i64,
    /// The rank of its work.
    pub rank: i64,
    /// Its deadline, on the sharing clock.
    pub deadline: i64,
    /// It has a short turn.
    pub is_short: i64,
    /// Its turn is due.
    pub is_due: i64,
    /// Prompt turns have used its allowance of preemptions up to then.
    pub preempted_until: i64,
    /// A real-time task has it.
    pub is_taken: i64,
}

extern "C" {
    fn model_look_at_cpu(cpu: i32, words: *mut OfCpu);
}

/// Looks at all CPUs. Not while the state is held.
pub fn look_at_cpus(cpus: usize) -> Vec<OfCpu> {
    let look = |cpu| {
        let mut of = OfCpu::default();
        // SAFETY: the structure has the words that are written.
        unsafe { model_look_at_cpu(cpu as i32, &mut of) };
        of
    };
    (0..cpus).map(look).collect()
}
