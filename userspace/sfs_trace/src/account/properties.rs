//! Properties of the state machine.

use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{
    account, birth, ended, idle, in_queue, serving, switch, task, wake, ASLEEP, FAIR,
};
use super::*;
use crate::event::Work;
use crate::kind::PARKED;

fn any_task() -> impl Strategy<Value = Task> {
    let place = prop_oneof![
        Just(None),
        Just(Place::of_queue(FAIR)),
        Just(Place::of_queue(PARKED | 9)),
    ];
    let work = (0..4_u32, any::<bool>(), 0..3000_u64);
    let bits = (any::<bool>(), any::<bool>(), any::<bool>());
    (1..5, 1..3, place, work, bits).prop_map(|(pid, tgid, place, work, bits)| {
        let (seq, open, arrived_at) = work;
        let unit = tgid as u64;
        let mut made = task(pid);
        made.tgid = tgid;
        made.place = place;
        (made.real_time, made.confined, made.last) = bits;
        made.work = Some(Work {
            unit,
            seq,
            open,
            arrived_at,
            function: unit,
            sandbox: 0,
        });
        made
    })
}

fn any_what() -> impl Strategy<Value = What> {
    let left = prop_oneof![Just(Left::Runnable), Just(ASLEEP), Just(Left::Dead)];
    let next = prop_oneof![Just(idle()), any_task()];
    prop_oneof![
        4 => (0..3_usize, any_task(), left, next).prop_map(|(cpu, prev, left, next)| {
            What::Switch { cpu, prev, left, next }
        }),
        2 => (any_task(), any::<bool>()).prop_map(|(task, new)| What::Wake { task, new }),
        1 => any_task().prop_map(What::Moved),
        1 => (0..3_usize, any_task()).prop_map(|(cpu, task)| What::Look(cpu, task)),
        1 => (1..5, 0..4_usize).prop_map(|(pid, cpus)| What::Confined(pid, Cpus::first(cpus))),
    ]
}

/// Checks that the segments cover the invocation's life.
fn check(invocation: &Invocation) -> Result<(), TestCaseError> {
    let mut at = invocation.begin;
    let mut sums = [0; crate::kind::KINDS];
    for segment in &invocation.segments {
        prop_assert_eq!(segment.from, at, "gap or overlap");
        prop_assert!(segment.to > segment.from);
        sums[segment.kind.index()] += segment.to - segment.from;
        at = segment.to;
    }
    prop_assert_eq!(at, invocation.end);
    prop_assert_eq!(sums, invocation.sums);
    prop_assert_eq!(sums.iter().sum::<u64>(), invocation.turnaround());
    prop_assert_eq!(invocation.unrecorded, 0);
    Ok(())
}

proptest! {
    /// Whatever the events are, also those that contradict each other because others were lost.
    #[test]
    fn segments_cover_each_invocation(events in vec((0..50_u64, any_what()), 0..200)) {
        let mut account = Account::new(Source::Scheduler, 3, 500, 100_000);
        let (mut at_ns, mut began, mut ran) = (500, 0, [500; 3]);
        for (pause, what) in events {
            at_ns += pause;
            account.add(&Event { at_ns, what });
            for output in account.take() {
                match output {
                    Output::Ended(invocation) => {
                        began += 1;
                        prop_assert!(invocation.end <= at_ns);
                        check(&invocation)?;
                    }
                    // Stays on one CPU do not overlap.
                    Output::Run(run) => {
                        prop_assert!(run.from >= ran[run.cpu] && run.to > run.from);
                        ran[run.cpu] = run.to;
                    }
                }
            }
        }
        account.finish(at_ns + 1);
        for invocation in ended(&mut account) {
            began += 1;
            check(&invocation)?;
        }
        prop_assert_eq!(began, account.last_serial, "each one ends once");
        prop_assert_eq!(account.room(), 100_000);
    }

    /// What a process did is what comes out.
    #[test]
    fn sums_are_those_of_the_life(stays in vec((1..100_u64, 1..100_u64, 1..100_u64), 1..50)) {
        let mut account = account();
        let own = serving(10, 1, 100);
        let mut at = 100;
        for (place, (queued, runs, sleeps)) in stays.iter().enumerate() {
            let task = in_queue(own, FAIR);
            if place == 0 {
                birth(&mut account, at, task);
            } else {
                wake(&mut account, at, task);
            }
            at += queued;
            switch(&mut account, at, 0, idle(), ASLEEP, own);
            at += runs;
            switch(&mut account, at, 0, own, ASLEEP, idle());
            at += sleeps;
        }
        account.finish(at);
        let sum = |of: fn(&(u64, u64, u64)) -> u64| stays.iter().map(of).sum::<u64>();
        let first = &ended(&mut account)[0];
        prop_assert_eq!(first.time(Kind::Queued(Queue::Fair)), sum(|stay| stay.0));
        prop_assert_eq!(first.time(Kind::Running(Turn::Fair)), sum(|stay| stay.1));
        prop_assert_eq!(first.time(Kind::Blocked), sum(|stay| stay.2));
        prop_assert_eq!(first.turnaround(), at - 100);
    }
}
