//! Tests of the trace: another library than the one that writes reads it back.

use std::collections::HashMap;

use quick_protobuf::BytesReader;

use super::*;
use crate::account::Source;
use crate::event::{Event, Left, Task, What, Work};
use crate::kind::{Place, Turn};
use crate::scheduler::Loaded;

/// A field of a message, as it is on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

type Message = HashMap<u32, Vec<Value>>;

/// Reads a message, of which nothing is known but that it is one.
fn message(bytes: &[u8]) -> Message {
    let mut reader = BytesReader::from_bytes(bytes);
    let mut fields = Message::new();
    while !reader.is_eof() {
        let tag = reader.next_tag(bytes).unwrap();
        let value = match tag & 7 {
            0 => Value::Number(reader.read_uint64(bytes).unwrap()),
            2 => Value::Bytes(reader.read_bytes(bytes).unwrap().to_vec()),
            other => panic!("wire type {other}"),
        };
        fields.entry(tag >> 3).or_default().push(value);
    }
    fields
}

fn number(message: &Message, field: u32) -> u64 {
    match message.get(&field).map(Vec::as_slice) {
        Some([Value::Number(number)]) => *number,
        other => panic!("field {field}: {other:?}"),
    }
}

fn bytes(message: &Message, field: u32) -> &[u8] {
    match message.get(&field).map(Vec::as_slice) {
        Some([Value::Bytes(bytes)]) => bytes,
        other => panic!("field {field}: {other:?}"),
    }
}

fn text(message: &Message, field: u32) -> String {
    String::from_utf8(bytes(message, field).to_vec()).unwrap()
}

/// Returns the packets of a trace.
fn packets(trace: &[u8]) -> Vec<Message> {
    let trace = message(trace);
    assert_eq!(trace.len(), 1, "a trace has packets only");
    trace[&1]
        .iter()
        .map(|packet| match packet {
            Value::Bytes(bytes) => message(bytes),
            Value::Number(_) => panic!("no packet"),
        })
        .collect()
}

/// Returns the slices of each track by its name, in order: name, start and end.
fn slices(trace: &[u8]) -> HashMap<String, Vec<(String, u64, u64)>> {
    let mut names: HashMap<u64, (String, u64)> = HashMap::new();
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    let mut slices: HashMap<String, Vec<(String, u64, u64)>> = HashMap::new();
    for packet in packets(trace) {
        if packet.contains_key(&60) {
            let track = message(bytes(&packet, 60));
            let parent = track.get(&5).map_or(0, |_| number(&track, 5));
            assert!(parent == 0 || names.contains_key(&parent), "no parent");
            names.insert(number(&track, 1), (text(&track, 2), parent));
            continue;
        }
        let event = message(bytes(&packet, 11));
        let (at, track) = (number(&packet, 8), number(&event, 11));
        let stack = open.entry(track).or_default();
        match number(&event, 9) {
            1 => {
                assert!(!text(&event, 22).is_empty());
                stack.push((text(&event, 23), at));
            }
            2 => {
                let (name, from) = stack.pop().expect("an end without a begin");
                assert!(from <= at);
                let name_of_track = names[&track].0.clone();
                slices
                    .entry(name_of_track)
                    .or_default()
                    .push((name, from, at));
            }
            other => panic!("type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "a slice does not end");
    slices
}

fn task(pid: i32, open: bool) -> Task {
    Task {
        pid,
        tgid: pid,
        comm: *b"resize\0\0\0\0\0\0\0\0\0\0",
        cgroup: 5,
        place: Place::of_queue(0x2_0000),
        turn: Turn::Fair,
        real_time: false,
        kernel: false,
        confined: false,
        last: !open,
        work: Some(Work {
            unit: pid as u64,
            seq: 3,
            open,
            arrived_at: 1000,
            function: 0,
            sandbox: 0,
        }),
    }
}

fn followed(lost: u64) -> Followed {
    Followed {
        loaded: Loaded::ScxSfs("sfs_".into()),
        from: 900,
        to: 2000,
        lost,
        replaced: false,
        missing: Vec::new(),
    }
}

/// Returns the trace of a process that waits for 50 ns, and runs for 150 ns on CPU 1.
fn trace(lost: u64) -> (Vec<u8>, Written) {
    let mut trace = Vec::new();
    let mut tracer = Tracer::new(&mut trace);
    let mut account = Account::new(Source::Scheduler, 2, 900, 100);
    let names = Names::default();
    tracer.begin(900).unwrap();
    let idle = Task {
        work: None,
        ..task(0, false)
    };
    let switch = |prev, left, next| What::Switch {
        cpu: 1,
        prev,
        left,
        next,
    };
    let new = What::Wake {
        task: task(10, true),
        new: true,
    };
    let events = [
        (1000, new),
        (
            1050,
            switch(idle, Left::Asleep { io: false }, task(10, true)),
        ),
        (1200, switch(task(10, false), Left::Dead, idle)),
    ];
    for (at_ns, what) in events {
        account.add(&Event { at_ns, what });
        for output in account.take() {
            tracer.take(output, &account, &names).unwrap();
        }
    }
    let written = tracer.finish(&followed(lost)).unwrap();
    (trace, written)
}

#[test]
fn another_library_reads_the_tracks_and_slices() {
    let (trace, written) = trace(0);
    let expected = Written {
        invocations: 1,
        runs: 1,
    };
    assert_eq!(written, expected);
    let slices = slices(&trace);
    let on = |track: &str| slices[track].clone();
    assert_eq!(on("CPU 1"), [("resize".to_owned(), 1050, 1200)]);
    assert_eq!(
        on("process 10 #3"),
        [
            ("queued_fair".to_owned(), 1000, 1050),
            ("running_fair".to_owned(), 1050, 1200),
            ("resize".to_owned(), 1000, 1200),
        ]
    );
    assert_eq!(slices.len(), 2);
}

#[test]
fn a_reader_may_begin_with_the_first_packet() {
    let (trace, _) = trace(0);
    let packets = packets(&trace);
    for (place, packet) in packets.iter().enumerate() {
        assert_eq!(number(packet, 10), 1, "one sequence");
        assert_eq!(packet.contains_key(&13), place == 0);
    }
}

#[test]
fn details_have_names_and_values() {
    let (trace, _) = trace(0);
    let annotated = packets(&trace).into_iter().find_map(|packet| {
        let event = message(packet.get(&11).map(|_| bytes(&packet, 11))?);
        event.get(&4).cloned()
    });
    let details: Vec<Message> = annotated
        .unwrap()
        .iter()
        .map(|detail| match detail {
            Value::Bytes(bytes) => message(bytes),
            Value::Number(_) => panic!("no annotation"),
        })
        .collect();
    let names: Vec<String> = details.iter().map(|detail| text(detail, 10)).collect();
    assert_eq!(names, ["turn", "class", "thread", "invocation"]);
    assert_eq!(text(&details[0], 6), "FAIR");
    assert_eq!(number(&details[2], 4), 10);
}

#[test]
fn losses_are_in_the_trace() {
    let (trace, _) = trace(7);
    let last = packets(&trace).pop().unwrap();
    let event = message(bytes(&last, 11));
    assert_eq!(number(&event, 9), 3);
    assert_eq!(text(&event, 23), "7 scheduling events lost");
}
