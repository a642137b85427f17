//! Invariants of control groups: the kernel half's counts are those of a recount, a group with a
//! quota keeps it, and a group that has quota again does not stay frozen.

use sfs_fibers::{longest_ns, PAUSES};
use sfs_kernel_model::group_ffi::{self as ffi, GroupState, GroupSums};
use sfs_kernel_model::groups::{member_of, GroupId, Stage, ROOT};
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, State};
use sfs_kernel_objects::quota::Account;
use std::collections::BTreeMap;

/// ns in a millisecond.
const MS: u64 = 1_000_000;
/// The first of the queues in which tasks wait for quota.
const PARKED: u64 = 0x1000_0000_0000_0000;
/// A group that has quota again goes on after so long, ns of CLOCK_MONOTONIC: the timer looks
/// at it every 5 ms, and pauses for a ms, and for one more for each 128 groups.
const RELEASE_NS: u64 = 7 * MS;
/// From the end of a task's turn by the tick until it has left its CPU, ns.
const SWITCH_NS: u64 = 50_000;

/// Counts of a group, from its tasks and the groups below.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    active: i64,
    nr_active: i64,
    tenant_tasks: i64,
}

/// All of them. Not within [`with`].
pub fn check(tick_ns: u64) {
    if !with(|s| s.groups.are_there()) {
        return;
    }
    let known: Vec<GroupId> = with(|s| {
        (0..s.groups.all.len())
            .filter(|&group| s.groups.is_known(group))
            .collect()
    });
    let mut states = BTreeMap::new();
    for group in known {
        let mut state = GroupState::default();
        // SAFETY: writes to `state` only.
        if unsafe { ffi::model_state_of_group(group as u64 + 1, &mut state) } {
            states.insert(group as u64 + 1, state);
        } else {
            with(|s| s.finding(format!("the kernel half has lost group {}", group + 1)));
        }
    }
    recount(&states);
    with(|s| {
        for (&id, state) in &states {
            let group = id as GroupId - 1;
            check_settings(s, group, state);
            check_account(s, group, state, tick_ns);
            check_frozen(s, group);
        }
        sfs_kernel_model::steady::begin(s);
    });
}

/// Active tasks and groups, and tenants.
fn recount(states: &BTreeMap<u64, GroupState>) {
    let mut sums: BTreeMap<u64, Sums> = BTreeMap::new();
    let live: Vec<_> = with(|s| s.live.iter().copied().collect());
    for task in live {
        let member = member_of(task);
        let group = sums.entry(member.active_group).or_default();
        group.active += i64::from(member.active_weight);
        group.nr_active += 1;
        sums.entry(member.tenant).or_default().tenant_tasks += 1;
    }
    for state in states.values() {
        let above = sums.entry(state.parent).or_default();
        above.active += i64::from(state.counted);
        above.nr_active += i64::from(state.nr_active > 0);
    }
    let (mut limited, mut weight) = (0, 0);
    for (&id, state) in states {
        let of = sums.get(&id).copied().unwrap_or_default();
        with(|s| compare(s, id, state, of));
        limited += u32::from(state.quota_ns > 0);
        weight += state.share_weight as i64;
    }
    let mut all = GroupSums::default();
    // SAFETY: writes to `all` only.
    unsafe { ffi::model_sums_of_groups(&mut all) };
    let counted = GroupSums {
        sharing_weight: weight,
        limited,
    };
    if all != counted {
        with(|s| {
            s.finding(format!(
                "groups sum up to {all:?}, and a recount gives {counted:?}"
            ))
        });
    }
}

fn compare(s: &mut State, id: u64, state: &GroupState, of: Sums) {
    // The root has neither weight nor bucket.
    let counts = Sums {
        active: state.active,
        nr_active: state.nr_active,
        tenant_tasks: state.share_runnable,
    };
    if id as GroupId != ROOT + 1 && counts != of {
        s.finding(format!(
            "group {id} counts {counts:?}, and a recount gives {of:?}"
        ));
    }
    let counted = if state.nr_active > 0 { state.weight } else { 0 };
    if state.counted != counted {
        s.finding(format!(
            "group {id} counts as {}, and should as {counted}",
            state.counted
        ));
    }
    if (state.share_weight > 0) != (state.share_runnable > 0) {
        s.finding(format!(
            "tenant {id} has weight {} and {} runnable tasks",
            state.share_weight, state.share_runnable
        ));
    }
}

/// The kernel half has the group's place, weight and quota.
fn check_settings(s: &mut State, group: GroupId, state: &GroupState) {
    let found = &s.groups.all[group];
    let above = s
        .groups
        .upwards(group)
        .skip(1)
        .find(|&at| s.groups.is_known(at));
    let expected = (
        above.map_or(0, |at| at as u64 + 1),
        found.settings.weight,
        found.account.map_or(0, |account| account.quota_ns),
    );
    let kept = (state.parent, state.weight, state.quota_ns);
    if kept != expected {
        s.finding(format!(
            "group {} is kept with parent, weight and quota {kept:?}, and has {expected:?}",
            group + 1
        ));
    }
}

/// The CPU time that the group has used of its quota, and that it does not use more.
fn check_account(s: &mut State, group: GroupId, state: &GroupState, tick_ns: u64) {
    let now = s.monotonic();
    let Some(account) = &mut s.groups.all[group].account else {
        return;
    };
    account.pass(now);
    let account = *account;
    let mut kept = Account {
        start: state.period_start,
        used: state.used_ns,
        ..account
    };
    kept.pass(now);
    if race::is_on() {
        return follow_account(s, group, kept, tick_ns);
    }
    if (kept.used, kept.start) != (account.used, account.start) {
        s.finding(format!(
            "group {} counts {} ns of its quota as used, and tasks have used {}",
            group + 1,
            kept.used,
            account.used
        ));
    }
    check_quota(s, group, account, tick_ns);
}

/// The same where callbacks interleave: the begin of a period and CPU time come in another order
/// than here, and what is saved up is cut at another time (replenish()). So the kernel half may be
/// off by the CPU time of a tick, and by the quota of a period.
fn follow_account(s: &mut State, group: GroupId, kept: Account, tick_ns: u64) {
    let account = s.groups.all[group].account.as_mut();
    let account = account.expect("a group with a quota");
    let off = account.used.abs_diff(kept.used);
    (account.used, account.start) = (kept.used, kept.start);
    let account = *account;
    if off > account.quota_ns + tick_ns + longest_ns() {
        s.finding(format!(
            "group {} counts {} ns of its quota as used, {off} ns more or less than tasks have used",
            group + 1,
            account.used,
        ));
    }
    check_quota(s, group, account, tick_ns);
}

/// Tasks on each CPU run until the tick after the one that has used up the quota.
fn check_quota(s: &mut State, group: GroupId, account: Account, tick_ns: u64) {
    let cpus = s.cpus.len() as u64;
    let most = account.quota_ns + cpus * (tick_ns + SWITCH_NS + PAUSES * longest_ns());
    // A task without a context, or without memory to see it leave the kernel, runs on.
    let is_exempt = account.let_go || s.odd.of.no_memory_of > 0;
    if account.strict > most as i64 && !is_exempt {
        s.finding(format!(
            "group {} has used {} us of a quota of {} us in {} us, with debts",
            group + 1,
            account.strict / 1_000,
            account.quota_ns / 1_000,
            account.period_ns / 1_000,
        ));
    }
}

/// Tasks that wait for quota go on when there is some.
fn check_frozen(s: &mut State, group: GroupId) {
    let (now, pauses) = (s.monotonic(), s.groups.limited as u64 / 128);
    let parked = s.queues.get(&(PARKED | (group as u64 + 1)));
    let Some(first) = parked.and_then(|queue| queue.iter().next()) else {
        s.groups.all[group].first_parked = None;
        return;
    };
    let found = &mut s.groups.all[group];
    let is_first_since = match found.first_parked {
        Some((task, since)) if task == first => since,
        _ => now,
    };
    found.first_parked = Some((first, is_first_since));
    let since = match &found.account {
        Some(account) => account.has_quota_since,
        None => Some(found.limited_at),
    };
    // Where callbacks interleave, moving a task takes time: the first of many goes on at once, the
    // last does not. And the kernel half may count the quota as used up a moment longer.
    let since = since.map(|since| {
        if race::is_on() {
            since.max(is_first_since)
        } else {
            since
        }
    });
    let waited = since.map_or(0, |since| now.saturating_sub(since));
    if waited > RELEASE_NS + pauses * MS + PAUSES * longest_ns() {
        let stage: Stage = found.stage;
        s.finding(format!(
            "tasks wait for quota in group {} ({stage:?}), which has had some for {} us",
            group + 1,
            waited / 1_000
        ));
    }
}
