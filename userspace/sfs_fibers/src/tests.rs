//! Turns of work, with and without locks.

use super::*;
use rand_core::SeedableRng;
use std::rc::Rc;

fn begin(seed: u64, longest_ns: u64) {
    let races = Races {
        gap: 2,
        access: 0,
        longest_ns,
    };
    install(races, ChaCha8Rng::seed_from_u64(seed));
}

/// Reads a number, pauses, and writes it back one higher, under a lock or not. Returns what four
/// pieces of such work leave of 0.
fn count(seed: u64, lock: Option<Lock>) -> u64 {
    begin(seed, 1_000);
    let number = Rc::new(Cell::new(0));
    for _ in 0..4 {
        let number = Rc::clone(&number);
        spawn(move || {
            if let Some(lock) = lock {
                while !try_lock(lock) {
                    wait_for(lock);
                }
            }
            let read = number.get();
            pause(0, None);
            number.set(read + 1);
            lock.into_iter().for_each(unlock);
        });
    }
    assert!(in_progress() > 0);
    while proceed_next().is_some() {}
    assert_eq!(in_progress(), 0);
    remove();
    number.get()
}

#[test]
fn a_pause_loses_updates_that_a_lock_keeps() {
    for seed in 0..20 {
        assert!(count(seed, None) < 4);
        assert_eq!(count(seed, Some(Lock::RunQueue(1))), 4);
    }
}

#[test]
fn a_deadlock_is_told() {
    begin(1, 1_000);
    let pairs = [(1, 2), (2, 1)];
    for (first, second) in pairs.map(|(a, b)| (Lock::Wakeup(a), Lock::Wakeup(b))) {
        spawn(move || {
            assert!(try_lock(first));
            pause(0, None);
            while !try_lock(second) {
                wait_for(second);
            }
            unlock(second);
            unlock(first);
        });
    }
    let told = finish().expect_err("each waits for the other");
    assert!(told.contains("[1] for Wakeup(2) of Some(2)"), "{told}");
    assert_eq!(remove().map(|totals| totals.waits), Some(2));
}

#[test]
fn work_pauses_for_so_long_at_most() {
    begin(2, 100);
    spawn(|| {
        let mut now = 1_000;
        while pause(now, None) {
            now = now.max(next_at().unwrap_or(now));
        }
    });
    let mut last = 0;
    while let Some(at) = next_at() {
        last = at;
        proceed_next();
    }
    assert!(last <= 1_100, "{last}");
    remove();
}

#[test]
fn without_pauses_work_comes_to_its_end_at_once() {
    let done = Rc::new(Cell::new(false));
    let sets = Rc::clone(&done);
    spawn(move || sets.set(!pause(0, None) && try_lock(Lock::Groups)));
    assert!(done.get() && !is_on());
}

#[test]
fn half_of_the_seeds_have_pauses() {
    let drawn = (0..200).filter_map(|seed| Races::draw(&mut ChaCha8Rng::seed_from_u64(seed)));
    let drawn: Vec<Races> = drawn.collect();
    assert!((60..140).contains(&drawn.len()), "{}", drawn.len());
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let sum: i64 = (0..1_000).map(|_| drawn[0].counts(&mut random)).sum();
    let mean = drawn[0].gap as i64 * 64;
    assert!(
        (mean * 800..mean * 1_200).contains(&sum),
        "{sum} for {mean}"
    );
}

#[test]
fn what_work_may_point_to_is_kept() {
    let thing = Rc::new(());
    begin(4, 1_000);
    keep(Rc::clone(&thing));
    assert_eq!(Rc::strong_count(&thing), 1);
    spawn(|| assert!(pause(0, None)));
    keep(Rc::clone(&thing));
    assert_eq!(Rc::strong_count(&thing), 2);
    finish().expect("no deadlock");
    assert_eq!(Rc::strong_count(&thing), 1);
    remove();
}
