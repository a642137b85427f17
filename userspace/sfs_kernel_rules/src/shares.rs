//! The share of a tenant: a bucket of CPU time, which what is due fills, and what is used empties.

use crate::lengths::{bucket, longest_debt};
use crate::look::Look;
use crate::policy::{since, MS, WEIGHT};

/// What a tenant may save up for each task, ns.
const SAVED: i64 = 25 * MS;
/// The most that is due at once, ns of the clock of sharing.
const MOST_DUE: i64 = 8_000 * MS;

/// CPU time due to `weight` out of `total`, in thousandths of a CPU.
fn due_cpus(l: &Look, weight: i64, total: i64) -> i64 {
    match total {
        0 => 0,
        total => 1_000 * l.cpus * weight / total,
    }
}

/// Tokens come or go, within the bucket and the limit of debt.
fn change(l: &mut Look, amount: i64, due: i64) {
    let (least, most) = (-longest_debt(due), bucket(l, due));
    let tokens = l.s_tokens + amount;
    l.s_tokens = if tokens > most {
        most
    } else if tokens < least {
        least
    } else {
        tokens
    };
}

/// The tenant gets what has been due since the last time. What it cannot use goes to the others.
pub fn fill(l: &mut Look, weight: i64, runnable: i64) {
    let passed = since(l.shares_clock, l.s_clock);
    if passed == 0 {
        return;
    }
    let waited = since(l.now, l.s_filled_at);
    (l.s_clock, l.s_filled_at) = (l.shares_clock, l.now);
    let mut due =
        ((passed.min(MOST_DUE) as u64).wrapping_mul(weight as u64) / WEIGHT as u64) as i64;
    let mut total = l.shares_weight.max(0);
    if runnable > 0 {
        let usable =
            (l.s_usable.saturating_add(runnable.saturating_mul(waited))).min(runnable * SAVED);
        if due > usable {
            let others = l.shares_weight - weight;
            if others > 0 {
                let ahead = (due - usable) * WEIGHT / others;
                l.s_clock += ahead;
                l.shares_clock += ahead;
            }
            due = usable;
        }
        l.s_usable = usable - due;
    } else {
        due = ((due as u64).wrapping_mul((total >> 10) as u64)
            / ((((total + weight) >> 10) + 1) as u64)) as i64;
        total += weight;
    }
    let cpus = due_cpus(l, weight, total);
    change(l, due, cpus);
}

/// A task of the tenant has used CPU time; `early`: in FILTER or by rank. Its weight is `weight` now.
pub fn charge(l: &mut Look, delta: i64, early: bool, weight: i64) {
    l.s_used += delta;
    if early {
        l.s_filter += delta;
        if l.s_tokens < 0 {
            l.s_line = l.s_line.wrapping_add(delta * WEIGHT / weight);
        }
    }
    if l.s_weight != 0 {
        l.shares_weight += weight - l.s_weight;
        l.s_weight = weight;
    }
    let total = l.shares_weight;
    if total > 0 {
        l.shares_clock += delta * WEIGHT / total;
    }
    let cpus = due_cpus(l, weight, if total > 0 { total } else { weight });
    // A 64th is free.
    change(l, -(delta - (delta >> 6)), cpus);
    let debt_at = l.debt_at;
    fill(l, weight, l.s_runnable);
    if l.s_tokens < 0 && since(l.now, debt_at) > 25 * MS {
        l.debt_at = l.now;
    }
}
