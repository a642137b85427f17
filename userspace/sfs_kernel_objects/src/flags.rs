//! Numbers of sched_ext that callbacks and kfuncs take (kernel/sched/ext_internal.h, Linux 6.18).

/// SCX_DSQ_GLOBAL.
pub const GLOBAL: u64 = 1 << 63 | 1;
/// SCX_DSQ_LOCAL.
pub const LOCAL: u64 = 1 << 63 | 2;
/// SCX_DSQ_LOCAL_ON; the CPU is in the lower half.
pub const LOCAL_ON: u64 = 3 << 62;
/// SCX_ENQ_WAKEUP.
pub const ENQ_WAKEUP: u64 = 1;
/// SCX_ENQ_HEAD.
pub const ENQ_HEAD: u64 = 1 << 4;
/// SCX_ENQ_LAST.
pub const ENQ_LAST: u64 = 1 << 41;
/// SCX_ENQ_PREEMPT.
pub const ENQ_PREEMPT: u64 = 1 << 32;
/// SCX_ENQ_REENQ.
pub const ENQ_REENQ: u64 = 1 << 40;
/// SCX_ENQ_DSQ_PRIQ.
pub const ENQ_PRIQ: u64 = 1 << 57;
/// SCX_WAKE_TTWU.
pub const WAKE_TTWU: u64 = 8;
/// SCX_WAKE_SYNC.
pub const WAKE_SYNC: u64 = 16;
/// SCX_WAKE_FORK.
pub const WAKE_FORK: u64 = 4;
/// SCX_KICK_IDLE.
pub const KICK_IDLE: u64 = 1;
/// SCX_KICK_PREEMPT.
pub const KICK_PREEMPT: u64 = 2;
/// SCX_SLICE_DFL.
pub const SLICE_DFL: u64 = 20_000_000;
/// SCX_SLICE_INF.
pub const SLICE_INF: u64 = u64::MAX;
/// SCX_TASK_QUEUED.
pub const QUEUED: u32 = 1;
/// SCX_DEQ_SLEEP.
pub const DEQ_SLEEP: u64 = 1;
/// DEQUEUE_SAVE.
pub const DEQ_SAVE: u64 = 2;
/// SCX_SLICE_BYPASS.
pub const SLICE_BYPASS: u64 = 5_000_000;
