//! A process as the BPF program reports it.

use faas_data::input::is_name;
use faas_data::trace::Phase;
use zerocopy::FromBytes;

use crate::bpf_intf::sfs_advise_process;

/// A process that began during the recording. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// When it was forked.
    pub forked_at: u64,
    /// When its last thread ended; `None`: it has not.
    pub ended_at: Option<u64>,
    /// CPU time and time blocked, in turns, ns.
    pub phases: Vec<(u64, u64)>,
    /// Stays of its threads on a CPU.
    pub turns: u64,
    /// The largest number of threads that it had at a time.
    pub threads: u32,
    /// It has forked processes.
    pub is_parent: bool,
    /// A signal ended it.
    pub is_killed: bool,
    /// Ids of its control groups, from below the root on.
    pub groups: Vec<u64>,
    /// The function by the names of the program and its parent's.
    pub function: String,
}

impl Process {
    /// Reads a process from the bytes of the BPF program; `None` if there are too few.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (of, _) = sfs_advise_process::read_from_prefix(bytes).ok()?;
        let phases = of.phases.iter().map(|one| (one.cpu_ns, one.blocked_ns));
        Some(Self {
            forked_at: of.forked_at,
            ended_at: (of.ended_at != 0).then_some(of.ended_at),
            phases: phases.filter(|phase| *phase != (0, 0)).collect(),
            turns: of.turns,
            threads: of.most_threads,
            is_parent: of.children > 0,
            is_killed: of.exit_code & 0x7f != 0,
            groups: of.groups.iter().copied().filter(|id| *id != 0).collect(),
            function: function(&of.comm, &of.parent),
        })
    }

    /// Returns its CPU time, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.phases.iter().map(|(cpu, _)| cpu).sum()
    }

    /// Returns its phases as those of a trace, of which each takes 1 us or more; at least one.
    pub fn trace_phases(&self) -> Vec<Phase> {
        let both = |&(cpu_ns, blocked_ns): &(u64, u64)| {
            [Phase::cpu(cpu_ns / 1_000), Phase::io(blocked_ns / 1_000)]
        };
        let mut phases: Vec<Phase> = Vec::with_capacity(2 * self.phases.len());
        for phase in self.phases.iter().flat_map(both).filter(|one| one.us() > 0) {
            match (phases.last_mut(), phase) {
                (Some(Phase::Cpu { us, .. }), Phase::Cpu { us: more, .. }) => *us += more,
                (Some(Phase::Io { us, .. }), Phase::Io { us: more, .. }) => *us += more,
                _ => phases.push(phase),
            }
        }
        if phases.is_empty() {
            phases.push(Phase::cpu(1));
        }
        phases
    }
}

/// Returns the name of a function, which a trace can have: the program's, behind its parent's if
/// they differ.
fn function(comm: &[u8], parent: &[u8]) -> String {
    let (comm, parent) = (name(comm), name(parent));
    match comm == parent {
        true => comm,
        false => format!("{parent}/{comm}"),
    }
}

/// Returns the name in a field of the kernel's. Characters that a trace cannot have become `_`.
fn name(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0);
    let text = String::from_utf8_lossy(&field[..end.unwrap_or(field.len())]);
    valid(&text)
}

/// Returns a text as the name of a function, which a trace can have.
pub fn valid(text: &str) -> String {
    let mut buffer = [0; 4];
    let mut fits = |c: char| is_name(c.encode_utf8(&mut buffer));
    let name: String = text
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    let end = name.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = end.take_while(|end| *end <= 100).last().unwrap_or(0);
    match &name[..end] {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromZeros, IntoBytes};

    fn raw() -> sfs_advise_process {
        let mut of = sfs_advise_process::new_zeroed();
        of.forked_at = 5_000;
        of.ended_at = 90_000;
        of.phases[0].cpu_ns = 7_400;
        of.phases[0].blocked_ns = 30_900;
        of.phases[1].cpu_ns = 999;
        of.phases[2].cpu_ns = 2_000;
        of.groups[0] = 12;
        of.exit_code = 9;
        of.comm[..5].copy_from_slice(b"a b,\xff");
        of.parent[..4].copy_from_slice(b"bash");
        of
    }

    #[test]
    fn bytes_become_a_process_or_nothing() {
        let of = raw();
        let bytes = of.as_bytes();
        let process = Process::read(bytes).unwrap();
        assert_eq!(process.phases, [(7_400, 30_900), (999, 0), (2_000, 0)]);
        assert_eq!((process.cpu_ns(), process.ended_at), (10_399, Some(90_000)));
        assert!(process.is_killed);
        assert_eq!(process.groups, [12]);
        assert_eq!(process.function, "bash/a_b_\u{fffd}");
        for end in [0, 1, bytes.len() - 1] {
            assert_eq!(Process::read(&bytes[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn phases_of_a_trace_take_time_and_alternate() {
        let mut process = Process::read(raw().as_bytes()).unwrap();
        let want = [Phase::cpu(7), Phase::io(30), Phase::cpu(2)];
        assert_eq!(process.trace_phases(), want);
        process.phases.clear();
        assert_eq!(process.trace_phases(), [Phase::cpu(1)]);
        process.phases = vec![(1_000, 500), (1_000, 0)];
        assert_eq!(process.trace_phases(), [Phase::cpu(2)]);
    }

    #[test]
    fn names_fit_a_trace() {
        for text in ["", "a,\"b\"\n", &"\u{1f600}".repeat(200), "x y"] {
            assert!(is_name(&valid(text)), "{text:?}");
        }
        assert_eq!(function(b"same\0\0", b"same\0x"), "same");
    }
}
