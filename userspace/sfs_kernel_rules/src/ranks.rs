//! Ranks, deadlines and keys (docs/policy.md).

use crate::lengths::round_share;
use crate::look::Look;
use crate::overtaking;
use crate::policy::*;
use sfs_kernel_model::loader_ffi::maps;
use sfs_kernel_model::state::with;

/// Buckets of CPU time, four to a doubling from 64 us.
const BUCKETS: i64 = 90;
/// The weight of the cost in a deadline, in tenths.
const AGEING: i64 = 30;

/// Where a bucket begins, ns.
pub fn bucket_start(bucket: i64) -> i64 {
    match bucket {
        0 => 0,
        _ => (4 + (bucket - 1) % 4) << (14 + (bucket - 1) / 4),
    }
}

/// The last bucket that does not begin later.
pub fn bucket_of(ns: i64) -> i64 {
    let begins = |&bucket: &i64| bucket_start(bucket) <= ns;
    (0..BUCKETS).take_while(begins).last().unwrap_or(0)
}

/// CPU time that counts for the rank: on the way to the next invocation, that of the way.
pub fn attained(l: &Look) -> i64 {
    match (l.i_open != 0, l.i_state) {
        (true, GRACE) => 0,
        (true, _) => l.i_used,
        (false, _) => since(l.i_used, l.i_ended),
    }
}

/// The longest slice: a second, or less if many wait.
pub fn longest_slice(l: &Look) -> i64 {
    round_share(l, l.waits_ranked.max(0)).min(1_000 * MS)
}

/// How far ahead of the clock a key may be.
pub fn farthest_key(l: &Look) -> i64 {
    20_000 * MS * l.cpus / l.present.max(1)
}

/// A table of ranks: the rank of each bucket, the next bucket with a worse one, the burst.
struct Table {
    rank: [u8; BUCKETS as usize],
    worse: [u8; BUCKETS as usize],
    burst: u8,
}

fn table_of(l: &Look) -> Option<Table> {
    let (maps, function) = (maps(), l.i_function as u64);
    with(|s| {
        let functions = &s.maps[&(maps.function_tables as usize)];
        // SAFETY: the keys are those of the maps; values are a number, and a table.
        unsafe {
            let known = functions
                .lookup((&raw const function).cast(), 0)
                .cast::<u32>();
            let table = if known.is_null() {
                l.default_table as u32
            } else {
                *known
            };
            let place = s.maps[&(maps.rank_tables as usize)].lookup((&raw const table).cast(), 0);
            if place.is_null() {
                return None;
            }
            Some(Table {
                rank: *place.cast(),
                worse: *place.add(BUCKETS as usize).cast(),
                burst: *place.add(2 * BUCKETS as usize),
            })
        }
    })
}

/// The task wakes up. It pays for its unit's CPU time with a third of its sleep or, if that is
/// more, with what equal sharing would have given it.
pub fn pay_by_sleep(l: &mut Look) {
    if l.paid_seq != l.i_seq {
        (l.paid_seq, l.paid, l.mostly_sleeps) = (l.i_seq, 0, 0);
        return;
    }
    let shared = since(l.sharing_clock, l.asleep_clock);
    let paid = (since(l.now, l.asleep_at) / 3).max(shared);
    l.paid = (l.paid + paid).min(l.i_used);
    l.paid_clock = l.sharing_clock;
    l.mostly_sleeps = i64::from(l.paid >= PROMPT_BURST && l.i_used - l.paid <= PROMPT_BURST);
}

/// The rank of an invocation that has used so much CPU time, and the slice after which it worsens.
fn at(l: &Look, table: &Table, used: i64, most: i64) -> (i64, i64) {
    let bucket = bucket_of(used);
    let mut worse = i64::from(table.worse[bucket as usize]);
    let mut rank = i64::from(table.rank[bucket as usize]);
    let burst = i64::from(table.burst);
    if l.i_burst == 0 && bucket < burst && burst < rank {
        (rank, worse) = (burst, burst);
    }
    let slice = match worse < BUCKETS {
        true => (bucket_start(worse) - used).max(MS).min(most),
        false => most,
    };
    (rank, slice)
}

/// The same for a task that has slept for the rest. If it mostly sleeps, then it needs what is left
/// of what it usually takes, or else as much again.
fn at_unpaid(l: &Look, table: &Table, most: i64) -> (i64, i64) {
    if l.mostly_sleeps == 0 {
        return at(l, table, since(l.i_used, l.paid), most);
    }
    let left = match l.turn_used < l.usual {
        true => l.usual - l.turn_used,
        false => l.turn_used,
    };
    (bucket_of(left), left.max(MS).min(most))
}

/// The task's rank, and the slice after which it worsens. Returns the rank of all its CPU time.
pub fn look_up(l: &mut Look) -> i64 {
    let (used, most) = (attained(l), longest_slice(l));
    (l.rank, l.slice) = (bucket_of(used), most);
    if l.i_service != 0 {
        l.rank = bucket_of(since(l.i_service, used));
        return l.rank;
    }
    let Some(table) = table_of(l) else {
        return l.rank;
    };
    let whole = at(l, &table, used, most);
    let pays = l.paid != 0 && l.paid_seq == l.i_seq;
    let of_rest = pays.then(|| at_unpaid(l, &table, most));
    (l.rank, l.slice) = of_rest.filter(|rest| rest.0 < whole.0).unwrap_or(whole);
    whole.0
}

/// The same, and its deadline: its arrival, and three times the cost of its completion.
pub fn update(l: &mut Look) {
    let has_had_longest = l.ranked_used + MS >= longest_slice(l);
    let whole = look_up(l);
    l.slice_end = l.i_used + l.slice;
    let (clock, from) = (
        l.sharing_clock,
        if l.i_open != 0 {
            l.i_born
        } else {
            l.sharing_clock
        },
    );
    let cost = |rank| AGEING * bucket_start(rank) / 10;
    l.deadline = from.wrapping_add(cost(whole));
    let by_rest = l.paid_clock.wrapping_add(cost(l.rank));
    if l.rank < whole && before(by_rest, l.deadline) {
        l.deadline = by_rest;
    }
    if has_had_longest {
        l.ranked_used = 0;
        if before(l.deadline, clock) {
            l.deadline = clock;
        }
    }
    let farthest = clock.wrapping_add(farthest_key(l));
    l.queue_key = if before(farthest, l.deadline) {
        farthest
    } else {
        l.deadline
    };
    overtaking::goes_on(l);
}
