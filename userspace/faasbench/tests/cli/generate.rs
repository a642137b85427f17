//! `faasbench gen`.

use crate::place::{Place, TINY};

#[test]
fn a_generated_trace_is_the_same_each_time() {
    let place = Place::new();
    let options = "--invocations 50 --load 0.9 --scale 0.5 --seed 7 --cpus 3";
    place.succeed(&format!("gen table1 {options} -o a.csv"));
    let printed = place.succeed(&format!("gen table1 {options}"));
    assert_eq!(place.read("a.csv"), printed);
    assert_eq!(printed.lines().count(), 51);
}

/// Azure's file of invocations: one function with 9000, 199 with fewer than 200.
fn azure() -> String {
    let row = |k: usize| match k {
        0 => "o,a,f0,http,4500,4500\n".to_string(),
        k => format!("o,a{k},f{k},http,{},0\n", 200 - k),
    };
    let header = "HashOwner,HashApp,HashFunction,Trigger,1,2\n".to_string();
    header + &(0..200).map(row).collect::<String>()
}

#[test]
fn every_workload_can_be_generated_with_every_option() {
    let place = Place::new();
    place.write("durations.txt", "250\n1.5ms\n2s\n");
    place.write("gaps.csv", TINY);
    place.write("azure.csv", &azure());
    let workloads = [
        "table1",
        "table1-artefact",
        "lognormal --mu -1 --sigma 2 --min-us 1000 --max-us 60000000",
        "exponential --mean-ms 20",
        "uniform --range-ms 5..50",
        "bimodal --short-ms 10 --long-ms 400 --long-share 0.2 --spread 0",
        "empirical --durations durations.txt",
    ];
    let options = [
        "",
        "--arrivals uniform --io-share 0.75 --io-ms 1..5 --io-at several",
        "--arrivals bursty --burst-factor 5 --burst-gaps 3 --quiet-gaps 9 --spikes 2 --spike-invocations 9",
        "--arrivals replay:gaps.csv --class-split-us 20000",
        "--arrivals azure:azure.csv",
        "--functions 9 --popularity zipf:1.1 --within-cv 0.3 --io-share 1 --io-at middle",
        "--popularity skewed --class-split-us 50000",
        "--work fib,json,stream --io-kind pipe --io-share 0.5",
    ];
    for workload in workloads {
        for option in options {
            let common = "--invocations 60 --cpus 3 --load 0.7 --scale 0.1 --seed 5";
            let text = place.succeed(&format!("gen {workload} {common} {option}"));
            let made = faas_data::trace::parse("t", text.as_bytes()).unwrap();
            let load = faas_data::trace::offered_load(&made, 3).unwrap();
            assert_eq!(made.len(), 60);
            assert!((load - 0.7).abs() < 1e-3, "{workload} {option}: {load}");
        }
    }
}

#[test]
fn the_commands_in_the_documentation_work() {
    let place = Place::new();
    place.write("durations.txt", "3ms\n250us\n2s\n");
    place.write("invocations.csv", &azure());
    let text = include_str!("../../../../docs/workloads.md");
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("faasbench "))
        .filter(|command| command.starts_with("gen "))
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        place.succeed(command);
    }
}

#[test]
fn applications_bring_their_classes_along() {
    let place = Place::new();
    let gen = "gen classes --cpus 2 --invocations 200";
    let made = place.succeed(gen);
    let made = faas_data::trace::parse("t", made.as_bytes()).unwrap();
    assert!(made.iter().all(|one| one.class.is_some()));
    place.write(
        "own.csv",
        "application,class,service_ms,cv,rate\na,LD,7,0,1\n",
    );
    let own = place.succeed(&format!("{gen} --file own.csv --scale 2"));
    assert!(
        own.lines()
            .skip(1)
            .all(|line| line.ends_with(",a,cpu:14000,LD")),
        "{own}"
    );
    place.write(
        "bad.csv",
        "application,class,service_ms,cv,rate\na,XX,7,0,1\n",
    );
    let said = place.fail(&format!("{gen} --file bad.csv"));
    assert!(
        said.contains("bad.csv:2: class `XX`: want LS or LD"),
        "{said}"
    );
    let said = place.fail(&format!("{gen} --class-split-us 5"));
    assert!(said.contains("takes no --class-split-us"), "{said}");
    let said = place.fail(&format!("{gen} --functions 5"));
    assert!(said.contains("takes no --functions"), "{said}");
}

#[test]
fn the_workloads_of_the_papers_are_as_in_the_texts() {
    let place = Place::new();
    place.write("azure.csv", &azure());
    let make = |text: &str| {
        let made = place.succeed(&format!("gen {text} --invocations 400 --cpus 16"));
        faas_data::trace::parse("t", made.as_bytes()).unwrap()
    };
    let load = |made: &[_]| faas_data::trace::offered_load(made, 16).unwrap();
    // FaaSched: 9.0 of 16 CPUs; W1: 0.9 of 36.
    assert!((load(&make("classes --load own")) - 0.562).abs() < 0.001);
    let w1 = make("w1 --load own");
    assert!((load(&w1) - 0.9 * 36.0 / 16.0).abs() < 0.002);
    assert!(w1.iter().all(|one| one.phases.len() == 2));
    let ol = make("openlambda --load 0.8");
    for kind in ["fib", "md", "sa"] {
        let own = |one: &&faas_data::trace::Invocation| one.function.starts_with(kind);
        let found = ol.iter().find(own).unwrap();
        assert!(found.phases[0].to_string().ends_with(&format!("@{kind}")));
    }
    let mixes = [
        ("ms-trace --azure azure.csv", true),
        ("ms-representative", true),
        ("single-function", false),
        ("multiple-functions-balanced", true),
        ("homogeneous-execution-times --azure azure.csv", true),
    ];
    for (mix, several) in mixes {
        let made = make(&format!("hermes --mix {mix} --load 0.8"));
        assert_eq!(
            made.iter().any(|one| one.function != "f01"),
            several,
            "{mix}"
        );
        assert!((load(&made) - 0.8).abs() < 1e-3, "{mix}");
    }
}

#[test]
fn what_a_paper_s_workload_has_of_its_own_is_not_an_option() {
    let place = Place::new();
    let common = "--invocations 9 --cpus 1";
    let cases = [
        ("table1 --load own", "has no rate of its own"),
        ("openlambda --work fib", "takes no --work"),
        ("openlambda --functions 3", "takes no --functions"),
        ("w2 --io-share 0.5", "takes no --io-share"),
        ("w3 --popularity skewed", "takes no --functions"),
        ("hermes --mix ms-trace", "name it with --azure"),
        (
            "hermes --mix ms-trace --azure x --arrivals uniform",
            "takes no --arrivals",
        ),
        ("hermes --mix single-function --azure x", "takes no --azure"),
        (
            "hermes --mix ms-trace --azure none.csv",
            "cannot read none.csv",
        ),
        ("table1 --arrivals azure:none.csv", "cannot read none.csv"),
    ];
    for (options, want) in cases {
        let said = place.fail(&format!("gen {options} {common}"));
        assert!(said.contains(want), "{options}: {said}");
    }
}

#[test]
fn a_million_invocations_are_no_trouble() {
    let place = Place::new();
    place.succeed("gen exponential --invocations 1000000 --cpus 72 --functions 1000 --popularity zipf:1 --io-share 0.5 -o t.csv");
    assert_eq!(place.read("t.csv").lines().count(), 1_000_001);
}
