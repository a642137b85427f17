//! docs/runbook.md has a line for each message, each statistic and each exit
//! status in the sources.

use std::fs;
use std::path::{Path, PathBuf};

use sfs_log::CRATES;
use sfs_statistics::Metrics;

/// Macros whose text goes to the log, or to standard error at the end.
const MACROS: [&str; 5] = ["warn!(", "error!(", "info!(", "bail!(", "anyhow!("];

/// Sources whose text goes to clients only.
const CLIENTS: [&str; 3] = [
    "hint_command.rs",
    "config/commands.rs",
    "sfs_statistics/src/requests.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn runbook() -> String {
    fs::read_to_string(root().join("docs/runbook.md")).unwrap()
}

/// All sources of the loader, without tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if !CLIENTS.iter().any(|name| path.ends_with(name)) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            found.push((path, code.to_owned()));
        }
    }
}

/// Returns the string literal at the start of `code`, after blanks, as it is
/// printed, with `…` for each placeholder.
fn literal(code: &str) -> Option<String> {
    let mut rest = code.trim_start().strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                '\n' => rest = rest.as_str().trim_start().chars(),
                other => text.push(other),
            },
            '{' => {
                rest.by_ref().find(|end| *end == '}')?;
                text.push('…');
            }
            other => text.push(other),
        }
    }
}

/// Returns the arguments of a macro from the message on.
fn without_fields(mut code: &str) -> &str {
    loop {
        code = code.trim_start();
        let name = code.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
        let is_field = name.len() < code.len() && name.starts_with([',', ' ']);
        match name.split_once(',') {
            Some((value, rest)) if is_field && !value.contains(['(', ';']) => code = rest,
            _ => return code,
        }
    }
}

fn messages() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for name in CRATES {
        sources(&root().join("userspace").join(name).join("src"), &mut found);
    }
    let mut messages = Vec::new();
    for (path, code) in found {
        for name in MACROS {
            for (at, _) in code.match_indices(name) {
                let text = literal(without_fields(&code[at + name.len()..]));
                messages.extend(text.map(|text| (path.clone(), text)));
            }
        }
    }
    messages
}

#[test]
fn literals_are_read_as_they_are_printed() {
    let code = "\n  \"a \\\"b\\\" {c:#} \\\n     d\", e)";
    assert_eq!(literal(code).unwrap(), "a \"b\" … d");
    assert_eq!(literal("{error}"), None);
    let with_fields = without_fields("\n mode = \"a\", delay_ms,\n \"b\", c)");
    assert_eq!(literal(with_fields).unwrap(), "b");
}

#[test]
fn each_message_has_a_line() {
    let (runbook, messages) = (runbook(), messages());
    assert!(messages.len() > 40, "only {} were found", messages.len());
    let mut missing = Vec::new();
    for (path, text) in messages {
        // A text made by another function is a literal there, or none.
        if text == "…" {
            continue;
        }
        let line = format!("`{text}`");
        if !runbook.contains(&line) {
            missing.push(format!("{}: {line}", path.display()));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn each_statistic_has_a_line() {
    let metrics = serde_json::to_value(Metrics::default()).unwrap();
    let fields = metrics.as_object().unwrap().keys();
    let runbook = runbook();
    let figures = runbook.split("## Statistics").nth(1).unwrap();
    let mut count = 0;
    for field in fields {
        let is_there = figures.lines().any(|line| {
            let cell = line
                .strip_prefix("| ")
                .and_then(|line| line.split(" | ").next());
            cell.is_some_and(|cell| cell.contains(&format!("`{field}`")))
        });
        assert!(is_there, "{field}");
        count += 1;
    }
    assert!(count > 50, "only {count} were found");
}

#[test]
fn each_exit_status_has_a_line_and_the_unit_agrees() {
    let exit = root().join("userspace/sfs_bpf/src/exit.rs");
    let exit = fs::read_to_string(exit).unwrap();
    let unit = fs::read_to_string(root().join("packaging/scx_sfs.service.in")).unwrap();
    let prevented: Vec<&str> = unit
        .lines()
        .find_map(|line| line.strip_prefix("RestartPreventExitStatus="))
        .unwrap()
        .split(' ')
        .collect();
    let runbook = runbook();
    let table = runbook.split("## Exit statuses").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let enumerated = exit.split("pub enum Status {").nth(1).unwrap();
    let enumerated = enumerated.split("\n}").next().unwrap();
    let numbers: Vec<&str> = enumerated
        .lines()
        .filter_map(|line| Some(line.trim().split_once(" = ")?.1.trim_end_matches(',')))
        .chain(["2"])
        .collect();
    assert!(numbers.len() >= 9, "{numbers:?}");
    for number in numbers {
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("| {number} | ")))
            .unwrap_or_else(|| panic!("no line for {number}"));
        let restarted = row.split(" | ").nth(2).unwrap().starts_with("yes");
        let expected = number != "0" && !prevented.contains(&number);
        assert_eq!(restarted, expected, "{row}");
    }
}

/// `CRATES` must contain each crate with messages; others would be silent, and
/// not compared.
#[test]
fn each_crate_with_messages_is_compared() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let own = |line: &str| -> Option<String> {
        let name = line.strip_suffix(".workspace = true")?;
        name.starts_with("sfs_").then(|| name.to_owned())
    };
    let mut with_messages: Vec<String> = manifest
        .lines()
        .filter_map(own)
        .filter(|name| {
            let path = root().join("userspace").join(name).join("Cargo.toml");
            fs::read_to_string(path)
                .unwrap()
                .contains("tracing.workspace")
        })
        .chain(["scx_sfs".to_owned()])
        .collect();
    with_messages.sort();
    assert_eq!(with_messages, CRATES);
}
