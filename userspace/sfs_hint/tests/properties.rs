//! Properties of every datagram and every hint.

mod common;

use common::{check_any, comes_back, whole_us};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sfs_hint::binary::{MAGIC, VERSION};
use sfs_hint::{decode, encode, Datagram, Form, Hint, Place, Problem};
use sfs_hint::{MAX_DATAGRAM_BYTES, MAX_FUNCTION_BYTES, MAX_HINTS};

fn any_name() -> impl Strategy<Value = String> {
    "[^\\p{Cc}\"]{1,16}".prop_filter("too long", |name| name.len() <= MAX_FUNCTION_BYTES)
}

fn any_hint() -> impl Strategy<Value = Hint> {
    (
        1..=i32::MAX,
        option::of(1..=u64::MAX),
        option::of(any_name()),
        option::of(1..=u64::MAX),
        option::of(1..=u64::MAX),
    )
        .prop_map(
            |(pid, arrived_at_ns, function, service_ns, started_ticks)| Hint {
                pid,
                arrived_at_ns,
                function,
                service_ns,
                started_ticks,
            },
        )
}

/// Almost valid text, which gets deeper into the parser than noise does.
fn nearly_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("pid=12".to_owned()),
        "(pid|arrival_us|service_us|function|start|pdi)?=?[0-9]{0,21}",
        "function=\"?[a-z ]{0,70}\"?",
        "[ -~]{0,6}",
    ];
    let line = vec(word, 0..5).prop_map(|words| words.join(" "));
    vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

fn nearly_binary() -> impl Strategy<Value = Vec<u8>> {
    (0_u16..200, vec(any::<u8>(), 0..400)).prop_map(|(records, rest)| {
        let mut bytes = vec![MAGIC, VERSION];
        bytes.extend(records.to_le_bytes());
        bytes.extend(rest);
        bytes
    })
}

proptest! {
    #[test]
    fn hints_survive_a_round_trip(hints in vec(any_hint(), 1..8)) {
        comes_back(&hints, Form::Binary);
        let rounded: Vec<Hint> = hints.iter().map(whole_us).collect();
        comes_back(&rounded, Form::Text);
    }

    #[test]
    fn noise_is_handled(bytes in vec(any::<u8>(), 0..3000)) {
        check_any(&bytes);
    }

    #[test]
    fn almost_valid_text_is_handled(text in nearly_text()) {
        check_any(text.as_bytes());
    }

    #[test]
    fn almost_valid_binary_is_handled(bytes in nearly_binary()) {
        check_any(&bytes);
    }

    #[test]
    fn a_datagram_takes_as_many_as_fit(hints in vec(any_hint(), 1..200), binary: bool) {
        let form = if binary { Form::Binary } else { Form::Text };
        let mut datagram = Datagram::new(form);
        let taken = hints.iter().take_while(|hint| datagram.push(hint).unwrap()).count();
        prop_assert_eq!(taken, datagram.len());
        prop_assert!((1..=MAX_HINTS).contains(&taken));
        prop_assert!(datagram.bytes().len() <= MAX_DATAGRAM_BYTES);
        prop_assert_eq!(decode(datagram.bytes()).unwrap().len(), taken);
    }

    #[test]
    fn a_damaged_datagram_is_handled(
        hints in vec(any_hint(), 1..8),
        binary: bool,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: prop::sample::Index,
    ) {
        let form = if binary { Form::Binary } else { Form::Text };
        let mut datagram = Datagram::new(form);
        for hint in &hints {
            datagram.push(hint).unwrap();
        }
        let mut bytes = datagram.bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_any(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        check_any(&bytes);
    }
}

/// The seeds of the fuzz target, and its findings.
#[test]
fn the_corpus_is_handled() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/decode");
    let mut valid = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        check_any(&bytes);
        valid += usize::from(decode(&bytes).is_ok());
    }
    assert!(valid >= 4, "only {valid} seeds are valid hints");
}

#[test]
fn a_known_datagram_in_binary_form() {
    let hint = Hint {
        arrived_at_ns: Some(0x0102_0304_0506_0708),
        function: Some("resize".to_owned()),
        ..Hint::of(1234)
    };
    let mut bytes = vec![0xF5, 1, 2, 0];
    bytes.extend([0b101, 0xD2, 0x04, 0, 0]);
    bytes.extend([8, 7, 6, 5, 4, 3, 2, 1]);
    bytes.extend(b"\x06resize");
    bytes.extend([0, 1, 0, 0, 0]);
    let hints = [hint, Hint::of(1)];
    assert_eq!(encode(&hints, Form::Binary).unwrap(), bytes);
    assert_eq!(decode(&bytes).unwrap(), hints);
}

/// The place of the optional start time: after the other numbers, before the
/// name.
#[test]
fn a_start_time_in_binary_form() {
    let hint = Hint {
        service_ns: Some(9),
        function: Some("f".to_owned()),
        started_ticks: Some(0x0102),
        ..Hint::of(7)
    };
    let mut bytes = vec![0xF5, 1, 1, 0];
    bytes.extend([0b1110, 7, 0, 0, 0]);
    bytes.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([2, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(b"\x01f");
    assert_eq!(
        encode(std::slice::from_ref(&hint), Form::Binary).unwrap(),
        bytes
    );
    assert_eq!(decode(&bytes).unwrap(), [hint]);
}

#[test]
fn errors_name_their_place() {
    let problem = |bytes: &[u8]| {
        let error = decode(bytes).unwrap_err();
        (error.place, error.problem)
    };
    let whole = Place::Datagram;
    assert_eq!(problem(b""), (whole, Problem::Empty));
    assert_eq!(problem(b"\n \n"), (whole, Problem::Empty));
    assert_eq!(problem(&[b'1'; 2049]), (whole, Problem::TooLong));
    assert_eq!(problem(b"1\n\nx=1\n"), {
        (Place::Line(3), Problem::UnknownKey("x".to_owned()))
    });
    assert_eq!(problem(b"1\n\xff\n"), (Place::Line(2), Problem::NotUtf8));
    assert_eq!(problem(&b"1\n".repeat(129)), {
        (Place::Line(129), Problem::TooMany)
    });
    assert_eq!(problem(&[MAGIC]), (whole, Problem::Short));
    assert_eq!(problem(&[MAGIC, 2, 0, 0]), (whole, Problem::Version(2)));
    assert_eq!(problem(&[MAGIC, 1, 0, 0]), (whole, Problem::Empty));
    assert_eq!(problem(&[MAGIC, 1, 0, 0, 9]), (whole, Problem::Trailing(1)));
    assert_eq!(problem(&[MAGIC, 1, 129, 0]), (whole, Problem::TooMany));
    let one = [MAGIC, 1, 1, 0];
    let record = |rest: &[u8]| problem(&[&one, rest].concat());
    assert_eq!(record(&[]), (Place::Record(1), Problem::Short));
    assert_eq!(
        record(&[16, 1, 0, 0, 0]),
        (Place::Record(1), Problem::Fields(16))
    );
    assert_eq!(record(&[0, 0, 0, 0, 0]), (Place::Record(1), Problem::Pid));
    assert_eq!(record(&[0, 0, 0, 0, 128]), (Place::Record(1), Problem::Pid));
    assert_eq!(record(&[0, 1, 0, 0, 0, 7]), (whole, Problem::Trailing(1)));
    assert_eq!(
        record(b"\x04\x01\0\0\0\x02\xff\xff"),
        (Place::Record(1), Problem::NotUtf8)
    );
}

#[test]
fn an_invalid_line_does_not_affect_others() {
    let items: Vec<_> = sfs_hint::hints(b"1\nx\n3").collect();
    assert_eq!(items.len(), 3);
    assert!(items[0].is_ok() && items[1].is_err() && items[2].is_ok());
}

/// The text examples of the documentation are valid hints.
#[test]
fn documented_examples_are_valid() {
    let docs = include_str!("../../../docs/hints.md");
    let (_, text) = docs.split_once("## Text").unwrap();
    let example = text.split("```\n").nth(1).unwrap();
    let hints = decode(example.as_bytes()).unwrap();
    assert_eq!(hints.len(), 4);
    assert_eq!(hints[0].service_ns, Some(12_000_000));
    assert_eq!(hints[1].function.as_deref(), Some("resize, then crop"));
    assert_eq!(hints[1].started_ticks, Some(530_081));
    assert_eq!(hints[3].arrived_at_ns, hints[0].arrived_at_ns);
}
