//! Control groups: which there are, who is in them, and the return of a task to user mode, at
//! which the kernel half holds back a task whose group has no quota.

use crate::group_ffi::{self as ffi, GroupStruct, MemberState, Settings, NO_LIMIT};
use crate::group_load::GroupLoad;
use crate::race;
use crate::state::{with, Place, State, TaskId};
use crate::task_work::Work;
use crate::workload::between;
use sfs_fibers::{longest_ns, PAUSES};
use sfs_kernel_objects::quota::Account;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::CString;
use std::ptr;

/// A group, by its place in [`Groups::all`]; its id in the kernel is one more.
pub type GroupId = usize;
/// The root.
pub const ROOT: GroupId = 0;
/// MAX_GROUP_DEPTH: tasks in deeper groups count for the group at this depth.
const KEPT_LEVELS: u32 = 32;
/// SFS_WATCHDOG_GUARD_NS, less the most that the clocks differ.
const WATCHDOG_GUARD_NS: u64 = 9_000_000_000;

/// How far the removal of a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is there.
    Online,
    /// It is about to be removed; nobody enters it.
    Doomed,
    /// rmdir() has returned.
    Removed,
    /// css_killed_work_fn() has run.
    Killed,
    /// It is offline: the kernel half has been told.
    Offline,
    /// Its memory belongs to another group.
    Freed,
}

/// A control group.
#[derive(Debug)]
pub struct Group {
    /// In the kernel.
    pub memory: *mut GroupStruct,
    /// The group above; the root is its own.
    pub parent: GroupId,
    /// 0: the root.
    pub level: u32,
    /// It has the CPU controller: the kernel half knows it.
    pub has_cpu: bool,
    /// So have its children (cgroup.subtree_control).
    pub children_have_cpu: bool,
    /// Its removal.
    pub stage: Stage,
    /// Children that are not offline (online_cnt).
    pub children: usize,
    /// cpu.weight and cpu.max.
    pub settings: Settings,
    /// If it has a quota.
    pub account: Option<Account>,
    /// When its limit was set last, ns of CLOCK_MONOTONIC.
    pub limited_at: u64,
    /// CPU time used in it and below, while weights are compared.
    pub ran_ns: u64,
    /// The first that waits for its quota, and since when, ns of CLOCK_MONOTONIC; of the checks.
    pub first_parked: Option<(TaskId, u64)>,
}

/// A task's groups.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member {
    /// p->cgroups.
    pub css: GroupId,
    /// p->sched_task_group, but for the CPU controller.
    pub tg: GroupId,
    /// It is a kernel thread.
    pub is_kernel_thread: bool,
    /// PF_EXITING.
    pub exits: bool,
    /// A limit was set while it waited for a CPU: it learns of that at its first tick.
    pub is_unaware: bool,
    /// CPU time charged.
    charged_ns: u64,
    /// CPU time for which it could not be held back, not charged yet.
    pub excused_ns: u64,
    /// What the kernel calls when the task returns to user mode.
    pub work: Option<Work>,
}

/// All of it.
#[derive(Debug, Default)]
pub struct Groups {
    /// Groups, also those that are gone.
    pub all: Vec<Group>,
    /// Groups that a task may enter, without the root.
    pub open: BTreeSet<GroupId>,
    /// Groups whose memory may be given to another one, when no task points to it.
    pub gone: Vec<GroupId>,
    /// By task.
    pub members: Vec<Member>,
    /// Groups with an account.
    pub limited: usize,
    /// cgroup_mutex is held, while this task moves.
    pub moving: Option<TaskId>,
    /// Moves that wait for it.
    pub moves: VecDeque<(TaskId, GroupId)>,
    /// The next task is born here.
    pub birthplace: Option<GroupId>,
    /// When the comparison of weights began; 0: not yet.
    pub measured_from: u64,
    /// What the seed has drawn.
    pub load: GroupLoad,
}

impl Groups {
    /// The root, on a machine that is not there yet.
    pub fn new(load: GroupLoad) -> Self {
        // SAFETY: takes plain values.
        unsafe { ffi::model_tune_sandboxes(load.only_sandboxes, load.unit_is_cgroup) };
        let mut groups = Self {
            load,
            ..Self::default()
        };
        groups.make(ROOT, true, Settings::default());
        groups
    }

    /// Returns true if there are groups below the root, or may be.
    pub fn are_there(&self) -> bool {
        self.load.most > 0
    }

    /// cgroup_create(), without telling the kernel half. `is_open`: its children have the CPU
    /// controller.
    pub fn make(&mut self, parent: GroupId, is_open: bool, settings: Settings) -> GroupId {
        let id = self.all.len();
        let (above, level, has_cpu) = match self.all.get(parent) {
            Some(group) => (group.memory, group.level + 1, group.children_have_cpu),
            None => (ptr::null_mut(), 0, true),
        };
        let reuse = self.gone.pop().map_or(ptr::null_mut(), |old| {
            self.all[old].stage = Stage::Freed;
            self.all[old].memory
        });
        let name = CString::new(format!("fn{}-{id}", id % 7)).expect("no zero in it");
        // SAFETY: the parent's memory lives as long as its children; nothing points to `reuse`.
        let memory =
            unsafe { ffi::model_new_group(reuse, above, id as u64 + 1, name.as_ptr(), has_cpu) };
        assert!(!memory.is_null(), "no memory for a group");
        self.all.push(Group {
            memory,
            parent,
            level,
            has_cpu,
            children_have_cpu: is_open && has_cpu,
            stage: Stage::Online,
            children: 0,
            settings,
            account: None,
            limited_at: 0,
            ran_ns: 0,
            first_parked: None,
        });
        if id != ROOT {
            self.all[parent].children += 1;
            self.open.insert(id);
        }
        id
    }

    /// The group by its id in the kernel.
    pub fn by_kernel_id(&self, id: u64) -> Option<GroupId> {
        let group = usize::try_from(id).ok()?.checked_sub(1)?;
        (group < self.all.len()).then_some(group)
    }

    /// Returns true if the kernel half knows a group.
    pub fn is_known(&self, group: GroupId) -> bool {
        let group = &self.all[group];
        group.has_cpu && !matches!(group.stage, Stage::Offline | Stage::Freed)
    }

    /// The group and those above it, up to the root.
    pub fn upwards(&self, group: GroupId) -> impl Iterator<Item = GroupId> + '_ {
        let next = |&at: &GroupId| (at != ROOT).then(|| self.all[at].parent);
        std::iter::successors(Some(group), next)
    }

    /// The nearest group with a quota that holds for a task; its id in the kernel, 0: none.
    pub fn limit_of(&self, task: TaskId) -> u64 {
        let kept = self
            .upwards(self.members[task].tg)
            .filter(|&group| self.is_known(group) && self.all[group].level <= KEPT_LEVELS);
        let limit = kept
            .into_iter()
            .find(|&group| self.all[group].account.is_some());
        limit.map_or(0, |group| group as u64 + 1)
    }

    /// tg_set_bandwidth() begins, or a group goes offline. Until the kernel half has returned, tasks
    /// may be held back by the old limit, by the new one or by none.
    pub fn drop_account(&mut self, group: GroupId) {
        self.limited -= usize::from(self.all[group].account.take().is_some());
    }

    /// tg_set_bandwidth(): a limit has been set at `now`.
    pub fn set_account(&mut self, group: GroupId, now: u64) {
        let group = &mut self.all[group];
        let Settings {
            period_us,
            quota_us,
            burst_us,
            ..
        } = group.settings;
        let account = (quota_us != NO_LIMIT)
            .then(|| Account::new(quota_us * 1000, period_us * 1000, burst_us * 1000, now));
        self.limited += usize::from(account.is_some());
        self.limited -= usize::from(group.account.is_some());
        group.account = account;
        group.limited_at = now;
    }

    /// Charges CPU time to the groups with a quota, from `limit` upwards.
    fn charge(&mut self, limit: u64, used_ns: u64, strict_ns: u64, now: u64) {
        let Some(limit) = self
            .by_kernel_id(limit)
            .filter(|&group| self.is_known(group))
        else {
            return;
        };
        let mut at = limit;
        loop {
            if let Some(account) = &mut self.all[at].account {
                account.charge(used_ns, strict_ns, now);
            }
            if at == ROOT {
                return;
            }
            at = self.all[at].parent;
        }
    }
}

/// Returns true if a task waits for quota.
pub fn is_parked(place: Place) -> bool {
    matches!(place, Place::Queue(queue) if queue >> 60 == 1)
}

/// A task that has waited for quota goes to another queue: its wait for a CPU begins. After 10 s of
/// waiting it goes without quota (SFS_WATCHDOG_GUARD_NS).
pub fn leaves_park(s: &mut State, task: TaskId, from: u64, to: u64) {
    if !is_parked(Place::Queue(from)) || is_parked(Place::Queue(to)) {
        return;
    }
    let since = s.tasks[task].waits_since.replace(s.now);
    let has_waited = since.is_some_and(|since| s.now - since > WATCHDOG_GUARD_NS);
    let now = s.monotonic();
    let group = s.groups.by_kernel_id(from & !(1 << 60));
    let Some(account) = group.and_then(|group| s.groups.all[group].account.as_mut()) else {
        return;
    };
    account.pass(now);
    if account.has_quota_since.is_none() {
        account.let_go |= has_waited;
        // The kernel half looks at the quota and then moves the task. Meanwhile others may use it up.
        let used_up = now - account.used_up_at;
        if !account.let_go && used_up > PAUSES * longest_ns() {
            s.finding(format!(
                "task {task} has left queue {from:#x} without quota, used up {} us before",
                used_up / 1_000
            ));
        }
    }
}

/// sched_cgroup_fork(): a new task belongs to a task group.
pub fn enter(s: &mut State, task: TaskId, is_kernel_thread: bool) {
    debug_assert_eq!(s.groups.members.len(), task, "tasks are numbered in order");
    let group = match s.groups.birthplace.take() {
        Some(group) => group,
        None if is_kernel_thread || s.groups.open.is_empty() => ROOT,
        None if between(s.own_random(task), 1, 100) > s.groups.load.members => ROOT,
        None => {
            let last = s.groups.open.len() as u64 - 1;
            let chosen = between(s.own_random(task), 0, last) as usize;
            *s.groups.open.iter().nth(chosen).expect("it is open")
        }
    };
    s.groups.members.push(Member {
        css: group,
        tg: group,
        is_kernel_thread,
        ..Member::default()
    });
    let (pointer, memory) = (s.tasks[task].fields.task, s.groups.all[group].memory);
    // SAFETY: both are the machine's.
    unsafe { ffi::model_set_task_group(pointer, memory) };
}

/// cgroup_post_fork(), which comes after sched_post_fork(): until then p->cgroups is the root's.
pub fn post_fork(task: TaskId) {
    with(|s| {
        let memory = s.groups.all[s.groups.members[task].css].memory;
        // SAFETY: both are the machine's.
        unsafe { ffi::model_set_css(s.tasks[task].fields.task, memory) };
    });
}

/// A limit was set for a group. Its tasks that wait for a CPU do not know it yet.
pub fn note_unaware(s: &mut State, group: GroupId) {
    for &task in &s.live {
        let waits = !matches!(s.tasks[task].place, Place::Running | Place::Asleep);
        let tg = s.groups.members[task].tg;
        if waits && s.groups.upwards(tg).any(|above| above == group) {
            s.groups.members[task].is_unaware = true;
        }
    }
}

/// What the kernel half keeps of a task's groups. Not within [`with`].
pub fn member_of(task: TaskId) -> MemberState {
    let task = with(|s| s.tasks[task].fields.task);
    let mut member = MemberState::default();
    // SAFETY: the task is one of the machine's.
    race::quietly(|| unsafe { ffi::model_member_of(task, &mut member) });
    member
}

/// The kernel half has been called for a task, and has charged it. Not within [`with`].
pub fn charged(task: TaskId) {
    let found = with(|s| {
        if !s.groups.are_there() {
            return None;
        }
        let fields = s.tasks[task].fields;
        // SAFETY: the task's memory lives as long as the machine.
        let total = unsafe { *fields.cpu_time_ns };
        let member = s.groups.members.get_mut(task)?;
        let delta = total - std::mem::replace(&mut member.charged_ns, total);
        let mut excused = std::mem::take(&mut member.excused_ns);
        if let Some(work) = &mut member.work {
            excused += total - std::mem::replace(&mut work.from_ns, total);
        }
        member.excused_ns = excused.saturating_sub(delta);
        let cannot_be_held = s.cpus[s.tasks[task].cpu].is_bypassed;
        let strict = if member.exits || member.is_unaware || cannot_be_held {
            0
        } else {
            delta.saturating_sub(excused)
        };
        note_ran(s, task, delta);
        (delta > 0 && s.groups.limited > 0).then_some((delta, strict))
    });
    let Some((delta, strict)) = found else {
        return;
    };
    let limit = member_of(task).limit;
    with(|s| {
        let now = s.monotonic();
        s.groups.charge(limit, delta, strict, now);
    });
}

/// Counts CPU time for the comparison of weights.
fn note_ran(s: &mut State, task: TaskId, delta: u64) {
    if s.groups.measured_from == 0 {
        return;
    }
    let mut at = s.groups.members[task].tg;
    while at != ROOT {
        s.groups.all[at].ran_ns += delta;
        at = s.groups.all[at].parent;
    }
}

/// A running task had a tick: the kernel half knows its quota now.
/// `changes`: of control groups, at its begin.
pub fn ticked(task: TaskId, changes: Option<u64>) {
    if !with(|s| s.groups.are_there()) {
        return;
    }
    let limit = member_of(task).limit;
    with(|s| {
        s.groups.members[task].is_unaware = false;
        if changes.is_none() || changes != race::group_changes() {
            return; // a change of quotas meanwhile
        }
        let expected = s.groups.limit_of(task);
        let is_exempt = s.groups.members[task].is_kernel_thread || s.tasks[task].context.is_none();
        if !is_exempt && limit != expected {
            s.finding(format!(
                "task {task} runs with the quota of group {limit}, and should with that of \
                 {expected}"
            ));
        }
    });
}
