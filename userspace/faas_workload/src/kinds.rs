//! The kinds of work and of blocking of each function.

use faas_data::kind::{Blocking, Work};
use faas_data::trace::{Invocation, Phase};
use std::collections::HashMap;

/// Gives all phases of a function the same kind: functions use the lists in
/// turn, in order of first appearance. If a list is empty, phases keep their
/// kind.
pub fn assign(invocations: &mut [Invocation], works: &[Work], blockings: &[Blocking]) {
    let mut turns: HashMap<String, usize> = HashMap::new();
    for one in invocations {
        let next = turns.len();
        let turn = match turns.get(&one.function) {
            Some(turn) => *turn,
            None => *turns.entry(one.function.clone()).or_insert(next),
        };
        for phase in &mut one.phases {
            match phase {
                Phase::Cpu { work, .. } => *work = pick(works, turn).or(*work),
                Phase::Io { blocking, .. } => *blocking = pick(blockings, turn).or(*blocking),
            }
        }
    }
}

fn pick<K: Copy>(kinds: &[K], turn: usize) -> Option<K> {
    kinds.get(turn % kinds.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_take_turns_and_keep_theirs() {
        let call = |function: &str| Invocation {
            phases: vec![Phase::io(1), Phase::cpu(2)],
            ..Invocation::cpu(0, function, 1)
        };
        let mut invocations = ["b", "a", "b", "c"].map(call);
        assign(&mut invocations, &[Work::Fib, Work::Json], &[]);
        let kinds = invocations.map(|one| one.phases[1].to_string());
        assert_eq!(kinds, ["cpu:2@fib", "cpu:2@json", "cpu:2@fib", "cpu:2@fib"]);
        let mut invocations = ["b", "a"].map(call);
        assign(&mut invocations, &[], &[Blocking::Pipe]);
        for one in invocations {
            assert_eq!(one.phases[0].to_string(), "io:1@pipe");
            assert_eq!(one.phases[1].to_string(), "cpu:2");
        }
    }
}
