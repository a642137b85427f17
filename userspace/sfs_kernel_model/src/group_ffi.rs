//! Control groups in the compiled kernel half (`c/groups.h`).

use crate::ffi::TaskStruct;
use std::ffi::{c_char, c_void};

/// A control group of the kernel; `struct model_group`.
#[repr(C)]
#[derive(Debug)]
pub struct GroupStruct {
    _opaque: [u8; 0],
}

/// `struct model_settings`: cpu.weight and cpu.max.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// cpu.weight, 1 to 10000.
    pub weight: u32,
    /// The period of cpu.max, us.
    pub period_us: u64,
    /// CPU time in each, us; [`NO_LIMIT`]: "max".
    pub quota_us: u64,
    /// cpu.max.burst, us.
    pub burst_us: u64,
}

/// RUNTIME_INF.
pub const NO_LIMIT: u64 = u64::MAX;

impl Default for Settings {
    fn default() -> Self {
        Self {
            weight: 100,
            period_us: 100_000,
            quota_us: NO_LIMIT,
            burst_us: 0,
        }
    }
}

/// What the kernel half keeps of a group; `struct model_group_state`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupState {
    /// The id of the group above it; 0: none.
    pub parent: u64,
    /// The sum of the weights of its active tasks and groups.
    pub active: i64,
    /// The number of these.
    pub nr_active: i64,
    /// CPU time used of its quota, ns.
    pub used_ns: i64,
    /// The begin of the period that it is used from, ns.
    pub period_start: u64,
    /// Its quota, ns; 0: none.
    pub quota_ns: u64,
    /// Its weight among tenants; 0: nothing is runnable.
    pub share_weight: u64,
    /// Runnable tasks of the tenant.
    pub share_runnable: i64,
    /// cpu.weight.
    pub weight: u32,
    /// The weight that the group above counts.
    pub counted: u32,
}

/// What the kernel half keeps of a task's groups; `struct model_member`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemberState {
    /// The group that counts it as active; 0: none.
    pub active_group: u64,
    /// The tenant that counts it as runnable; 0: none.
    pub tenant: u64,
    /// The nearest group with a quota; 0: none.
    pub limit: u64,
    /// The weight with which it is counted.
    pub active_weight: u32,
}

/// `struct model_group_sums`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupSums {
    /// The sum of the weights of tenants with runnable tasks.
    pub sharing_weight: i64,
    /// The number of groups with a quota.
    pub limited: u32,
}

extern "C" {
    /// cgroup_create(), in the memory of `reuse`, a group that is gone, or in new memory; null: there is none.
    pub fn model_new_group(
        reuse: *mut GroupStruct,
        parent: *mut GroupStruct,
        id: u64,
        name: *const c_char,
        has_cpu: bool,
    ) -> *mut GroupStruct;
    /// scx_tg_online(), or scx_cgroup_init() at load. Returns a negative errno if it is refused.
    pub fn model_group_online(group: *mut GroupStruct, settings: *const Settings) -> i32;
    /// scx_tg_offline().
    pub fn model_group_offline(group: *mut GroupStruct);
    /// scx_group_set_weight().
    pub fn model_set_weight(group: *mut GroupStruct, weight: u32);
    /// scx_group_set_bandwidth().
    pub fn model_set_bandwidth(group: *mut GroupStruct, settings: *const Settings);
    /// scx_cgroup_can_attach(). Returns a negative errno if it is refused.
    pub fn model_prep_move(
        task: *mut TaskStruct,
        from: *mut GroupStruct,
        to: *mut GroupStruct,
    ) -> i32;
    /// css_set_move_task().
    pub fn model_set_css(task: *mut TaskStruct, group: *mut GroupStruct);
    /// sched_change_group().
    pub fn model_set_task_group(task: *mut TaskStruct, group: *mut GroupStruct);
    /// The loader has found, or lost, this sandbox.
    pub fn model_change_sandbox(id: u64, there: bool);
    /// Options about sandboxes: functions are in sandboxes only; a unit is a sandbox.
    pub fn model_tune_sandboxes(only: bool, unit_is_cgroup: bool);
    /// Reads what the kernel half keeps of a group. Returns false if it does not know it.
    pub fn model_state_of_group(id: u64, state: *mut GroupState) -> bool;
    /// Reads what the kernel half keeps of a task as a member of its group.
    pub fn model_member_of(task: *mut TaskStruct, member: *mut MemberState);
    /// Reads sums over all groups.
    pub fn model_sums_of_groups(sums: *mut GroupSums);
}

/// A callback of `struct bpf_task_work`.
pub type WorkCallback = unsafe extern "C" fn(*mut c_void, *mut u64, *mut c_void) -> i32;
