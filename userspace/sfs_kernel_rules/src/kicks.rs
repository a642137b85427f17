//! Which CPU gives a short turn its place: FAIR work goes first, then work whose end FILTER does not
//! wait for; a CPU that is preempted often only for kernel threads.

use crate::look::OfCpu;
use crate::policy::{is_function, is_system, MS};
use crate::watch::Call;
use sfs_kernel_model::state::{with, CpuId, TaskId};

/// Flags of kicks.
pub const IDLE: u64 = 1;
pub const PREEMPT: u64 = 2;
/// So many CPUs are looked at besides FAIR work and the task's own.
const LOOKED_AT: usize = 8;
/// So many preemptions may follow one another at once.
const BURST: i64 = 8;

/// A short turn that waits where all CPUs look has told one of them.
pub fn check(call: &Call, task: TaskId, kicks: &[(CpuId, u64)]) {
    let l = &call.was.look;
    let may = |cpu: CpuId| with(|s| s.may_run(task, cpu));
    if call.was.answers.elsewhere != 0 {
        let fits = matches!(kicks, &[(cpu, IDLE)] if may(cpu));
        if !fits {
            call.finding(&format!("an idle CPU is to be told, and kicks are {kicks:x?}"));
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
    let cpus: Vec<(CpuId, &OfCpu)> = call.was.cpus.iter().enumerate().filter(|(cpu, _)| may(*cpu)).collect();
    let fair: Vec<CpuId> = cpus.iter().filter(|(_, of)| of.is_fair != 0 && rests(of)).map(|(cpu, _)| *cpu).collect();
    let busy_fair = cpus.iter().filter(|(_, of)| of.is_fair != 0 && !rests(of)).count();
    let claimable = |of: &OfCpu| of.is_short == 0 && of.is_taken == 0 && rests(of);
    let others: Vec<CpuId> = cpus.iter().filter(|(_, of)| claimable(of) && of.is_due == 0).map(|(cpu, _)| *cpu).collect();
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
    let interval = if is_function(&call.was.look) { 2 * MS } else { MS / 2 };
    let earliest = call.is.now - BURST * interval;
    let from = of.preempted_until.max(earliest);
    let is = crate::look::look_at_cpus(cpu + 1)[cpu].preempted_until;
    call.equal("end of the allowance of preemptions", is, from + interval);
}
