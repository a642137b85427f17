//! Properties of every history.

mod common;

use proptest::collection::vec;
use proptest::prelude::*;
use sfs_policy::learn::buckets::{bucket, start_ns, BUCKETS};
use sfs_policy::learn::rank::{ranks, Aim, Mass};
use sfs_policy::learn::{Change, End, LearnConfig, Learner, StateError, Table};
use std::collections::HashMap;

const MS: u64 = 1_000_000;

/// A service time: usual ones, and arbitrary ones.
fn service_ns() -> impl Strategy<Value = u64> {
    prop_oneof![8 => MS..2000 * MS, 1 => any::<u64>()]
}

/// Completions of a few functions, and occasionally of any.
fn history(most: usize) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let function = prop_oneof![8 => 0u64..30, 1 => any::<u64>()];
    vec((function, service_ns()), 0..most)
}

fn small() -> LearnConfig {
    LearnConfig {
        functions: 20,
        tables: 6,
        ..LearnConfig::default()
    }
}

fn learn(config: LearnConfig, history: &[(u64, u64)]) -> Learner {
    let mut learner = Learner::new(config);
    for (function, ns) in history {
        learner.on_completion(*function, *ns);
    }
    learner
}

fn distance(one: &Table, other: &Table) -> u8 {
    let pairs = one.rank.iter().zip(other.rank);
    pairs.map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0)
}

/// The tables as the kernel half has them, from the changes alone.
#[derive(Default)]
struct Kernel {
    tables: HashMap<u16, Table>,
    functions: HashMap<u64, u16>,
    default_table: Option<u16>,
}

impl Kernel {
    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Table(id, table) => drop(self.tables.insert(id, table)),
                Change::DefaultTable(id) => self.default_table = Some(id),
                Change::Function(key, id) => drop(self.functions.insert(key, id)),
                Change::Forgotten(key) => drop(self.functions.remove(&key)),
            }
        }
    }

    fn table(&self, key: u64) -> Option<Table> {
        let id = self.functions.get(&key).copied().or(self.default_table)?;
        self.tables.get(&id).copied()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn memory_is_bounded(history in history(400)) {
        let mut learner = Learner::new(small());
        for (function, ns) in history {
            learner.on_completion(function, ns);
            learner.refresh();
            prop_assert!(learner.len() <= 20);
            prop_assert!(learner.tables() <= 6);
        }
    }

    #[test]
    fn published_tables_agree_with_the_learner(
        history in history(400),
        every in 1usize..40,
        some in 1usize..30,
    ) {
        let mut learner = Learner::new(small());
        let mut kernel = Kernel::default();
        for (count, (function, ns)) in history.iter().enumerate() {
            learner.on_completion(*function, *ns);
            if count % every == 0 {
                kernel.apply(learner.refresh_some(some));
                prop_assert!(kernel.functions.len() <= 20 + learner.pending());
            }
        }
        for _ in 0..learner.pending() + 20 {
            kernel.apply(learner.refresh_some(some));
        }
        prop_assert_eq!(learner.pending(), 0);
        for (function, _) in &history {
            prop_assert_eq!(kernel.table(*function), learner.table(*function));
        }
    }

    #[test]
    fn each_completion_counts_at_once(history in history(100)) {
        let mut learner = Learner::new(small());
        learner.refresh();
        for (function, ns) in history {
            prop_assert_eq!(learner.pending(), 0);
            learner.on_completion(function, ns);
            // Another function may be forgotten for it.
            prop_assert!((1..=2).contains(&learner.pending()));
            learner.refresh();
            prop_assert!(learner.functions().all(|one| one.rank().is_some()));
        }
    }

    #[test]
    fn sharing_is_within_the_tolerance(history in history(300), tolerance in 0u8..6) {
        // As many tables as functions, so there is always room.
        let shared = LearnConfig { functions: 400, tables: 400, tolerance, ..small() };
        let exact = LearnConfig { tolerance: 0, ..shared };
        let (mut shared, mut exact) = (learn(shared, &history), learn(exact, &history));
        shared.refresh();
        exact.refresh();
        for (function, _) in &history {
            if let (Some(one), Some(other)) = (shared.table(*function), exact.table(*function)) {
                prop_assert!(distance(&one, &other) <= tolerance);
            }
        }
    }

    #[test]
    fn far_past_its_history_a_function_is_unknown(
        others in vec((0u64..30, MS..5000 * MS), 20..200),
        own in vec(MS..200 * MS, 1..60),
    ) {
        let config = LearnConfig { functions: 100, tables: 100, tolerance: 0, ..small() };
        let mut learner = learn(config, &others);
        own.iter().for_each(|ns| learner.on_completion(99, *ns));
        learner.refresh();
        let (own_table, unknown) = (learner.table(99).unwrap(), learner.table(1000).unwrap());
        // A completion says something about times up to four and a half doublings away.
        let past = own.iter().map(|ns| bucket(*ns)).max().unwrap() + 18 + 1;
        prop_assert_eq!(&own_table.rank[past..], &unknown.rank[past..]);
    }

    #[test]
    fn many_functions_are_many_unknown_ones(others in vec((0u64..30, MS..5000 * MS), 100..200)) {
        let config = LearnConfig { functions: 100, tables: 3, ..small() };
        let mut learner = learn(config, &others);
        learner.refresh();
        let unknown = learner.table(u64::MAX);
        for function in 1000..1100 {
            prop_assert_eq!(learner.table(function), unknown);
        }
    }

    #[test]
    fn functions_that_need_more_rank_later(short in MS..500 * MS, factor in 2u64..50) {
        let mut learner = Learner::new(small());
        for _ in 0..50 {
            learner.on_completion(1, short);
            learner.on_completion(2, short * factor);
        }
        learner.refresh();
        let rank = |function| learner.table(function).unwrap().rank(0);
        prop_assert!(rank(1) < rank(2), "{} {}", rank(1), rank(2));
    }

    #[test]
    fn ranks_are_at_most_the_remaining_work(
        mass in vec(prop_oneof![3 => Just(0.0), 1 => 0.0..1.0f64], BUCKETS),
    ) {
        let mass: Mass = mass.try_into().unwrap();
        let Some(last) = mass.iter().rposition(|one| *one > 0.0) else {
            return Ok(());
        };
        let longest = start_ns(last + 1);
        for (at, rank) in ranks(&mass, Aim::Turnaround)[..=last].iter().enumerate() {
            let left = longest - start_ns(at);
            prop_assert!(usize::from(*rank) <= bucket(left), "{at}: {rank}");
        }
    }

    #[test]
    fn a_slice_ends_where_the_rank_worsens(
        rank in vec(0u8..BUCKETS as u8, BUCKETS),
        attained_ns in service_ns(),
    ) {
        let table = Table::new(rank.try_into().unwrap());
        let now = table.rank(attained_ns);
        let from = bucket(attained_ns);
        match table.worsens_ns(attained_ns) {
            None => prop_assert!(table.rank[from..].iter().all(|rank| *rank <= now)),
            Some(at) => {
                prop_assert!(at > attained_ns && table.rank(at) > now);
                prop_assert!(table.rank[from..bucket(at)].iter().all(|rank| *rank <= now));
            }
        }
    }

    #[test]
    fn saving_loses_nothing(history in history(400)) {
        let learner = learn(small(), &history);
        let bytes = learner.encode();
        prop_assert_eq!(&learner.snapshot().encode(), &bytes);
        let mut back = Learner::decode(small(), &bytes).unwrap();
        prop_assert_eq!(back.encode(), bytes);
        // Both lead to the same tables if made from scratch.
        let mut learner = learner;
        learner.refresh();
        back.refresh();
        prop_assert_eq!(back.table(u64::MAX), learner.table(u64::MAX));
    }

    #[test]
    fn a_smaller_learner_keeps_the_latest(history in history(400)) {
        let bytes = learn(LearnConfig { functions: 100, ..small() }, &history).encode();
        let back = Learner::decode(small(), &bytes).unwrap();
        prop_assert!(back.len() <= 20);
    }

    #[test]
    fn damage_is_detected(history in history(60), at in any::<usize>(), bit in 0u32..8) {
        let mut bytes = learn(small(), &history).encode();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(Learner::decode(small(), &bytes).is_err());
        let cut = Learner::decode(small(), &bytes[..at]);
        prop_assert!(matches!(cut, Err(StateError::Damaged | StateError::Foreign | StateError::Version(_))));
    }

    #[test]
    fn any_bytes_are_an_error_not_a_panic(bytes in vec(any::<u8>(), 0..400)) {
        prop_assert!(Learner::decode(small(), &bytes).is_err());
        let bytes = [b"sfslearn\x01\0".as_slice(), &bytes].concat();
        prop_assert!(Learner::decode(small(), &bytes).is_err());
        common::check_any(&bytes);
    }
}

#[test]
fn seeds_of_the_fuzz_target_are_read_or_refused() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/learned_state");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        common::check_any(&bytes);
        read += usize::from(Learner::decode(small(), &bytes).is_ok());
    }
    assert!(read >= 3, "only {read} seeds are learned state");
}

#[test]
fn a_hundred_thousand_functions_fit_into_64_mb() {
    // Each has its slot, its place in the map (including the empty part of a
    // B-tree) and possibly an entry among the changed ones.
    let slot = 232;
    let place = (8 + 4) * 2;
    let changed = 8 * 2;
    assert!(Learner::SLOT_BYTES <= slot);
    assert!((slot + place + changed) * 100_000 < 64_000_000);
}

#[test]
fn pending_work_is_bounded_without_refreshes() {
    // The pending work grows neither with time nor with functions.
    let mut learner = Learner::new(small());
    (0..100_000).for_each(|function| learner.on_completion(function, MS));
    assert!(learner.pending() <= 2 * 20 + 1, "{}", learner.pending());
    let changes = learner.refresh();
    // Two tables, the default table, and who has them.
    assert!(changes.len() <= 20 + 3, "{}", changes.len());
}

#[test]
fn without_history_attained_service_decides() {
    let mut learner = Learner::new(small());
    assert_eq!(learner.table(7), None);
    let changes = learner.refresh();
    let mut kernel = Kernel::default();
    kernel.apply(changes.clone());
    let unknown = learner.table(7).unwrap();
    assert_eq!(kernel.table(7), Some(unknown));
    assert_eq!(changes.len(), 2, "a table, and who has it");
    // From 16 to 30 ms is one level, from 32 ms on there are worse ones.
    let rank = |ms: u64| unknown.rank(ms * MS);
    assert!(rank(1) < rank(10) && rank(10) < rank(40));
    assert_eq!(rank(16), rank(28));
    assert_eq!(learner.refresh(), []);
}

#[test]
fn the_first_completion_tells_functions_apart() {
    let mut learner = Learner::new(small());
    learner.refresh();
    learner.on_completion(1, 2 * MS);
    learner.on_completion(2, 900 * MS);
    learner.refresh();
    let rank = |function| learner.table(function).unwrap().rank(0);
    assert!(rank(1) < rank(2), "{} {}", rank(1), rank(2));
}

#[test]
fn a_change_of_a_function_takes_effect_soon() {
    let mut learner = Learner::new(small());
    for _ in 0..1000 {
        learner.on_completion(1, 500 * MS);
        learner.on_completion(2, 5 * MS);
    }
    (0..10).for_each(|_| learner.on_completion(1, 5 * MS));
    learner.refresh();
    let rank = |function| learner.table(function).unwrap().rank(0);
    // One and a half doublings, of almost seven between the two.
    assert!(rank(1).abs_diff(rank(2)) <= 6, "{} {}", rank(1), rank(2));
}

#[test]
fn killed_invocations_count_as_longer() {
    let mut learner = Learner::new(small());
    for _ in 0..50 {
        learner.on_completion(1, 5 * MS);
        learner.on_completion(2, 900 * MS);
        learner.on_kill(3, 50 * MS);
    }
    learner.refresh();
    let rank = |function| learner.table(function).unwrap().rank(0);
    assert!(rank(3) > rank(1) + 8, "{} {}", rank(3), rank(1));
}

#[test]
fn the_oldest_function_is_withdrawn() {
    let config = small();
    let mut learner = Learner::new(config);
    let mut kernel = Kernel::default();
    for function in 0..30 {
        learner.on_completion(function, 5 * MS);
        kernel.apply(learner.refresh());
    }
    assert!(!kernel.functions.contains_key(&0) && kernel.functions.contains_key(&29));
    assert_eq!(learner.functions().count(), 20);
}

#[test]
fn the_learned_state_can_be_read() {
    let mut learner = Learner::new(small());
    (0..20).for_each(|_| learner.on_completion(7, 100 * MS));
    let one = learner.functions().next().unwrap();
    assert_eq!((one.key(), one.completions()), (7, 20));
    assert_eq!(one.work_ns(), 2000 * MS);
    let p99 = one.quantile_ns(0.99).unwrap();
    assert!(p99 > 100 * MS && p99 <= 125 * MS);
    assert_eq!(one.rank(), None);
    learner.refresh();
    let rank = learner.functions().next().unwrap().rank().unwrap();
    assert!(usize::from(rank).abs_diff(bucket(100 * MS)) <= 2);
}

#[test]
fn uncounted_completions_keep_the_default_table() {
    let mut learner = Learner::new(LearnConfig::default());
    for _ in 0..200 {
        learner.on_completion(1, 500 * MS);
    }
    learner.refresh();
    let unknown = |learner: &Learner| learner.table(99).unwrap().rank(0);
    let before = unknown(&learner);
    for _ in 0..2000 {
        learner.on_uncounted_completion(2, MS);
    }
    learner.refresh();
    assert_eq!(unknown(&learner), before);
    assert!(learner.table(2).unwrap().rank(0) < before);
    for _ in 0..2000 {
        learner.on_completion(2, MS);
    }
    learner.refresh();
    assert!(unknown(&learner) < before);
}

/// Completions of a function that needs `service_ns`, and first sleeps after `burst_ns`.
fn sleeping(learner: &mut Learner, function: u64, service_ns: u64, burst_ns: u64) {
    for _ in 0..20 {
        learner.on_end(End {
            function,
            service_ns,
            burst_ns,
            killed: false,
            counted: true,
        });
    }
}

#[test]
fn functions_that_soon_sleep_have_the_rank_of_their_burst_until_then() {
    let mut learner = Learner::new(LearnConfig::default());
    sleeping(&mut learner, 1, 60 * MS, MS);
    sleeping(&mut learner, 2, 20 * MS, 0);
    // A server sleeps before its next request: nothing is left to do then.
    sleeping(&mut learner, 3, 20 * MS, 20 * MS);
    sleeping(&mut learner, 4, 20 * MS, 18 * MS);
    learner.refresh();
    let table = |function| learner.table(function).unwrap();
    let first = |function| learner.functions().find(|one| one.key() == function);
    assert!(
        usize::from(table(1).burst) > bucket(MS) && usize::from(table(1).burst) < bucket(3 * MS)
    );
    assert!(table(1).burst < table(2).rank(0) && table(2).rank(0) < table(1).rank(2 * MS));
    assert_eq!(first(1).unwrap().rank(), Some(table(1).burst));
    for function in 2..=4 {
        assert_eq!(table(function).burst, 0, "{function}");
    }
}

#[test]
fn a_stranger_sleeps_as_most_functions_do() {
    let mut learner = Learner::new(LearnConfig::default());
    (0..20).for_each(|function| sleeping(&mut learner, function, 60 * MS, MS));
    learner.refresh();
    assert!(learner.table(99).unwrap().burst > 0);
    (100..140).for_each(|function| sleeping(&mut learner, function, 60 * MS, 0));
    learner.refresh();
    assert_eq!(learner.table(99).unwrap().burst, 0);
}
