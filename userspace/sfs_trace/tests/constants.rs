//! Numbers that the kernel half and this crate both have are the same.

use std::fs;
use std::path::Path;

use sfs_trace::kind::{Place, Queue, Turn, CPU_SHIFT, PARKED, SHARED_SHIFT};
use sfs_trace::roster::{BY_PROGRAM, NAMED};

fn header(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scheds/sfs_bpf");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the value of a macro: the first number in its text, with its shift.
fn value(header: &str, name: &str) -> u64 {
    let line = header
        .lines()
        .find(|line| {
            let rest = line.strip_prefix("#define ");
            rest.and_then(|rest| rest.strip_prefix(name))
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
        .unwrap_or_else(|| panic!("no {name}"));
    let text = line.split_once(name).unwrap().1;
    let text = text.split_once(") (").map_or(text, |(_, body)| body);
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let mut numbers = words.filter_map(|word| {
        let word = word.trim_end_matches("ULL");
        match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        }
    });
    let first = numbers.next().unwrap_or_else(|| panic!("{line}"));
    if text.contains("<<") {
        first << numbers.next().unwrap()
    } else {
        first
    }
}

#[test]
fn dispatch_queues_are_those_of_the_kernel_half() {
    let (state, rank, quota) = (
        header("state.bpf.h"),
        header("rank.bpf.h"),
        header("quota.bpf.h"),
    );
    let queues = [
        (&state, "DSQ_FILTER", Queue::Filter),
        (&state, "DSQ_FAIR", Queue::Fair),
        (&rank, "DSQ_RANKED", Queue::Ranked),
        (&state, "DSQ_SYSTEM", Queue::System),
        (&state, "DSQ_PROMPT", Queue::Prompt),
        (&state, "DSQ_OUTSIDE", Queue::Outside),
        (&state, "DSQ_FILTER_CPU", Queue::Filter),
        (&state, "DSQ_FAIR_CPU", Queue::Fair),
        (&rank, "DSQ_RANKED_CPU", Queue::Ranked),
        (&state, "DSQ_OUTSIDE_CPU", Queue::Outside),
    ];
    for (header, name, queue) in queues {
        let place = Place::of_queue(value(header, name));
        assert_eq!(place, Some(Place::Queue(queue)), "{name}");
    }
    assert_eq!(value(&quota, "DSQ_PARKED"), PARKED);
    assert_eq!(value(&state, "SHARED_SHIFT"), u64::from(SHARED_SHIFT));
    assert_eq!(value(&state, "DSQ_FAIR_CPU") >> CPU_SHIFT, 2);
}

#[test]
fn turns_are_those_of_the_kernel_half() {
    let state = header("state.bpf.h");
    let body = state.split("enum turn {").nth(1).unwrap();
    let body = body.split('}').next().unwrap();
    let names: Vec<&str> = body
        .lines()
        .filter_map(|line| line.trim().strip_prefix("TURN_")?.split(',').next())
        .collect();
    let turns: Vec<String> = (0..names.len())
        .map(|number| Turn::of_number(number as u16).name().to_uppercase())
        .collect();
    assert_eq!(names, turns);
    assert_eq!(Turn::of_number(names.len() as u16), Turn::Other);
}

#[test]
fn units_and_identities_are_those_of_the_kernel_half() {
    let intf = header("intf.h");
    for line in ["SFS_UNIT_CGROUP = 1,", "SFS_UNIT_THREAD = 2,"] {
        assert!(intf.contains(line), "{line}");
    }
    assert_eq!(value(&intf, "SFS_FUNCTION_COMM"), BY_PROGRAM);
    assert_eq!(value(&intf, "SFS_FUNCTION_NAMED"), NAMED);
}
