//! Which CPU gives a short turn its place: FAIR work goes first, then work whose end FILTER does not
//! wait for; a CPU that is preempted often only for kernel threads.

use crate::look::OfCpu;
use crate::policy::{is_function, is_system, MS};
use crate::watch::Call;
use sfs_kernel_model::state::{with, CpuId, TaskId};

/// The last task of its CPU is queued.
const LAST: u64 = 1 << 41;
/// Flags of kicks.
const IDLE: u64 = 1;
const PREEMPT: u64 = 2;
/// So many CPUs are looked at besides FAIR work and the task's own.
const LOOKED_AT: usize = 8;
/// So many preemptions may follow one another at once.
const BURST: i64 = 8;

/// Whom enqueue() is to tell.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Kick {
    #[default]
    Nobody,
    /// An idle CPU that may run the task, or none if there is none.
    Idle,
    /// An idle CPU, or one that runs FAIR work that may be preempted.
    IdleOrFair,
    /// The CPU that was claimed, unless it has a short turn: what it resumes then gives way.
    Claimed(CpuId, bool),
    /// A CPU for a short turn.
    Short,
    /// The only CPU, if it idles.
    IdlePinned,
    /// An idle CPU, or its own one if that may serve outside work.
    IdleOrOwn,
}

/// Checks whom enqueue() has told; `parked`: the task waits for quota.
pub fn check_all(call: &Call, kick: Kick, parked: bool, task: TaskId) {
    let mut kicks = call.kicks.as_slice();
    if call.was.number & LAST != 0 && !parked {
        if kicks.last() != Some(&(call.cpu, 0)) {
            return call.finding("its CPU, which is about to idle, is not told to look again");
        }
        kicks = &kicks[..kicks.len() - 1];
    }
    let has_idle = match call.answers.pinned {
        -1 => call.was.answers.elsewhere != 0,
        cpu => with(|s| {
            let c = &s.cpus[cpu as usize];
            c.current.is_none() && c.higher.runs.is_none()
        }),
    };
    let is_pinned = call.answers.pinned >= 0;
    let may = |cpu: CpuId| with(|s| s.may_run(task, cpu));
    match kick {
        Kick::Short => check(call, task, kicks),
        Kick::IdlePinned => {
            let only = call.answers.pinned as CpuId;
            if kicks != [(only, IDLE)] {
                call.finding(&format!(
                    "its only CPU is to look, and kicks are {kicks:x?}"
                ));
            }
        }
        // Its idle CPU may have been told already, or not yet.
        Kick::IdleOrOwn if is_pinned && has_idle => {}
        Kick::IdleOrOwn => check_own(call, kicks, has_idle),
        Kick::Nobody if kicks.is_empty() => {}
        Kick::Nobody => call.finding(&format!("CPUs are kicked for nothing: {kicks:?}")),
        Kick::Claimed(cpu, _) => {
            let expected: &[_] = match call.was.cpus[cpu].is_short {
                0 => &[(cpu, PREEMPT)],
                _ => &[],
            };
            if kicks != expected {
                call.finding(&format!("kicks are {kicks:x?}, and CPU {cpu} was claimed"));
            }
        }
        Kick::Idle | Kick::IdleOrFair => {
            let wants_fair = kick == Kick::IdleOrFair;
            let is_fair = |cpu: CpuId| call.was.cpus[cpu].is_fair != 0 && may(cpu);
            let has_fair = (0..call.was.cpus.len()).any(is_fair);
            // The idle CPU of a pinned task may have been told already.
            let must_wake = has_idle && !is_pinned;
            let must_preempt = wants_fair && has_fair && !has_idle;
            let fits = match kicks {
                [] => !must_wake && !must_preempt,
                &[(cpu, IDLE)] => has_idle && may(cpu),
                &[(cpu, PREEMPT)] => wants_fair && !must_wake && is_fair(cpu),
                _ => false,
            };
            if !fits {
                call.finding(&format!(
                    "kicks are {kicks:x?}; idle: {has_idle}, FAIR work that may be preempted: \
                     {has_fair}"
                ));
            }
        }
    }
}

/// Outside work that wakes up without a prompt turn preempts its own CPU, if that may serve such work.
fn check_own(call: &Call, kicks: &[(CpuId, u64)], has_idle: bool) {
    let was = &call.was.look;
    if has_idle {
        let fits = matches!(kicks, [] | [(_, IDLE)]);
        if !fits {
            call.finding(&format!(
                "an idle CPU is to be told, and kicks are {kicks:x?}"
            ));
        }
        return;
    }
    let mut l = *was;
    l.now = call.is.now;
    let preempts = !is_function(&l)
        && l.handed_over == 0
        && l.c_turn_due == 0
        && l.c_short == 0
        && crate::accounts::may_serve_outside(&mut l);
    let expected: &[(CpuId, u64)] = if preempts {
        &[(call.cpu, PREEMPT)]
    } else {
        &[]
    };
    if kicks != expected {
        call.finding(&format!(
            "outside work has told {kicks:x?}, and should have {expected:x?}"
        ));
    }
}

/// A short turn that waits where all CPUs look has told one of them.
fn check(call: &Call, task: TaskId, kicks: &[(CpuId, u64)]) {
    let l = &call.was.look;
    let may = |cpu: CpuId| with(|s| s.may_run(task, cpu));
    if call.was.answers.elsewhere != 0 {
        let fits = matches!(kicks, &[(cpu, IDLE)] if may(cpu));
        if !fits {
            call.finding(&format!(
                "an idle CPU is to be told, and kicks are {kicks:x?}"
            ));
        }
        return;
    }
    if is_prompt_and_handed_over(call) {
        if !kicks.is_empty() {
            call.finding("a CPU is kicked, though the waker hands over its own");
        }
        return;
    }
    let (own, spare, now) = (call.cpu, !is_system(l), call.is.now);
    let rests = |of: &OfCpu| !spare || of.preempted_until - now <= 0;
    let cpus: Vec<(CpuId, &OfCpu)> = call
        .was
        .cpus
        .iter()
        .enumerate()
        .filter(|(cpu, _)| may(*cpu))
        .collect();
    let fair: Vec<CpuId> = cpus
        .iter()
        .filter(|(_, of)| of.is_fair != 0 && rests(of))
        .map(|(cpu, _)| *cpu)
        .collect();
    let busy_fair = cpus
        .iter()
        .filter(|(_, of)| of.is_fair != 0 && !rests(of))
        .count();
    let claimable = |of: &OfCpu| of.is_short == 0 && of.is_taken == 0 && rests(of);
    let others: Vec<CpuId> = cpus
        .iter()
        .filter(|(_, of)| claimable(of) && of.is_due == 0)
        .map(|(cpu, _)| *cpu)
        .collect();
    let own_of = cpus.iter().find(|(cpu, _)| *cpu == own).map(|(_, of)| *of);
    let told = match kicks {
        [] => None,
        &[(cpu, PREEMPT)] => Some(cpu),
        _ => return call.finding(&format!("kicks of a short turn are {kicks:x?}")),
    };
    let fits = if fair.contains(&own) {
        told == Some(own)
    } else if !fair.is_empty() && busy_fair == 0 {
        told.is_some_and(|cpu| fair.contains(&cpu))
    } else if !fair.is_empty() {
        return; // a look at four CPUs may have met only those that are preempted often
    } else if others.contains(&own) {
        told == Some(own)
    } else if !others.is_empty() {
        told.is_some_and(|cpu| others.contains(&cpu)) || cpus.len() > LOOKED_AT
    } else if own_of.is_some_and(claimable) {
        told == Some(own)
    } else {
        told.is_none()
    };
    if !fits {
        return call.finding(&format!(
            "a short turn has told {told:?}; its own CPU is {own}, FAIR work is on {fair:?}, work \
             that may give way on {others:?}"
        ));
    }
    if let Some(cpu) = told.filter(|_| !is_system(l)) {
        count(call, cpu);
    }
}

fn is_prompt_and_handed_over(call: &Call) -> bool {
    call.is.turn == crate::policy::PROMPT && call.was.look.handed_over != 0
}

/// The preemption counts for the CPU: twice a ms on average, eight at once.
fn count(call: &Call, cpu: CpuId) {
    let of = call.was.cpus[cpu];
    let interval = if is_function(&call.was.look) {
        2 * MS
    } else {
        MS / 2
    };
    let earliest = call.is.now - BURST * interval;
    let from = of.preempted_until.max(earliest);
    let is = crate::look::look_at_cpus(cpu + 1)[cpu].preempted_until;
    call.equal("end of the allowance of preemptions", is, from + interval);
}
