//! Tests of the explanations, from events to the report.

use super::*;
use crate::account::Source;
use crate::event::{Event, Left, Task, What, Work};
use crate::kind::{Place, Turn};
use crate::scheduler::Loaded;

const FAIR: u64 = 0x2_0000;
const MS: u64 = 1_000_000;

/// A process of the function whose program has this letter as its name.
fn task(pid: i32, letter: u8, arrived_at: u64, open: bool) -> Task {
    let mut comm = [0; 16];
    comm[0] = letter;
    Task {
        pid,
        tgid: pid,
        comm,
        cgroup: 5,
        place: Place::of_queue(FAIR),
        turn: Turn::Fair,
        real_time: false,
        kernel: false,
        confined: false,
        last: !open,
        work: Some(Work {
            unit: pid as u64,
            seq: 1,
            open,
            arrived_at,
            function: 0,
            sandbox: 0,
        }),
    }
}

fn idle() -> Task {
    Task {
        work: None,
        ..task(0, 0, 0, false)
    }
}

fn switch(prev: Task, left: Left, next: Task) -> What {
    What::Switch {
        cpu: 0,
        prev,
        left,
        next,
    }
}

/// On one CPU, process 10 of `a` runs for 30 ms, then 11 of `b`, which has waited since 10 ms, for
/// 20 ms. 12 of `b` arrives at 40 ms, and waits until the end at 100 ms.
fn report(slower_than: u64, most: usize) -> Report {
    let mut explainer = Explainer::new(slower_than * MS, most);
    let mut account = Account::new(Source::Scheduler, 1, 0, 1000);
    let names = Names::default();
    explainer.begin(0).unwrap();
    let new = |task| What::Wake { task, new: true };
    let (a, b) = (task(10, b'a', 0, true), task(11, b'b', 10 * MS, true));
    let events = [
        (0, new(a)),
        (0, switch(idle(), Left::Asleep { io: false }, a)),
        (10, new(b)),
        (30, switch(task(10, b'a', 0, false), Left::Dead, b)),
        (40, new(task(12, b'b', 40 * MS, true))),
        (50, switch(task(11, b'b', 0, false), Left::Dead, idle())),
    ];
    for (at, what) in events {
        account.add(&Event {
            at_ns: at * MS,
            what,
        });
        for output in account.take() {
            explainer.take(output, &account, &names).unwrap();
        }
    }
    account.finish(100 * MS);
    for output in account.take() {
        explainer.take(output, &account, &names).unwrap();
    }
    explainer.report(&Followed {
        loaded: Loaded::ScxSfs("sfs_".into()),
        from: 0,
        to: 100 * MS,
        lost: 3,
        replaced: false,
        missing: vec!["something"],
    })
}

#[test]
fn the_slowest_come_first_with_who_ran_instead() {
    let report = report(35, 10);
    assert_eq!((report.ended, report.slower), (2, 1));
    assert_eq!((report.slower_in_progress, report.lost_events), (1, 3));
    let pids: Vec<i32> = report.slowest.iter().map(|slow| slow.pid).collect();
    assert_eq!(pids, [12, 11]);
    let waits = &report.slowest[0];
    assert!(!waits.finished);
    assert_eq!(waits.parts, BTreeMap::from([("queued_fair", 60.0)]));
    let ran: Vec<_> = waits
        .ran_instead
        .iter()
        .map(|one| (one.name.as_str(), one.cpu_ms))
        .collect();
    assert_eq!(ran, [("idle", 50.0), ("b", 10.0)]);
    let second = &report.slowest[1];
    assert_eq!((second.took_ms, second.arrived_ms), (40.0, 10.0));
    assert_eq!(
        second.sentences,
        [
            "waited 20 ms (50 %) in FAIR behind 1 invocation of a",
            "ran for 20 ms (50 %): FAIR 20 ms",
            "while it waited, its one CPU had: 1 invocation of a 100 %",
        ]
    );
}

#[test]
fn only_so_many_are_kept_and_all_are_counted() {
    let report = report(1, 1);
    assert_eq!((report.ended, report.slower), (2, 2));
    assert_eq!(report.slowest.len(), 1);
    assert_eq!(report.slowest[0].pid, 12);
}

#[test]
fn nothing_is_slower_than_a_long_time() {
    let report = report(1000, 10);
    assert_eq!((report.slower, report.slower_in_progress), (0, 0));
    assert!(report.slowest.is_empty());
    let text = text(&report);
    let first = "0 of 2 invocations that ended in 100 ms took 1000 ms or longer (scx_sfs)\n";
    assert_eq!(text, first);
}

#[test]
fn json_has_each_figure() {
    let json = serde_json::to_value(report(35, 10)).unwrap();
    assert_eq!(json["slowest"][1]["ran_instead"][0]["class"], "function");
    assert_eq!(json["missing"][0], "something");
    assert_eq!(json["watched_ms"], 100.0);
}
