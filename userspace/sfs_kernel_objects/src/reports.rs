//! What the kernel half reports to its loader, as `intf.h` has it.

/// `struct sfs_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// SFS_EVENT_ARRIVALS, SFS_EVENT_OVERLOAD_BEGUN or SFS_EVENT_OVERLOAD_OVER.
    pub kind: u32,
    /// Nothing.
    pub pad: u32,
    /// Arrivals so far, or a wait in ns.
    pub value: u64,
    /// When, ns.
    pub at: u64,
}

/// `struct sfs_completion`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The id of the function.
    pub function: u64,
    /// CPU time, ns.
    pub service_ns: u64,
    /// Of it, before its first long sleep; 0: it had none.
    pub burst_ns: u64,
    /// From arrival to its end, ns; 0: not known.
    pub turnaround_ns: u64,
    /// Of this, time in queues, ns.
    pub queued_ns: u64,
    /// 1: it was killed.
    pub killed: u32,
    /// 1: it counts for the estimate of unknown functions as well.
    pub counted: u32,
}
