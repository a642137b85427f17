//! Lengths of the queues, as the kernel half counts them in its own words (`often` in
//! `state.bpf.h`). Those words are private to it, so their place is looked up in the types that
//! the kernel keeps of the loaded program.

use std::os::fd::AsFd;

use anyhow::{Context, Result};
use libbpf_rs::btf::types::{DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, HasSize, ReferencesType};
use libbpf_rs::{MapCore, MapFlags, ProgramMut};
use tracing::warn;

use super::KernelHalf;

/// The section with the words, and the variable that contains them.
const SECTION: &str = ".bss";
const VARIABLE: &str = "often";

/// Places of shared queues in `often.waiting`: their ids without the lower 16 bits.
const FILTER: usize = 1;
const FAIR: usize = 2;
const RANKED: usize = 3;
const OUTSIDE: usize = 6;

/// Numbers of tasks at one moment. Tasks that wait for one CPU only are in no shared queue, and
/// do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queues {
    /// Tasks that wait in FILTER, 0 where it is split into shards: they are not counted.
    pub filter: u64,
    /// Ranked tasks that wait.
    pub ranked: u64,
    /// Function tasks that wait in FAIR.
    pub fair: u64,
    /// Tasks outside of functions that wait.
    pub outside: u64,
    /// Runnable function tasks, waiting or running; 0 without `--policy learned`.
    pub runnable: u64,
}

/// Where the words are in the section, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    waiting: usize,
    present: usize,
}

impl KernelHalf<'_> {
    /// Returns the present lengths. They are 0 if the kernel half's words cannot be found or
    /// read, which is logged once.
    pub fn queues(&self) -> Queues {
        self.read_queues().unwrap_or_else(|error| {
            if !self.queues_failed.replace(true) {
                warn!("{error:#}; the lengths of the queues are shown as 0");
            }
            Queues::default()
        })
    }

    fn read_queues(&self) -> Result<Queues> {
        let places = self
            .places
            .get_or_init(|| find(&self.skel.progs.switch_mode));
        let places = places.context("cannot find the lengths of the kernel half's queues")?;
        let section = self
            .skel
            .maps
            .bss
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .context("cannot read the lengths of the kernel half's queues")?;
        let section = section.context("the kernel half has no variables")?;
        places
            .read(&section)
            .context("the kernel half's variables are cut short")
    }
}

/// Finds the words with the help of any program of the kernel half.
fn find(program: &ProgramMut<'_>) -> Option<Places> {
    let id = libbpf_rs::Program::id_from_fd(program.as_fd()).ok()?;
    let btf = Btf::from_prog_id(id).ok()?;
    let section: DataSec<'_> = btf.type_by_name(SECTION)?;
    let (start, words) = section.iter().find_map(|one| {
        let variable: Var<'_> = btf.type_by_id(one.ty)?;
        let is_it = variable.name().is_some_and(|name| name == VARIABLE);
        let words: Struct<'_> = btf.type_by_id(variable.referenced_type_id())?;
        is_it.then_some((one.offset as usize, words))
    })?;
    let place = |name: &str| {
        let member = words
            .iter()
            .find(|one| one.name.is_some_and(|it| it == name))?;
        let bits = match member.attr {
            MemberAttr::Normal { offset } => offset as usize,
            MemberAttr::BitField { .. } => return None,
        };
        (bits / 8 < words.size()).then_some(start + bits / 8)
    };
    Some(Places {
        waiting: place("waiting")?,
        present: place("present")?,
    })
}

impl Places {
    fn read(self, section: &[u8]) -> Option<Queues> {
        // The sums are exact, but a reader may see a decrement before its increment.
        let word = |place: usize| -> Option<u64> {
            let bytes = section.get(place..place + size_of::<i64>())?;
            let value = i64::from_ne_bytes(bytes.try_into().ok()?);
            Some(value.max(0).unsigned_abs())
        };
        let waiting = |queue: usize| word(self.waiting + queue * size_of::<i64>());
        Some(Queues {
            filter: waiting(FILTER)?,
            ranked: waiting(RANKED)?,
            fair: waiting(FAIR)?,
            outside: waiting(OUTSIDE)?,
            runnable: word(self.present)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = include_str!("../../../../scheds/sfs_bpf/state.bpf.h");
    const RANK: &str = include_str!("../../../../scheds/sfs_bpf/rank.bpf.h");

    #[test]
    fn the_numbers_of_the_queues_are_those_of_the_kernel_half() {
        for (name, queue) in [
            ("DSQ_FILTER", FILTER),
            ("DSQ_FAIR", FAIR),
            ("DSQ_RANKED", RANKED),
            ("DSQ_OUTSIDE", OUTSIDE),
        ] {
            let lines = STATE.lines().chain(RANK.lines());
            let value = lines
                .filter_map(|line| line.strip_prefix(&format!("#define {name} ")))
                .map(|rest| rest.split_whitespace().next().unwrap())
                .next()
                .unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(value, format!("0x{queue}0000ULL"), "{name}");
        }
        assert!(STATE.contains("#define SHARED_SHIFT 16\n"));
        assert!(STATE.contains("volatile s64 waiting[NR_SHARED]"));
        assert!(STATE.contains("volatile s64 present "));
    }

    #[test]
    fn words_are_read_at_their_places() {
        let mut section = vec![0; 80];
        let places = Places {
            waiting: 8,
            present: 72,
        };
        let mut put = |place: usize, value: i64| {
            section[place..place + 8].copy_from_slice(&value.to_ne_bytes());
        };
        for (queue, value) in [(FILTER, 3), (FAIR, -1), (RANKED, 5), (OUTSIDE, 7)] {
            put(8 + queue * 8, value);
        }
        put(72, 11);
        let expected = Queues {
            filter: 3,
            ranked: 5,
            fair: 0,
            outside: 7,
            runnable: 11,
        };
        assert_eq!(places.read(&section), Some(expected));
        assert_eq!(places.read(&section[..79]), None);
        assert_eq!(places.read(&[]), None);
    }
}
