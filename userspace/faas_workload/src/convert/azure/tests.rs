use super::super::{shared, NOT_HERE};
use super::*;
use faas_data::trace::{self, hex_sha256, offered_load, to_csv};
use proptest::prelude::*;
use sfs_skip::skip;
use std::fs::File;

const DURATIONS: &str = "HashOwner,HashApp,HashFunction,Average,Count,Minimum,Maximum,\
percentile_Average_0,percentile_Average_1,percentile_Average_25,percentile_Average_50,\
percentile_Average_75,percentile_Average_99,percentile_Average_100\n";

/// Durations of a function of owner `o` and application `a`, all `ms`.
fn constant(function: &str, ms: u32) -> String {
    format!("o,a,{function},{ms},9,{ms},{ms},{ms},{ms},{ms},{ms},{ms},{ms},{ms}\n")
}

fn options() -> Options {
    Options {
        minutes: None,
        drop_top: 0,
        functions: None,
        pick: Pick::Popular,
        cap_top: None,
        between: Between::Linear,
        scale: 1.0,
        min_us: 1,
        seed: 1,
    }
}

fn run(counts: &str, durations: &str, options: &Options) -> Result<Converted, String> {
    let counts = format!("HashOwner,HashApp,HashFunction,Trigger,{counts}");
    let durations = format!("{DURATIONS}{durations}");
    convert(
        ("i.csv", counts.as_bytes()),
        ("d.csv", durations.as_bytes()),
        options,
    )
    .map_err(|error| format!("{error:#}"))
}

/// Total invocations of each function, by name.
fn totals(converted: &Converted) -> Vec<(String, usize)> {
    let mut totals = std::collections::BTreeMap::new();
    for one in &converted.invocations {
        *totals.entry(one.function.clone()).or_insert(0) += 1;
    }
    totals.into_iter().collect()
}

fn of(pairs: &[(&str, usize)]) -> Vec<(String, usize)> {
    let own = |(name, count): &(&str, usize)| (name.to_string(), *count);
    pairs.iter().map(own).collect()
}

#[test]
fn functions_are_joined_and_placed_within_their_minutes() {
    let durations = constant("f", 20) + &constant("g", 0);
    let converted = run(
        "7,8,9\no,a,f,http,2,0,1\no,a,g,timer,0,3,0\n",
        &durations,
        &options(),
    );
    let converted = converted.unwrap();
    assert_eq!(totals(&converted), of(&[("f", 3), ("g", 3)]));
    assert_eq!((converted.functions, converted.available), (2, 6));
    let minutes = |function: &str| -> Vec<u64> {
        let own = converted
            .invocations
            .iter()
            .filter(|one| one.function == function);
        own.map(|one| one.arrival_us / MINUTE_US).collect()
    };
    assert_eq!(minutes("f"), [0, 0, 2]);
    assert_eq!(minutes("g"), [1, 1, 1]);
    for one in &converted.invocations {
        let want = if one.function == "f" { 20_000 } else { 1 };
        assert_eq!(one.service_us(), want);
    }
    assert!(converted.invocations.is_sorted_by_key(|one| one.arrival_us));
}

#[test]
fn service_times_follow_the_percentiles() {
    // Percentiles 0 to 100: 0, 1, 25, 50, 75, 99 and 100 ms: uniform.
    let durations = "o,a,f,50,9,0,100,0,1,25,50,75,99,100\n";
    let scaled = Options {
        scale: 2.0,
        ..options()
    };
    let converted = run("1\no,a,f,http,100000\n", durations, &scaled).unwrap();
    let all: Vec<f64> = converted
        .invocations
        .iter()
        .map(|one| one.service_us() as f64)
        .collect();
    let mean = all.iter().sum::<f64>() / 1e5;
    let variance = all.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / 1e5;
    // Twice 50 ms, and twice 100 / sqrt(12) ms; three standard errors are 0.55 ms.
    assert!((mean - 100e3).abs() < 550.0, "{mean}");
    assert!(
        (variance.sqrt() / 57_735.0 - 1.0).abs() < 0.01,
        "{variance}"
    );
    let arrivals = converted
        .invocations
        .iter()
        .map(|one| one.arrival_us as f64);
    let mean = arrivals.sum::<f64>() / 1e5;
    // The middle of the minute; three standard errors are 0.164 s.
    assert!((mean - 30e6).abs() < 164e3, "{mean}");
}

#[test]
fn unusable_rows_are_counted_with_their_lines() {
    let durations = [
        constant("f", 5),
        "o,a,short,1,2\n".to_string(),
        constant("f", 7),
        constant("bad", 1).replace(",9,", ",nine,"),
        constant("worse", 1).replace("1,1\n", "x,1\n"),
        "o,a,down,1,9,1,9,1,2,3,2,4,5,6\n".to_string(),
        "\"o\",\"a\",\"quoted\",3,1,3,3,3,3,3,3,3,3,3\n".to_string(),
    ];
    let counts = "1,2\n\
        o,a,f,http,1,1\n\
        o,a,f,http,9,9\n\
        o,b,f,http,4,0\n\
        o,a,bad,http,1,x\n\
        o,a,bad,http\n\
        o,a,bad,http,0,0\n\
        \"o\",\"a\",quoted,\"a, \"\"b\"\"\",1,1\n\
        o,a,bad,http,0,1\n";
    let converted = run(counts, &durations.concat(), &options()).unwrap();
    assert_eq!(totals(&converted), of(&[("f", 2), ("quoted", 2)]));
    let reasons = |skipped: &Skipped| -> Vec<String> {
        let text = |(line, reason): &(usize, String)| format!("{line}: {reason}");
        skipped.iter().map(text).collect()
    };
    let want = [
        "3: want 14 fields, found 5",
        "4: this function's durations are in an earlier row",
        "6: `x` is not a number of milliseconds",
        "7: its percentiles decrease",
    ];
    assert_eq!(reasons(&converted.skipped_durations), want);
    let want = [
        "3: this function's invocations are in an earlier row",
        "4: this function has no durations",
        "5: the count of minute 2 `x` is not a whole number",
        "6: want 6 fields, found 4",
        "9: this function's invocations are in an earlier row",
    ];
    assert_eq!(reasons(&converted.skipped_invocations), want);
    assert_eq!((converted.without_durations, converted.idle), (4, 1));
}

#[test]
fn minutes_and_functions_are_selected() {
    let durations: String = ["a", "b", "c", "d"].map(|name| constant(name, 1)).concat();
    let counts = "1,2,3\no,a,a,http,50,1,0\no,a,b,http,0,2,2\no,a,c,http,0,3,3\no,a,d,http,1,4,4\n";
    let made = |options: Options| totals(&run(counts, &durations, &options).unwrap());
    let late = Options {
        minutes: Some((2, 3)),
        ..options()
    };
    assert_eq!(
        made(late.clone()),
        of(&[("a", 1), ("b", 4), ("c", 6), ("d", 8)])
    );
    let two = Options {
        functions: Some(2),
        ..late.clone()
    };
    assert_eq!(made(two.clone()), of(&[("c", 6), ("d", 8)]));
    let dropped = Options {
        drop_top: 1,
        ..two.clone()
    };
    assert_eq!(made(dropped), of(&[("b", 4), ("c", 6)]));
    let capped = Options {
        cap_top: Some(0.4),
        ..late.clone()
    };
    // c = 0.4 (c + 11): 7 of 18
    assert_eq!(made(capped), of(&[("a", 1), ("b", 4), ("c", 6), ("d", 7)]));
    let samples: std::collections::HashSet<_> = (0..50)
        .map(|seed| {
            let sample = Options {
                pick: Pick::Sample,
                seed,
                ..two.clone()
            };
            let names = made(sample).into_iter().map(|(name, _)| name);
            names.collect::<String>()
        })
        .collect();
    // All six pairs occur.
    assert_eq!(samples.len(), 6, "{samples:?}");
}

#[test]
fn the_selection_does_not_change_the_draws() {
    let durations = constant("f", 20) + "o,a,g,50,9,0,100,0,1,25,50,75,99,100\n";
    let counts = "1,2\no,a,f,http,90,90\no,a,g,http,30,30\n";
    let all = run(counts, &durations, &options()).unwrap();
    let alone = Options {
        drop_top: 1,
        ..options()
    };
    let alone = run(counts, &durations, &alone).unwrap();
    let mut rest = all.invocations;
    rest.retain(|one| one.function == "g");
    assert_eq!(alone.invocations, rest);
}

#[test]
fn files_that_are_not_the_trace_are_refused() {
    let good = constant("f", 1);
    let cases = [
        ("Trigger2\n", "i.csv:1: no columns of minutes"),
        ("1,1\n", "i.csv:1: two columns are for the same minute"),
        ("1\n", "i.csv: no function with durations is invoked"),
        ("1\no,a,g,http,7\n", "i.csv: no function with durations"),
        (
            "1\no,a,\"f,http,7\no,a,f,http,7\n",
            "i.csv:2: a quoted field continues past the end",
        ),
        (
            "1\no,a,f,http,1000001\n",
            "1000001 invocations are selected",
        ),
    ];
    for (counts, message) in cases {
        let said = run(counts, &good, &options()).unwrap_err();
        assert!(said.starts_with(message), "{said}");
    }
    let none = Options {
        minutes: Some((5, 9)),
        ..options()
    };
    let said = run("1\no,a,f,http,7\n", &good, &none).unwrap_err();
    assert_eq!(
        said,
        "i.csv:1: its minutes are 1 to 1, none of them is in 5..9"
    );
    let header = "HashOwner,HashApp,Trigger,1\n".as_bytes();
    let error = convert(("i.csv", header), ("d.csv", header), &options()).unwrap_err();
    assert_eq!(error.to_string(), "d.csv:1: no column HashFunction");
}

/// Golden: a change here changes published workloads.
#[test]
fn the_seed_determines_every_byte() {
    let durations = constant("f", 20) + "o,a,g,50,9,0,100,0,1,25,50,75,99,100\n";
    let hash = |between, seed| {
        let options = Options {
            between,
            seed,
            ..options()
        };
        let counts = "1,2\no,a,f,http,90,90\no,a,g,http,30,30\n";
        let converted = run(counts, &durations, &options).unwrap();
        hex_sha256(to_csv(&converted.invocations).as_bytes())[..16].to_string()
    };
    assert_ne!(hash(Between::Linear, 1), hash(Between::Linear, 2));
    let found = [hash(Between::Linear, 1), hash(Between::Log, 1)];
    assert_eq!(found, ["a15e45f7467d8808", "9e8313292661341d"]);
}

proptest! {
    /// Rows of valid and invalid pieces: nothing panics, and the result is a
    /// trace.
    #[test]
    fn any_files_give_a_trace_or_an_error(
        counts in prop::collection::vec(any_row(6), 0..9),
        durations in prop::collection::vec(any_row(14), 0..9),
        drop_top in 0..3usize,
        functions in prop::option::of(1..4usize),
        cap_top in prop::option::of(0.0001..1.0f64),
        log in any::<bool>(),
        scale in 0.001..1000.0f64,
        seed in any::<u64>(),
    ) {
        let options = Options {
            drop_top,
            functions,
            cap_top,
            between: if log { Between::Log } else { Between::Linear },
            scale,
            seed,
            pick: Pick::Sample,
            ..options()
        };
        let counts = format!("1,2\n{}o,a,f,http,3,4\n", counts.concat());
        let durations = format!("{}{}", constant("f", 5), durations.concat());
        if let Ok(converted) = run(&counts, &durations, &options) {
            let text = to_csv(&converted.invocations);
            prop_assert_eq!(trace::parse("made", text.as_bytes()).unwrap(), converted.invocations);
        }
    }
}

/// A row of about this number of fields.
fn any_row(fields: usize) -> impl Strategy<Value = String> {
    let field = prop_oneof![
        8 => prop::sample::select(vec!["o", "a", "f", "g", "1", "7", "30"]),
        1 => prop::sample::select(vec!["", "-1", "x", "99999999999", "\"q\"", "\"", "nan", "\u{e9}"]),
    ];
    let count = prop_oneof![9 => fields..=fields, 1 => 0..20usize];
    count.prop_flat_map(move |count| {
        prop::collection::vec(field.clone(), count).prop_map(|row| row.join(",") + "\n")
    })
}

/// The converted sample of this number of functions, if available.
fn sample(functions: usize, options: &Options) -> Option<Converted> {
    let open = |name| {
        let path = shared(&format!("traces/azure2019/{functions}/{name}.csv"))?;
        Some(File::open(path).unwrap())
    };
    let (counts, durations) = (open("invocations")?, open("durations")?);
    Some(convert(("i.csv", counts), ("d.csv", durations), options).unwrap())
}

#[test]
fn the_sample_of_100_is_all_used() {
    let Some(converted) = sample(100, &options()) else {
        skip!(NOT_HERE);
    };
    assert_eq!(converted.invocations.len(), 339_657);
    assert_eq!((converted.functions, converted.idle), (100, 0));
    assert_eq!(converted.skipped_durations, []);
    assert_eq!(converted.skipped_invocations, []);
    let log = Options {
        between: Between::Log,
        ..options()
    };
    let log = sample(100, &log).unwrap();
    // Means of the lines through the percentiles, weighted by invocations, in
    // milliseconds; three standard errors are about 1 %.
    for (converted, want) in [(converted, 1405.6), (log, 1156.9)] {
        let sum: u64 = converted
            .invocations
            .iter()
            .map(Invocation::service_us)
            .sum();
        let mean = sum as f64 / 339_657e3;
        assert!((mean / want - 1.0).abs() < 0.015, "{mean} for {want}");
    }
}

#[test]
fn the_sample_of_500_can_be_tamed() {
    let hour = Options {
        minutes: Some((480, 539)),
        drop_top: 1,
        cap_top: Some(0.1),
        ..options()
    };
    let Some(converted) = sample(500, &hour) else {
        skip!(NOT_HERE);
    };
    let count = converted.invocations.len();
    for (name, total) in totals(&converted) {
        assert!(total as f64 <= 0.1 * count as f64 + 1.0, "{name} {total}");
    }
    assert!(offered_load(&converted.invocations, 1).unwrap() > 0.0);
    let last = converted.invocations[count - 1].arrival_us;
    assert!(last < 60 * MINUTE_US);
}
