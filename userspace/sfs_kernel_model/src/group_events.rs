//! What happens to control groups: they come and go, change, and tasks move between them. The
//! order of the calls is that of kernel/cgroup/cgroup.c, kernel/sched/core.c and
//! kernel/sched/ext.c of Linux 6.18.

use crate::group_ffi::{self as ffi, Settings, NO_LIMIT};
use crate::group_moves;
use crate::groups::{note_unaware, GroupId, Stage, ROOT};
use crate::race;
use crate::sched::update_curr;
use crate::state::{with, Event, Place, State, TaskId};
use crate::workload::{between, exponential, Behaviour};
use sfs_kernel_draws::numbers::{MS, US};

/// A group that is not empty after so many attempts, 2 ms apart, stays.
const ATTEMPTS: u8 = 100;
/// Most groups that a storm makes or removes.
const STORM: u64 = 40;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupEvent {
    /// Somebody changes a group.
    Change,
    /// A task is to move to a group: cgroup_attach_task().
    Move(TaskId, GroupId),
    /// The second half of that: cpu_cgroup_attach().
    Attach(TaskId, GroupId),
    /// An attempt to remove a group: rmdir(). With the number of attempts before.
    Rmdir(GroupId, u8),
    /// css_killed_work_fn().
    Offline(GroupId),
    /// The loader finds a sandbox, or sees that it is gone.
    Sandbox(GroupId, bool),
    /// A hog is forked in a group.
    Born(GroupId),
    /// The task returns to user mode, in the turn with this number.
    Return(TaskId, u64),
}

/// The groups at load: scx_cgroup_init() tells the kernel half of each, parents first.
pub fn load() {
    with(|s| {
        let most = s.groups.load.most;
        if s.groups.load.is_steady {
            return crate::steady::make(s);
        }
        for _ in 0..most.min(8) / 2 {
            draw_group(s);
        }
        if most > 0 {
            s.after(MS, Event::Group(GroupEvent::Change));
        }
    });
    for group in 0..with(|s| s.groups.all.len()) {
        online(group);
    }
}

/// Something happens to groups.
pub fn happens(event: GroupEvent) {
    let is_change = !matches!(event, GroupEvent::Sandbox(..) | GroupEvent::Return(..));
    let _mutex = is_change.then(race::groups);
    match event {
        GroupEvent::Change => change_some(),
        GroupEvent::Move(task, to) => group_moves::begin_move(task, to),
        GroupEvent::Attach(task, to) => group_moves::attach(task, to),
        GroupEvent::Rmdir(group, tries) => with(|s| rmdir(s, group, tries)),
        GroupEvent::Offline(group) => offline(group),
        // SAFETY: takes plain values; a map is changed.
        GroupEvent::Sandbox(group, there) => unsafe {
            ffi::model_change_sandbox(group as u64 + 1, there);
        },
        GroupEvent::Return(task, turn) => crate::task_work::returns(task, turn),
        GroupEvent::Born(_) => unreachable!("the machine forks"),
    }
}

/// Returns true one time out of `of`.
pub fn chance(s: &mut State, of: u64) -> bool {
    between(&mut s.random, 1, of) == 1
}

/// A group that a task may enter.
pub fn any_open(s: &mut State) -> Option<GroupId> {
    let last = (s.groups.open.len() as u64).checked_sub(1)?;
    let chosen = between(&mut s.random, 0, last) as usize;
    s.groups.open.iter().nth(chosen).copied()
}

/// Somebody writes to a file of cgroupfs, makes a directory or removes one.
fn change_some() {
    let (what, times) = with(|s| {
        let delay = exponential(&mut s.random, s.groups.load.changes_ns);
        s.after(delay, Event::Group(GroupEvent::Change));
        let drawn = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
        race::place(s, drawn);
        let storms_of = s.groups.load.storms_of;
        let times = if chance(s, storms_of) {
            between(&mut s.random, 2, STORM)
        } else {
            1
        };
        (between(&mut s.random, 0, 9), times)
    });
    for _ in 0..times {
        match what {
            0 | 1 => create(),
            2 | 3 => with(remove_some),
            4..=6 => with(group_moves::move_some),
            7 => set_weight(),
            _ => set_limit(),
        }
    }
}

// ------------------------------------------------------------------- they come

fn draw_settings(s: &mut State) -> Settings {
    let mut settings = Settings {
        weight: draw_weight(s),
        ..Settings::default()
    };
    if between(&mut s.random, 1, 100) <= s.groups.load.quotas / 2 {
        draw_limit(s, &mut settings);
    }
    settings
}

fn draw_weight(s: &mut State) -> u32 {
    match between(&mut s.random, 0, 3) {
        0 => 100,
        1 => [1, 10_000][between(&mut s.random, 0, 1) as usize],
        _ => between(&mut s.random, 1, 1_000) as u32,
    }
}

/// A quota of a ms to all CPUs, and a burst of at most the quota (tg_set_cfs_bandwidth()).
fn draw_limit(s: &mut State, settings: &mut Settings) {
    let period = between(&mut s.random, 10_000, 100_000);
    let per_cent = match between(&mut s.random, 0, 3) {
        0 => between(&mut s.random, 1, 5),
        1 | 2 => between(&mut s.random, 5, 100),
        _ => between(&mut s.random, 20, 100 * s.cpus.len() as u64),
    };
    let quota = (period * per_cent / 100).max(1_000);
    let has_burst = chance(s, 2);
    settings.period_us = period;
    settings.quota_us = quota;
    settings.burst_us = if has_burst {
        between(&mut s.random, 0, quota)
    } else {
        0
    };
}

/// A group below the root, a group that was made just now, or any.
fn draw_group(s: &mut State) -> Option<GroupId> {
    if s.groups.open.len() >= s.groups.load.most {
        return None;
    }
    let parent = match between(&mut s.random, 0, 3) {
        0 => None,
        1 => any_open(s),
        _ => s.groups.open.last().copied(),
    };
    let depth = s.groups.load.depth;
    let parent = parent.filter(|&group| s.groups.all[group].level < depth);
    let settings = draw_settings(s);
    let is_open = !chance(s, 8);
    collect(s);
    let group = s.groups.make(parent.unwrap_or(ROOT), is_open, settings);
    if s.groups.load.only_sandboxes && !chance(s, 4) {
        // The loader looks at the tree, or is told by inotify, and takes its time.
        let delay = exponential(&mut s.random, 10 * MS);
        s.after(delay, Event::Group(GroupEvent::Sandbox(group, true)));
    }
    Some(group)
}

/// mkdir(): scx_tg_online() tells the kernel half.
fn create() {
    if with(|s| s.groups.moving.is_some()) {
        return; // cgroup_mutex is held; somebody else tries later
    }
    if let Some(group) = with(draw_group) {
        // Tasks find it when it is online.
        with(|s| s.groups.open.remove(&group));
        online(group);
        with(|s| s.groups.open.insert(group));
    }
}

/// scx_tg_online(), or scx_cgroup_init().
fn online(group: GroupId) {
    let (memory, settings) = with(|s| {
        let found = &s.groups.all[group];
        (
            s.groups.is_known(group).then_some(found.memory),
            found.settings,
        )
    });
    let Some(memory) = memory else { return };
    // SAFETY: the group is one of the machine's.
    let err = unsafe { ffi::model_group_online(memory, &settings) };
    with(|s| {
        if err != 0 {
            s.finding(format!("cgroup_init() refuses group {}: {err}", group + 1));
        }
        let now = s.monotonic();
        s.groups.set_account(group, now);
    });
}

// --------------------------------------------------------------------- they go

/// A group and all below it are to be removed. Their tasks are killed, or moved away.
fn remove_some(s: &mut State) {
    let Some(group) = any_open(s) else { return };
    let open = s.groups.open.iter().copied();
    let doomed: Vec<GroupId> = open
        .filter(|&at| s.groups.upwards(at).any(|above| above == group))
        .collect();
    let kills = !chance(s, 3);
    let to = s.groups.all[group].parent;
    let tasks: Vec<TaskId> = s.live.iter().copied().collect();
    for &at in &doomed {
        s.groups.all[at].stage = Stage::Doomed;
        s.groups.open.remove(&at);
    }
    for task in tasks {
        if !doomed.contains(&s.groups.members[task].css) {
            continue;
        }
        if kills {
            kill(s, task);
        } else {
            let delay = between(&mut s.random, 0, 100 * US);
            s.after(delay, Event::Group(GroupEvent::Move(task, to)));
        }
    }
    for &at in doomed.iter().rev() {
        let delay = between(&mut s.random, 0, 300 * US);
        s.after(delay, Event::Group(GroupEvent::Rmdir(at, 0)));
    }
}

/// SIGKILL: a sleeping task wakes up; each ends as soon as it runs.
fn kill(s: &mut State, task: TaskId) {
    if s.groups.members[task].exits {
        return;
    }
    let (place, cpu) = (s.tasks[task].place, s.tasks[task].cpu);
    if place == Place::Running {
        update_curr(s, cpu);
    }
    let left = between(&mut s.random, US, 20 * US);
    s.tasks[task].behaviour = Behaviour::Function {
        turns: 0,
        runs_us: 10,
    };
    s.tasks[task].left_ns = left;
    crate::life::cut_short(s, task);
    match place {
        Place::Asleep => s.after(left, Event::Wake(task)),
        Place::Running => {
            s.cpus[cpu].turn += 1;
            let turn = s.cpus[cpu].turn;
            s.after(left, Event::Done(cpu, turn));
            crate::task_work::runs(s, task);
        }
        _ => {}
    }
}

/// cgroup_destroy_locked(): a group goes if no task but exiting ones is in it, and no child.
fn rmdir(s: &mut State, group: GroupId, tries: u8) {
    let children = s.groups.all.iter().skip(1);
    let has_children = children
        .filter(|child| child.parent == group)
        .any(|child| matches!(child.stage, Stage::Online | Stage::Doomed));
    let is_in = |&task: &TaskId| {
        let member = s.groups.members[task];
        member.css == group && !member.exits
    };
    let again = has_children || s.groups.moving.is_some() || s.live.iter().any(is_in);
    if !again {
        s.groups.all[group].stage = Stage::Removed;
        // A grace period, and the kernel thread that works for it.
        let delay = between(&mut s.random, 100 * US, 20 * MS);
        s.after(delay, Event::Group(GroupEvent::Offline(group)));
        let delay = exponential(&mut s.random, 10 * MS);
        s.after(delay, Event::Group(GroupEvent::Sandbox(group, false)));
    } else if tries < ATTEMPTS {
        s.after(2 * MS, Event::Group(GroupEvent::Rmdir(group, tries + 1)));
    } else {
        s.groups.all[group].stage = Stage::Online;
        s.groups.open.insert(group);
    }
}

/// css_killed_work_fn(): a group goes offline when its children have.
fn offline(group: GroupId) {
    if with(|s| s.groups.moving.is_some()) {
        return with(|s| s.after(20 * US, Event::Group(GroupEvent::Offline(group))));
    }
    with(|s| s.groups.all[group].stage = Stage::Killed);
    let mut at = group;
    while with(|s| s.groups.all[at].stage == Stage::Killed && s.groups.all[at].children == 0) {
        with(|s| s.groups.drop_account(at));
        let known = with(|s| s.groups.is_known(at).then_some(s.groups.all[at].memory));
        if let Some(memory) = known {
            // SAFETY: the group is one of the machine's.
            unsafe { ffi::model_group_offline(memory) };
        }
        at = with(|s| {
            let found = &mut s.groups.all[at];
            found.stage = Stage::Offline;
            found.settings.quota_us = NO_LIMIT;
            let parent = found.parent;
            s.groups.set_account(at, 0);
            s.groups.all[parent].children -= 1;
            parent
        });
    }
}

/// Finds the memory of groups that nothing points to: the next group may get it.
fn collect(s: &mut State) {
    if sfs_fibers::in_progress() > 1 {
        return; // others may still point to it
    }
    let groups = &s.groups;
    let is_used = |group: GroupId| {
        let points = |&task: &TaskId| {
            let member = groups.members[task];
            member.css == group || member.tg == group
        };
        let is_above =
            |child: &crate::groups::Group| child.parent == group && child.stage != Stage::Freed;
        s.live.iter().any(points) || groups.all.iter().skip(1).any(is_above)
    };
    let gone: Vec<GroupId> = (1..groups.all.len())
        .rev()
        .take(64)
        .filter(|&group| groups.all[group].stage == Stage::Offline && !is_used(group))
        .take(1)
        .collect();
    s.groups.gone = gone;
}

// ----------------------------------------------------------------- they change

/// scx_group_set_weight(), which is silent if nothing changes.
fn set_weight() {
    let found = with(|s| {
        let group = any_open(s).filter(|&group| s.groups.is_known(group))?;
        let weight = draw_weight(s);
        let group = &mut s.groups.all[group];
        let before = std::mem::replace(&mut group.settings.weight, weight);
        (before != weight).then_some((group.memory, weight))
    });
    if let Some((memory, weight)) = found {
        // SAFETY: the group is one of the machine's.
        unsafe { ffi::model_set_weight(memory, weight) };
    }
}

/// scx_group_set_bandwidth(), which is silent if nothing changes.
fn set_limit() {
    let found = with(|s| {
        let group = any_open(s).filter(|&group| s.groups.is_known(group))?;
        let before = s.groups.all[group].settings;
        let mut settings = before;
        if between(&mut s.random, 1, 100) <= s.groups.load.quotas {
            draw_limit(s, &mut settings);
        } else {
            settings.quota_us = NO_LIMIT;
            settings.burst_us = 0;
        }
        s.groups.all[group].settings = settings;
        (before != settings).then_some((group, s.groups.all[group].memory, settings))
    });
    let Some((group, memory, settings)) = found else {
        return;
    };
    with(|s| s.groups.drop_account(group));
    // SAFETY: the group is one of the machine's.
    unsafe { ffi::model_set_bandwidth(memory, &settings) };
    with(|s| {
        let now = s.monotonic();
        s.groups.set_account(group, now);
        note_unaware(s, group);
    });
}
