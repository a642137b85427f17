//! A comparison of weights: groups of hogs share the machine, and nothing else happens.

use crate::group_events::GroupEvent;
use crate::group_ffi::Settings;
use crate::groups::{GroupId, ROOT};
use crate::state::{Event, State};
use crate::topology;
use crate::workload::{between, Habits, Workload};
use sfs_kernel_draws::numbers::MS;

/// A comparison takes this many times as long as another run.
pub const TIMES: u64 = 20;
/// The longest one, ns.
pub const LONGEST_NS: u64 = 10_000 * MS;
/// CPU time counts from so long after boot, ns. Before, the hogs use up their credit, and groups of
/// a low weight pay for that.
const FROM_NS: u64 = 5_000 * MS;
/// It is compared if it was counted for so long, ns.
const LEAST_NS: u64 = 2_000 * MS;
/// A group's part of the CPU time is at most so much off the part due to it, in per cent of the
/// part, and beyond that in per cent of the CPU time.
const ERROR_PER_CENT: f64 = 10.0;
const ROUNDING_PER_CENT: f64 = 2.0;

/// No other load, and a machine that a few dozens of hogs fill.
pub fn make_room(workload: &mut Workload) {
    workload.cpus = workload.cpus.min(8);
    workload.slice_ns = workload.slice_ns.min(20 * MS);
    workload.residents.clear();
    workload.arrivals_ns = 1_000_000_000 * MS;
    workload.pinned_of = u64::MAX;
    workload.changes_ns = 0;
    workload.burst_ns = 0;
    workload.real_time = None;
    workload.topology = topology::flat(workload.cpus);
    workload.habits = Habits {
        stays_of: 0,
        has_families: false,
    };
    workload.boundaries.kinds = 1 | 1 << 2;
    workload.boundaries.unit = 0;
}

/// Groups, some with two groups below, and in each of the lowest more hogs than CPUs.
pub fn make(s: &mut State) {
    for _ in 0..s.groups.load.most {
        let parent = make_group(s, ROOT);
        if between(&mut s.random, 0, 2) == 0 {
            make_group(s, parent);
            make_group(s, parent);
        }
    }
    let cpus = s.cpus.len() as u64;
    for group in leaves(s) {
        for _ in 0..between(&mut s.random, cpus + 1, 3 * cpus + 2) {
            let delay = between(&mut s.random, MS, 100 * MS);
            s.after(delay, Event::Group(GroupEvent::Born(group)));
        }
    }
}

fn make_group(s: &mut State, parent: GroupId) -> GroupId {
    let weight = between(&mut s.random, 50, 500) as u32;
    let settings = Settings {
        weight,
        ..Settings::default()
    };
    s.groups.make(parent, true, settings)
}

fn leaves(s: &State) -> Vec<GroupId> {
    let groups = s.groups.all.iter().enumerate().skip(1);
    let leaves = groups.filter(|(_, group)| group.children == 0);
    leaves.map(|(id, _)| id).collect()
}

/// Begins to count when the hogs have run for some time.
pub fn begin(s: &mut State) {
    if s.groups.load.is_steady && s.groups.measured_from == 0 && s.now >= FROM_NS {
        s.groups.measured_from = s.now;
    }
}

/// Compares at the end of a run that was long enough.
pub fn compare(s: &mut State) {
    let from = s.groups.measured_from;
    if from == 0 || s.now - from < LEAST_NS {
        return;
    }
    let all: u64 = leaves(s)
        .iter()
        .map(|&group| s.groups.all[group].ran_ns)
        .sum();
    for group in leaves(s) {
        let due = 100.0 * due(s, group);
        let got = 100.0 * s.groups.all[group].ran_ns as f64 / all as f64;
        if (got - due).abs() > due * ERROR_PER_CENT / 100.0 + ROUNDING_PER_CENT {
            s.finding(format!(
                "group {} has had {got:.1} % of the CPU time, and {due:.1} % are due to it",
                group + 1
            ));
        }
    }
}

/// The part due to a group: of each group above it by weight.
fn due(s: &State, group: GroupId) -> f64 {
    let part = |at: GroupId| {
        let groups = &s.groups.all;
        let siblings = groups
            .iter()
            .skip(1)
            .filter(|other| other.parent == groups[at].parent);
        let sum: u32 = siblings.map(|other| other.settings.weight).sum();
        f64::from(groups[at].settings.weight) / f64::from(sum)
    };
    let path = s.groups.upwards(group).filter(|&at| at != ROOT);
    path.map(part).product()
}
