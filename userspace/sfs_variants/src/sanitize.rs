//! Seeds with the kernel half under clang's sanitizers of addresses and of undefined behaviour.

use crate::model::Model;
use crate::runs::{self, Ending, Run, Setting};
use crate::{llvm, report};
use anyhow::{bail, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;

const FLAGS: [&str; 4] = [
    "-fsanitize=address,undefined",
    "-shared-libasan",
    "-O1",
    "-g1",
];

/// What a sanitizer has reported: where and what, and the runs in which it did.
pub type Reports = BTreeMap<String, Vec<Run>>;

/// Does the runs. The memory of the model's tasks, maps and contexts is watched as well: its
/// allocations go through the sanitizer's library, which is loaded before the program.
///
/// # Errors
/// If clang has no such library, or a run crashes without a report.
pub fn check(model: &Model, all: &[Run]) -> Result<Reports> {
    let library = llvm::runtime("asan", model.clang())?;
    let folder = model.scratch()?;
    model.compile_all(&FLAGS, folder.path())?;
    let mut folders = OsString::from(folder.path());
    folders.push(":");
    folders.push(library.parent().unwrap_or(&library));
    let setting = Setting {
        variables: vec![
            ("LD_PRELOAD", library.clone().into()),
            ("LD_LIBRARY_PATH", folders),
            // Rust's main thread keeps some memory until the end.
            ("ASAN_OPTIONS", "detect_leaks=0".into()),
            ("UBSAN_OPTIONS", "print_stacktrace=0".into()),
        ],
        ..Setting::default()
    };
    let mut reports = Reports::new();
    for &run in all {
        let done = runs::run(&model.program, folder.path(), run, &setting)?;
        let found = lines(&done.errors);
        if let (Ending::Crash(why), true) = (&done.ending, found.is_empty()) {
            bail!(
                "{run} crashed, and no sanitizer says why: {why}\n{}",
                done.errors
            );
        }
        for line in found {
            reports.entry(line).or_default().push(run);
        }
        report::progress(&format!("sanitizers: {run}"));
    }
    Ok(reports)
}

/// The reports in what a run has written: numbers that differ from run to run are left out.
fn lines(errors: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut of_addresses: Option<&str> = None;
    for line in errors.lines() {
        if line.contains(": runtime error: ") {
            found.push(without_addresses(line));
        } else if let Some((_, what)) = line.split_once("ERROR: AddressSanitizer: ") {
            of_addresses = what.split(' ').next();
        } else if let Some(what) = of_addresses.filter(|_| line.trim_start().starts_with("#0 ")) {
            let place = line.split_once(" in ").map_or(line, |(_, place)| place);
            found.push(format!("{place}: {what}"));
            of_addresses = None;
        }
    }
    found.extend(of_addresses.map(str::to_owned));
    found.sort();
    found.dedup();
    found
}

fn without_addresses(line: &str) -> String {
    let plain = |word: &str| match word.starts_with("0x") {
        true => "ADDRESS".to_owned(),
        false => word.to_owned(),
    };
    line.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_found() {
        let text = "a.h:3:5: runtime error: load of address 0x12 with\n0x12: note: x\n\
                    a.h:3:5: runtime error: load of address 0x99 with\n\
                    ==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6\n\
                    READ of size 8\n    #0 0x7f in f /a/b.h:7:9\n    #1 0x7f in g /a/b.h:8:9\n";
        assert_eq!(
            lines(text),
            [
                "a.h:3:5: runtime error: load of address ADDRESS with",
                "f /a/b.h:7:9: heap-buffer-overflow"
            ]
        );
        assert!(lines("thread 'main' panicked").is_empty());
    }
}
