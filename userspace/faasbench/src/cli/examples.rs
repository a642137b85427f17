//! What stands at the end of each help: examples, and exit statuses.

use clap::Command;

/// The end of the program's own help.
pub(super) const PROGRAM: &str = "\
Examples:
  faasbench gen table1 --invocations 400 --cpus 4 -o t.csv
  faasbench run --trace t.csv --scheduler eevdf --cpus 4 --out results
  faasbench run --trace t.csv --scheduler scx_sfs --cpus 4 --out results
  faasbench report results/*.json

Exit status: 0 done; 1 an error, which a sentence explains; 2 wrong options;
3 run and drive: see there.";

/// The examples of each command, by its words; without the program's name.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("gen", &["gen table1 --invocations 400 --cpus 4 -o t.csv"]),
    (
        "gen table1",
        &[
            "gen table1 --invocations 400 --cpus 4 --load 0.9 -o t.csv",
            "gen table1 --invocations 400 --cpus 4 --arrivals bursty -o t.csv",
        ],
    ),
    (
        "gen table1-artefact",
        &["gen table1-artefact --invocations 400 --cpus 4 --seed 5 -o t.csv"],
    ),
    (
        "gen lognormal",
        &["gen lognormal --invocations 400 --cpus 4 --max-us 60000000 -o t.csv"],
    ),
    (
        "gen exponential",
        &["gen exponential --invocations 400 --cpus 4 --mean-ms 50 -o t.csv"],
    ),
    (
        "gen uniform",
        &["gen uniform --invocations 400 --cpus 4 --range-ms 5..95 -o t.csv"],
    ),
    (
        "gen bimodal",
        &["gen bimodal --invocations 400 --cpus 4 --long-share 0.05 -o t.csv"],
    ),
    (
        "gen empirical",
        &["gen empirical --invocations 400 --cpus 4 --durations d.txt -o t.csv"],
    ),
    (
        "gen classes",
        &["gen classes --invocations 4000 --cpus 16 --load own -o t.csv"],
    ),
    (
        "gen openlambda",
        &["gen openlambda --invocations 400 --cpus 72 --load 0.8 -o t.csv"],
    ),
    (
        "gen hermes",
        &["gen hermes --mix ms-representative --invocations 400 --cpus 12 -o t.csv"],
    ),
    (
        "gen w1",
        &["gen w1 --invocations 1000 --cpus 36 --load own -o t.csv"],
    ),
    (
        "gen w2",
        &["gen w2 --invocations 1000 --cpus 36 --load own -o t.csv"],
    ),
    (
        "gen w3",
        &["gen w3 --invocations 1000 --cpus 36 --load own -o t.csv"],
    ),
    ("convert", &["convert sfs requests.txt -o t.csv"]),
    ("convert sfs", &["convert sfs requests.txt -o t.csv"]),
    (
        "convert azure",
        &["convert azure --invocations i.csv --durations d.csv --minutes 1..5 -o t.csv"],
    ),
    ("convert fc", &["convert fc list.txt -o t.csv"]),
    ("jitter", &["jitter t.csv --by 50us --seed 3 -o u.csv"]),
    (
        "run",
        &[
            "run --trace t.csv --scheduler eevdf --cpus 4 --out results",
            "run --trace t.csv --scheduler scx_sfs --cpus 4 --out results --json",
            "run --trace t.csv --scheduler eevdf --cpus 4 --out results --refill 20,50",
        ],
    ),
    (
        "drive",
        &[
            "drive --trace t.csv --scheduler eevdf --cpus 4 --out results \
           --target http://127.0.0.1:8080/{function}",
        ],
    ),
    (
        "summarize",
        &["summarize results/eevdf.csv --trace t.csv --cpus 4 -o eevdf.json"],
    ),
    (
        "report",
        &[
            "report results/eevdf.json results/scx_sfs.json",
            "report results/eevdf.json results/scx_sfs.json --json",
        ],
    ),
    (
        "calibrate",
        &["calibrate --repetitions 31", "calibrate --json"],
    ),
    ("seeds", &["seeds out/bench/series.json"]),
    (
        "trial",
        &[
            "trial --dry-run --minutes 30",
            "trial --minutes 120 --loads 0.7,0.9 --out trial.json",
        ],
    ),
    ("verify", &["verify trial.json"]),
];

/// Returns `command` with the examples at the end of the help of each of its commands.
pub(super) fn with_examples(command: Command) -> Command {
    let ours = EXAMPLES.iter();
    ours.fold(command, |command, (path, examples)| {
        let text = text(examples);
        match path.split_once(' ') {
            None => command.mut_subcommand(path, |one| one.after_help(text)),
            Some((group, name)) => command.mut_subcommand(group, |group| {
                group.mut_subcommand(name, |one| one.after_help(text))
            }),
        }
    })
}

fn text(examples: &[&str]) -> String {
    let title = if examples.len() == 1 {
        "Example"
    } else {
        "Examples"
    };
    let line = |example: &&str| match example.split_once(" --target") {
        // A long one goes on in a second line.
        Some((first, rest)) => format!("\n  faasbench {first} \\\n    --target{rest}"),
        None => format!("\n  faasbench {example}"),
    };
    format!("{title}:{}", examples.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    /// All commands below `command`, with their words.
    fn all(command: &Command, above: &str) -> Vec<(String, Command)> {
        let below = command.get_subcommands();
        let ours = below.filter(|one| one.get_name() != "help");
        ours.flat_map(|one| {
            let name = format!("{above} {}", one.get_name());
            let name = name.trim().to_owned();
            let mut found = all(one, &name);
            found.push((name, one.clone()));
            found
        })
        .collect()
    }

    /// Each help, short and long, has lines of 80 columns at most, and an example.
    #[test]
    fn each_help_fits_80_columns_and_has_an_example() {
        let mut command = Cli::command();
        command.build();
        let mut commands = all(&command, "");
        commands.push((String::new(), command));
        assert!(commands.len() > 20, "{}", commands.len());
        for (name, mut one) in commands {
            for help in [one.render_help(), one.render_long_help()] {
                let text = help.to_string();
                for line in text.lines() {
                    assert!(line.chars().count() <= 80, "{name}: {line}");
                }
                assert!(text.contains("\nExample"), "{name}: {text}");
            }
        }
    }

    #[test]
    fn the_examples_are_accepted() {
        let program = PROGRAM.lines();
        let of_program = program.filter_map(|line| line.trim().strip_prefix("faasbench "));
        let examples = EXAMPLES.iter().flat_map(|(_, examples)| examples.iter());
        let mut count = 0;
        for example in examples.copied().chain(of_program) {
            let words = ["faasbench"].into_iter().chain(example.split_whitespace());
            let parsed = Cli::command().try_get_matches_from(words);
            parsed.unwrap_or_else(|error| panic!("{example}: {error}"));
            count += 1;
        }
        assert!(count > EXAMPLES.len());
    }
}
