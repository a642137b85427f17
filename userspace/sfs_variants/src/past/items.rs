//! What a review has found in the kernel half of commit 989571b (docs/reliability.md, "Review of the
//! kernel half"), and how a finding of a run is told to be one of these defects.

use crate::runs::Done;

/// How a defect shows.
#[derive(Debug, Clone, Copy)]
pub enum Shows {
    /// By a finding; in words, and as a rule.
    By(&'static str, fn(&str) -> bool),
    /// The same, but only where callbacks do not interleave.
    Alone(&'static str, fn(&str) -> bool),
    /// The same, if another run of the seed has no such finding.
    Unless(Other, &'static str, fn(&str) -> bool),
    /// Never in the model, and why.
    Never(&'static str),
}

/// Another run of the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// The two clocks go alike.
    AlikeClocks,
    /// The kernel half counts weights in smaller units.
    FineWeights,
}

/// A defect.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// What is wrong.
    pub defect: &'static str,
    /// How it shows.
    pub shows: Shows,
}

/// The defects, in the order of the review.
pub const ITEMS: [Item; 27] = [
    Item {
        defect: "two clocks are compared",
        shows: Shows::Unless(
            Other::AlikeClocks,
            "a check of quotas fails, and not with `--only without=drift`",
            is_about_quota,
        ),
    },
    Item {
        defect: "an idle CPU beside a lone task that yields",
        shows: Shows::By(
            "a task that yields waits in the local queue of an idle CPU",
            is_lone_yielder,
        ),
    },
    Item {
        defect: "an idle CPU beside a task, while FAIR has work that is confined to others",
        shows: Shows::By(
            "another task waits in the local queue of an idle CPU",
            is_left_undecided,
        ),
    },
    Item {
        defect: "FAIR's virtual time is clamped only in the queue",
        shows: Shows::By(
            "a task goes to a CPU at once, in FAIR, more than a turn behind virtual time",
            is_behind,
        ),
    },
    Item {
        defect: "weights truncate",
        shows: Shows::Unless(
            Other::FineWeights,
            "hogs in groups do not get their part by weight, but do with weights in units of a \
             thousandth",
            |text| text.contains("of the CPU time, and"),
        ),
    },
    Item {
        defect: "the guard against the watchdog fails for the least weights",
        shows: Shows::By("a task waits for more than 11 s", |text| {
            text.contains(" has waited for ") && text.ends_with(" ms")
        }),
    },
    Item {
        defect: "group weights leak",
        shows: Shows::Alone(
            "sums of a group are not those of a recount, without interleaving",
            |text| text.starts_with("group ") && text.contains("counts Sums"),
        ),
    },
    Item {
        defect: "daemons starve",
        shows: Shows::By(
            "one waits for 60 ms while outside work gets less than an eighth of the machine",
            |text| text.contains(", outside of functions ("),
        ),
    },
    Item {
        defect: "kernel threads that want more than 4 ms starve",
        shows: Shows::By(
            "as for daemons; or one waits for longer than a tick and outside work before it",
            |text| text.contains(", a kernel thread ("),
        ),
    },
    Item {
        defect: "a quota holds back a task inside the kernel",
        shows: Shows::By(
            "a task waits for quota in a section without migration",
            |text| text.contains("waits for quota inside the kernel"),
        ),
    },
    Item {
        defect: "tasks that wait for quota stay counted",
        shows: Shows::By("one of them counts as demand", |text| {
            text.contains("waits for quota, and counts as demand")
        }),
    },
    Item {
        defect: "a task without migration in the queue of another CPU",
        shows: Shows::Never("the model gives a task in such a section only masks with its CPU"),
    },
    Item {
        defect: "the timer of quotas",
        shows: Shows::By("a timer fires more than 20 times in 10 ms", |text| {
            text.starts_with("a timer has fired")
        }),
    },
    Item {
        defect: "a key of the ranked queue is compared with FAIR's virtual time",
        shows: Shows::By(
            "as with virtual time above, by more than a key may be ahead (2^49 ns)",
            |text| behind_us(text).is_some_and(|us| us > KEY_US),
        ),
    },
    Item {
        defect: "kicks are lost, since insertion comes behind `enqueue()`",
        shows: Shows::By(
            "a CPU idles for longer than a tick while a task that it may run waits in a queue",
            |text| text.contains(" has idled for ") && text.contains(" waits in Queue("),
        ),
    },
    Item {
        defect: "a queued task whose attributes change goes to the front",
        shows: Shows::By(
            "a change of its weight puts a waiting task into a local queue",
            |text| text.contains("a change of its weight puts it"),
        ),
    },
    Item {
        defect: "`begin_invocation()` stores while another thread charges",
        shows: Shows::Never("tolerated: either value is right, so no check can tell"),
    },
    Item {
        defect: "`update_sandbox()` runs without a lock",
        shows: Shows::Never("no check compares sandboxes: the rules are those of today"),
    },
    Item {
        defect: "who exits as SCHED_FIFO never leaves its invocation",
        shows: Shows::Never("the model's real-time tasks neither end nor change their class"),
    },
    Item {
        defect: "a task displaced by a real-time task waits beside idle CPUs",
        shows: Shows::By(
            "a CPU idles while a task waits in the local queue of a CPU that a real-time task has",
            |text| {
                text.ends_with(", which a real-time task has") && text.contains(" has idled for ")
            },
        ),
    },
    Item {
        defect: "isolated CPUs are woken for a quota",
        shows: Shows::Never("no check says which CPUs may be woken"),
    },
    Item {
        defect: "a confined FILTER task that waits cuts FAIR's turns everywhere",
        shows: Shows::Never("left as it is: it costs a call, and calls take no time in the model"),
    },
    Item {
        defect: "tasks of cpusets count as restricted",
        shows: Shows::Never(
            "no check says in which shard a task is to wait: the rules are those of today",
        ),
    },
    Item {
        defect: "shared words, locks and caches on large machines",
        shows: Shows::Never("costs of hardware, which the model does not have"),
    },
    Item {
        defect: "rates of general workloads (`stress-ng`)",
        shows: Shows::Never("callbacks and switches take no time in the model"),
    },
    Item {
        defect: "a quota does not reach nine groups down (`repro/nested.sh`)",
        shows: Shows::By(
            "a task runs with another group's quota than its own",
            |text| text.contains(" runs with the quota of group "),
        ),
    },
    Item {
        defect: "tenants that cheat (`repro/cheats.sh`)",
        shows: Shows::Never("the model's tasks do not play against each other"),
    },
];

/// No key is further ahead: half of PREEMPTS (rank.bpf.h), us.
const KEY_US: u64 = (1 << 49) / 1_000;

/// The items that a run shows. `other` does another run of the seed; it is asked for only if that
/// matters.
///
/// # Errors
/// If `other` fails.
pub fn shown<E>(
    done: &Done,
    mut other: impl FnMut(Other) -> Result<Done, E>,
) -> Result<Vec<usize>, E> {
    let has = |done: &Done, rule: fn(&str) -> bool| done.findings.iter().any(|(_, f)| rule(f));
    let mut found = Vec::new();
    for (number, item) in ITEMS.iter().enumerate() {
        let is_shown = match item.shows {
            Shows::By(_, rule) => has(done, rule),
            Shows::Alone(_, rule) => !done.has_races && has(done, rule),
            Shows::Unless(run, _, rule) => has(done, rule) && !has(&other(run)?, rule),
            Shows::Never(_) => false,
        };
        if is_shown {
            found.push(number);
        }
    }
    Ok(found)
}

/// Returns true if a finding belongs to an item, as far as its text tells.
#[must_use]
pub fn is_explained(finding: &str) -> bool {
    ITEMS.iter().any(|item| match item.shows {
        Shows::By(_, rule) | Shows::Alone(_, rule) => rule(finding),
        Shows::Unless(..) | Shows::Never(_) => false,
    })
}

fn is_about_quota(text: &str) -> bool {
    [
        " wait for quota in group ",
        " of its quota as used",
        " us of a quota of ",
    ]
    .iter()
    .any(|part| text.contains(part))
}

/// An idle CPU, and what waits there: the behaviour, if it is in the CPU's own local queue.
fn waits_at_idle(text: &str) -> Option<&str> {
    let (cpu, rest) = text.strip_prefix("CPU ")?.split_once(" has idled for ")?;
    let (before, place) = rest.rsplit_once(") waits in Local of CPU ")?;
    (place == cpu).then_some(before.split_once('(')?.1)
}

fn is_lone_yielder(text: &str) -> bool {
    waits_at_idle(text).is_some_and(|behaviour| behaviour.starts_with("Yielder"))
}

fn is_left_undecided(text: &str) -> bool {
    waits_at_idle(text).is_some_and(|behaviour| !behaviour.starts_with("Yielder"))
}

/// How far a task is behind virtual time, us.
fn behind_us(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once(" begins a turn in FAIR ")?;
    rest.split(' ').next()?.parse().ok()
}

fn is_behind(text: &str) -> bool {
    behind_us(text).is_some_and(|us| us <= KEY_US)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Ending;

    fn done(findings: &[&str], has_races: bool) -> Done {
        Done {
            ending: Ending::Clean,
            findings: findings
                .iter()
                .map(|&text| (1.0, text.to_owned()))
                .collect(),
            has_races,
            digest: String::new(),
            events: 0,
            errors: String::new(),
        }
    }

    fn defects(one: &Done, alike: &Done) -> Vec<&'static str> {
        let found: Result<_, ()> = shown(one, |_| Ok(alike.clone()));
        let found = found.expect("it cannot fail");
        found
            .into_iter()
            .map(|number| ITEMS[number].defect)
            .collect()
    }

    #[test]
    fn a_stall_of_a_quota_is_due_to_the_clocks_if_it_goes_with_their_difference() {
        let stall = "tasks wait for quota in group 3 (Online), which has had some for 9 us";
        let (one, none) = (done(&[stall], false), done(&[], false));
        assert_eq!(defects(&one, &none), ["two clocks are compared"]);
        assert!(defects(&one, &one).is_empty());
    }

    #[test]
    fn idle_cpus_are_told_apart_by_what_waits_where() {
        let text = |behaviour: &str, place: &str| {
            format!("CPU 3 has idled for 5000 us while task 7 ({behaviour}) waits in {place}")
        };
        let none = done(&[], false);
        let of = |behaviour, place| defects(&done(&[&text(behaviour, place)], false), &none);
        let yielder = of("Yielder(40)", "Local of CPU 3");
        assert_eq!(yielder, ["an idle CPU beside a lone task that yields"]);
        let other = of("Function { turns: 1, runs_us: 5 }", "Local of CPU 3");
        assert!(other[0].starts_with("an idle CPU beside a task, while FAIR"));
        assert!(of("Hog", "Local of CPU 31").is_empty());
        assert!(of("Hog", "Queue(20000)")[0].starts_with("kicks are lost"));
        let displaced = of("Hog", "Local of CPU 4, which a real-time task has");
        assert!(displaced[0].starts_with("a task displaced"));
    }

    #[test]
    fn sums_count_only_without_interleaving() {
        let text = "group 2 counts Sums { active: 1 }, and a recount gives Sums { active: 0 }";
        let none = done(&[], false);
        assert_eq!(
            defects(&done(&[text], false), &none),
            ["group weights leak"]
        );
        assert!(defects(&done(&[text], true), &none).is_empty());
        assert!(is_explained(text));
    }

    #[test]
    fn keys_are_told_from_virtual_time() {
        let text = |us: u64| format!("task 1 begins a turn in FAIR {us} us behind virtual time");
        assert!(is_behind(&text(50_000)) && !is_behind(&text(1 << 41)));
        assert_eq!(behind_us(&text(1 << 41)), Some(1 << 41));
        assert_eq!(behind_us("task 1 is in no queue"), None);
    }
}
