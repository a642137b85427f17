//! Tests of the state machine.

use super::*;
use crate::event::Work;
use crate::invocation::Segment;
use crate::kind::PARKED;

/// A task of process `pid` outside of any invocation.
pub(super) fn task(pid: i32) -> Task {
    Task {
        pid,
        tgid: pid,
        comm: *b"resize\0\0\0\0\0\0\0\0\0\0",
        cgroup: 5,
        place: None,
        turn: Turn::Fair,
        real_time: false,
        kernel: false,
        confined: false,
        last: false,
        work: Some(Work {
            unit: pid as u64,
            seq: 0,
            open: false,
            arrived_at: 0,
            function: crate::roster::BY_PROGRAM | 7,
            sandbox: 0,
        }),
    }
}

/// The same, serving invocation `seq`, which arrived at `arrived_at`.
pub(super) fn serving(pid: i32, seq: u32, arrived_at: u64) -> Task {
    let mut task = task(pid);
    if let Some(work) = &mut task.work {
        (work.seq, work.open, work.arrived_at) = (seq, true, arrived_at);
    }
    task
}

/// The same, after its end.
pub(super) fn served(pid: i32, seq: u32) -> Task {
    let mut task = serving(pid, seq, 0);
    if let Some(work) = &mut task.work {
        work.open = false;
    }
    task
}

pub(super) fn idle() -> Task {
    Task {
        work: None,
        ..task(0)
    }
}

pub(super) fn real_time(pid: i32) -> Task {
    Task {
        real_time: true,
        ..task(pid)
    }
}

/// Waits in `queue`, the id of a dispatch queue.
pub(super) fn in_queue(task: Task, queue: u64) -> Task {
    let place = Place::of_queue(queue);
    Task { place, ..task }
}

pub(super) fn with_turn(task: Task, turn: Turn) -> Task {
    Task { turn, ..task }
}

pub(super) fn account() -> Account {
    Account::new(Source::Scheduler, 2, 0, 1000)
}

pub(super) fn switch(
    account: &mut Account,
    at_ns: u64,
    cpu: usize,
    prev: Task,
    left: Left,
    next: Task,
) {
    let what = What::Switch {
        cpu,
        prev,
        left,
        next,
    };
    account.add(&Event { at_ns, what });
}

pub(super) fn wake(account: &mut Account, at_ns: u64, task: Task) {
    let what = What::Wake { task, new: false };
    account.add(&Event { at_ns, what });
}

pub(super) fn birth(account: &mut Account, at_ns: u64, task: Task) {
    let what = What::Wake { task, new: true };
    account.add(&Event { at_ns, what });
}

pub(super) fn ended(account: &mut Account) -> Vec<Invocation> {
    let out = account.take().into_iter();
    out.filter_map(|output| match output {
        Output::Ended(invocation) => Some(*invocation),
        Output::Run(_) => None,
    })
    .collect()
}

pub(super) fn segments(invocation: &Invocation) -> Vec<(Kind, u64)> {
    let of = |segment: &Segment| (segment.kind, segment.to - segment.from);
    invocation.segments.iter().map(of).collect()
}

pub(super) const ASLEEP: Left = Left::Asleep { io: false };
pub(super) const FAIR: u64 = 0x2_0000;
pub(super) const FILTER: u64 = 0x1_0000;

#[test]
fn a_process_waits_runs_sleeps_and_exits() {
    let mut account = account();
    birth(&mut account, 100, in_queue(serving(10, 1, 100), FILTER));
    let filter = with_turn(serving(10, 1, 100), Turn::Filter);
    switch(&mut account, 130, 0, idle(), ASLEEP, filter);
    switch(
        &mut account,
        150,
        0,
        filter,
        Left::Asleep { io: true },
        idle(),
    );
    wake(&mut account, 190, in_queue(serving(10, 1, 100), FAIR));
    switch(&mut account, 200, 1, idle(), ASLEEP, serving(10, 1, 100));
    assert!(ended(&mut account).is_empty());
    let mut last = served(10, 1);
    last.last = true;
    switch(&mut account, 260, 1, last, Left::Dead, idle());
    let invocations = ended(&mut account);
    assert_eq!(
        segments(&invocations[0]),
        [
            (Kind::Queued(Queue::Filter), 30),
            (Kind::Running(Turn::Filter), 20),
            (Kind::BlockedIo, 40),
            (Kind::Queued(Queue::Fair), 10),
            (Kind::Running(Turn::Fair), 60),
        ]
    );
    assert!(invocations[0].finished);
    assert_eq!(invocations[0].turnaround(), 160);
    assert!(account.units.is_empty() && account.tasks.is_empty());
    assert_eq!(account.room(), 1000);
}

#[test]
fn a_request_arrives_when_its_server_wakes_up() {
    let mut account = account();
    // The server sleeps in accept(); it is seen first when it wakes up.
    wake(&mut account, 1000, in_queue(task(10), FAIR));
    switch(&mut account, 1010, 0, idle(), ASLEEP, task(10));
    // accept() returns at 1020: the request arrived at the wake-up.
    let now = What::Look(0, serving(10, 1, 1000));
    account.add(&Event {
        at_ns: 1020,
        what: now,
    });
    switch(&mut account, 1100, 0, served(10, 1), ASLEEP, idle());
    let invocations = ended(&mut account);
    assert_eq!(
        segments(&invocations[0]),
        [
            (Kind::Queued(Queue::Fair), 10),
            (Kind::Running(Turn::Fair), 90),
        ]
    );
    assert_eq!((invocations[0].begin, invocations[0].end), (1000, 1100));
}

#[test]
fn a_request_may_begin_and_end_between_two_events() {
    let mut account = account();
    switch(&mut account, 900, 0, idle(), ASLEEP, task(10));
    switch(&mut account, 950, 0, task(10), ASLEEP, idle());
    wake(&mut account, 1000, in_queue(task(10), FAIR));
    switch(&mut account, 1010, 0, idle(), ASLEEP, task(10));
    // Nothing has called the scheduler between accept() and the next accept().
    let mut done = served(10, 1);
    if let Some(work) = &mut done.work {
        work.arrived_at = 1000;
    }
    switch(&mut account, 1100, 0, done, ASLEEP, idle());
    let invocations = ended(&mut account);
    assert_eq!(invocations.len(), 1);
    assert_eq!(
        segments(&invocations[0]),
        [
            (Kind::Queued(Queue::Fair), 10),
            (Kind::Running(Turn::Fair), 90),
        ]
    );
    // It is not seen again.
    wake(&mut account, 1200, in_queue(served(10, 1), FAIR));
    account.finish(1300);
    assert!(ended(&mut account).is_empty());
}

#[test]
fn the_next_request_ends_the_last_one() {
    let mut account = account();
    wake(&mut account, 100, in_queue(serving(10, 1, 100), FAIR));
    switch(&mut account, 110, 0, idle(), ASLEEP, serving(10, 1, 100));
    // The second one was accepted at 150, without a sleep, and is seen at 180.
    switch(
        &mut account,
        180,
        0,
        serving(10, 2, 150),
        Left::Runnable,
        idle(),
    );
    account.finish(200);
    let invocations = ended(&mut account);
    assert_eq!((invocations[0].seq, invocations[0].end), (1, 150));
    assert!(invocations[0].finished && !invocations[1].finished);
    assert_eq!((invocations[1].begin, invocations[1].end), (150, 200));
    assert_eq!(
        segments(&invocations[1]),
        [
            (Kind::Running(Turn::Fair), 30),
            (Kind::Queued(Queue::Fair), 20),
        ]
    );
}

#[test]
fn a_hint_may_tell_of_an_earlier_arrival() {
    let mut account = account();
    wake(&mut account, 500, in_queue(serving(10, 1, 500), FAIR));
    switch(&mut account, 510, 0, idle(), ASLEEP, serving(10, 1, 400));
    switch(&mut account, 600, 0, served(10, 1), ASLEEP, idle());
    let first = &ended(&mut account)[0];
    assert_eq!(
        segments(first),
        [
            (Kind::Unseen, 100),
            (Kind::Queued(Queue::Fair), 10),
            (Kind::Running(Turn::Fair), 90),
        ]
    );
    assert_eq!(first.sums.iter().sum::<u64>(), first.turnaround());
}

#[test]
fn what_was_before_the_watch_is_told_apart() {
    let mut account = Account::new(Source::Scheduler, 2, 1000, 1000);
    let old = serving(10, 4, 300);
    switch(&mut account, 1200, 0, idle(), ASLEEP, old);
    switch(&mut account, 1300, 0, served(10, 4), ASLEEP, idle());
    let first = &ended(&mut account)[0];
    assert_eq!(
        segments(first),
        [
            (Kind::Before, 700),
            (Kind::Unseen, 200),
            (Kind::Running(Turn::Fair), 100),
        ]
    );
    assert_eq!(first.seen(), 300);
}

#[test]
fn a_displaced_task_waits_for_real_time_work_until_that_ends() {
    let mut account = account();
    let own = serving(10, 1, 100);
    birth(&mut account, 100, in_queue(own, FAIR));
    switch(&mut account, 110, 0, idle(), ASLEEP, own);
    switch(&mut account, 150, 0, own, Left::Runnable, real_time(66));
    switch(&mut account, 250, 0, real_time(66), ASLEEP, task(20));
    switch(&mut account, 280, 0, task(20), ASLEEP, own);
    account.finish(300);
    assert_eq!(
        segments(&ended(&mut account)[0]),
        [
            (Kind::Queued(Queue::Fair), 10),
            (Kind::Running(Turn::Fair), 40),
            (Kind::Displaced, 100),
            (Kind::Queued(Queue::Fair), 30),
            (Kind::Running(Turn::Fair), 20),
        ]
    );
}

#[test]
fn real_time_work_on_all_cpus_displaces_who_wakes_up() {
    let mut account = account();
    switch(&mut account, 100, 0, idle(), ASLEEP, real_time(66));
    wake(&mut account, 110, in_queue(serving(10, 1, 110), FILTER));
    switch(&mut account, 120, 1, idle(), ASLEEP, real_time(67));
    switch(&mut account, 150, 1, real_time(67), ASLEEP, idle());
    account.finish(160);
    assert_eq!(
        segments(&ended(&mut account)[0]),
        [
            (Kind::Queued(Queue::Filter), 10),
            (Kind::Displaced, 30),
            (Kind::Queued(Queue::Filter), 10),
        ]
    );
}

#[test]
fn a_confined_task_needs_its_own_cpus() {
    let mut account = account();
    let mut cpus = Cpus::default();
    cpus.insert(0);
    account.add(&Event {
        at_ns: 90,
        what: What::Confined(10, cpus),
    });
    let mut own = in_queue(serving(10, 1, 100), FAIR);
    own.confined = true;
    wake(&mut account, 100, own);
    switch(&mut account, 120, 0, idle(), ASLEEP, real_time(66));
    account.finish(150);
    let first = &ended(&mut account)[0];
    assert_eq!(first.time(Kind::Displaced), 30);
    assert_eq!(first.cpus.as_deref().map(Cpus::count), Some(1));
}

#[test]
fn a_parked_task_leaves_with_its_quota() {
    let mut account = account();
    let own = serving(10, 1, 100);
    switch(&mut account, 100, 0, idle(), ASLEEP, own);
    let parked = in_queue(own, PARKED | 99);
    switch(&mut account, 140, 0, parked, Left::Runnable, idle());
    let what = What::Moved(in_queue(own, FAIR));
    account.add(&Event { at_ns: 200, what });
    account.finish(210);
    let first = &ended(&mut account)[0];
    assert_eq!(
        segments(first),
        [
            (Kind::Running(Turn::Fair), 40),
            (Kind::Parked, 60),
            (Kind::Queued(Queue::Fair), 10),
        ]
    );
    assert_eq!(first.parked_by, 99);
}

#[test]
fn a_turn_may_change_without_a_switch() {
    let mut account = account();
    let filter = with_turn(serving(10, 1, 100), Turn::Filter);
    switch(&mut account, 100, 0, idle(), ASLEEP, filter);
    let what = What::Look(0, serving(10, 1, 100));
    account.add(&Event { at_ns: 140, what });
    account.finish(200);
    let out = account.take();
    let turns: Vec<_> = out
        .iter()
        .filter_map(|output| match output {
            Output::Run(run) => Some((run.turn, run.to - run.from)),
            Output::Ended(_) => None,
        })
        .collect();
    assert_eq!(turns, [(Turn::Filter, 40), (Turn::Fair, 60)]);
    assert!(matches!(&out[2], Output::Ended(one)
        if segments(one) == [(Kind::Running(Turn::Filter), 40), (Kind::Running(Turn::Fair), 60)]));
}

#[test]
fn the_last_name_of_a_program_counts() {
    let mut account = account();
    switch(&mut account, 100, 0, idle(), ASLEEP, serving(10, 1, 100));
    let mut renamed = served(10, 1);
    renamed.comm = [b'x'; 16];
    switch(&mut account, 200, 0, renamed, Left::Dead, idle());
    let first = &ended(&mut account)[0];
    assert_eq!(account.roster().who(first.who).comm, [b'x'; 16]);
}

#[test]
fn threads_share_an_invocation() {
    let mut account = account();
    let first = serving(10, 1, 100);
    let second = Task { pid: 11, ..first };
    switch(&mut account, 100, 0, idle(), ASLEEP, first);
    switch(&mut account, 120, 1, idle(), ASLEEP, second);
    switch(&mut account, 150, 0, first, ASLEEP, idle());
    switch(
        &mut account,
        180,
        1,
        in_queue(second, FAIR),
        Left::Runnable,
        idle(),
    );
    switch(&mut account, 190, 1, idle(), ASLEEP, second);
    // The leader exits first, and the invocation goes on.
    switch(&mut account, 195, 0, idle(), ASLEEP, first);
    switch(&mut account, 196, 0, first, Left::Dead, idle());
    let mut last = Task {
        last: true,
        ..second
    };
    last.work = served(10, 1).work;
    switch(&mut account, 200, 1, last, Left::Dead, idle());
    let invocations = ended(&mut account);
    assert_eq!(
        segments(&invocations[0]),
        [
            (Kind::Running(Turn::Fair), 80),
            (Kind::Queued(Queue::Fair), 10),
            (Kind::Running(Turn::Fair), 10),
        ]
    );
}

#[test]
fn without_scx_sfs_a_new_process_is_an_invocation() {
    let wanted: Wanted = Box::new(|cgroup| cgroup == 5);
    let mut account = Account::new(Source::Processes(wanted), 2, 0, 1000);
    let plain = |pid| Task {
        work: None,
        turn: Turn::Other,
        ..task(pid)
    };
    // An old process is none, and neither is one of another cgroup.
    wake(&mut account, 50, plain(9));
    birth(
        &mut account,
        90,
        Task {
            cgroup: 6,
            ..plain(8)
        },
    );
    birth(&mut account, 100, plain(10));
    switch(&mut account, 120, 0, idle(), ASLEEP, plain(10));
    let last = Task {
        last: true,
        ..plain(10)
    };
    switch(&mut account, 150, 0, last, Left::Dead, plain(9));
    account.finish(200);
    let invocations = ended(&mut account);
    assert_eq!(invocations.len(), 1);
    assert_eq!(
        segments(&invocations[0]),
        [
            (Kind::Queued(Queue::Other), 20),
            (Kind::Running(Turn::Other), 30),
        ]
    );
}

#[test]
fn a_wake_up_of_a_task_that_runs_is_none() {
    let mut account = account();
    let own = serving(10, 1, 100);
    switch(&mut account, 100, 0, idle(), ASLEEP, own);
    wake(&mut account, 120, own);
    account.finish(150);
    let only = [(Kind::Running(Turn::Fair), 50)];
    assert_eq!(segments(&ended(&mut account)[0]), only);
}

#[test]
fn segments_beyond_the_room_are_counted() {
    let mut account = Account::new(Source::Scheduler, 2, 0, 3);
    let own = serving(10, 1, 0);
    for at in (0..100).step_by(20) {
        switch(&mut account, at, 0, idle(), ASLEEP, own);
        switch(&mut account, at + 10, 0, own, ASLEEP, idle());
    }
    account.finish(100);
    let first = &ended(&mut account)[0];
    assert_eq!((first.segments.len(), first.unrecorded), (3, 7));
    assert_eq!(first.sums.iter().sum::<u64>(), first.turnaround());
    assert_eq!(first.time(Kind::Running(Turn::Fair)), 50);
    assert_eq!(account.room(), 3);
}
