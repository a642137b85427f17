//! What seeds reach of the kernel half: lines, branches and functions of each file.

use crate::lcov::{self, Reached};
use crate::model::{Model, LIBRARY};
use crate::runs::{self, Run, Setting};
use crate::{llvm, report};
use anyhow::{bail, ensure, Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, str};
use tempfile::TempDir;

/// clang counts where a program goes.
const FLAGS: [&str; 4] = [
    "-fprofile-instr-generate",
    "-fcoverage-mapping",
    "-O1",
    "-g0",
];

/// LLVM's tools for coverage.
#[derive(Debug)]
pub struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    /// Those that belong to the compiler of the model.
    ///
    /// # Errors
    /// If one is missing; the sentence says what to install.
    pub fn find(clang: &str) -> Result<Self> {
        llvm::runtime("profile", clang)?;
        Ok(Self {
            profdata: llvm::tool("llvm-profdata", clang)?,
            cov: llvm::tool("llvm-cov", clang)?,
        })
    }
}

/// What runs have reached, by the file's name.
pub type Files = BTreeMap<String, Reached>;

/// Compiles the kernel half with counters. Returns the folder of the library, for one caller.
///
/// # Errors
/// If it does not compile.
pub fn compile(model: &Model) -> Result<TempDir> {
    let folder = model.scratch()?;
    model.compile_all(&FLAGS, folder.path())?;
    Ok(folder)
}

/// Does the runs with this library, and returns what they have reached of the kernel half's files:
/// without what only the rules ask it, or (`watched`) with that.
///
/// # Errors
/// If a run or a tool fails.
pub fn reached(
    model: &Model,
    tools: &Tools,
    folder: &Path,
    all: &[Run],
    watched: bool,
) -> Result<Files> {
    let raw = folder.join("raw");
    if raw.exists() {
        fs::remove_dir_all(&raw).context("cannot remove old counts")?;
    }
    let setting = Setting {
        // All processes add to the same file.
        variables: vec![("LLVM_PROFILE_FILE", raw.join("%m.profraw").into())],
        arguments: if watched {
            Vec::new()
        } else {
            vec!["--unwatched"]
        },
        ..Setting::default()
    };
    for &run in all {
        let done = runs::run(&model.program, folder, run, &setting)?;
        if let runs::Ending::Crash(why) = done.ending {
            bail!("{run} crashed: {why}");
        }
        report::progress(&format!("coverage: {run}"));
    }
    let text = export(tools, folder, &raw)?;
    let of_half = |(path, reached): (String, Reached)| {
        let path = Path::new(&path);
        let name = path.file_name()?.to_string_lossy().into_owned();
        (path.parent()? == model.half).then_some((name, reached))
    };
    let files: Files = lcov::parse(&text).into_iter().filter_map(of_half).collect();
    ensure!(
        !files.is_empty(),
        "llvm-cov names no file of {}",
        model.half.display()
    );
    Ok(files)
}

fn export(tools: &Tools, folder: &Path, raw: &Path) -> Result<String> {
    let merged = folder.join("merged.profdata");
    let mut merge = Command::new(&tools.profdata);
    merge.arg("merge").arg("-o").arg(&merged).arg(raw);
    output_of(&mut merge)?;
    let mut export = Command::new(&tools.cov);
    export.args(["export", "-format=lcov", "-instr-profile"]);
    export.arg(&merged).arg(folder.join(LIBRARY));
    output_of(&mut export)
}

fn output_of(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {errors}");
    Ok(str::from_utf8(&output.stdout)?.to_owned())
}

/// The table for documents: a row for each file, and the sums.
#[must_use]
pub fn table(files: &Files) -> String {
    let mut text = String::from("| file | lines | branches | functions |\n|---|---|---|---|\n");
    let mut sums = [(0, 0); 3];
    for (name, reached) in files {
        let of = [
            reached.line_sums(),
            reached.branches,
            reached.function_sums(),
        ];
        for (sum, one) in sums.iter_mut().zip(of) {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        }
        row(&mut text, &format!("`{name}`"), of);
    }
    row(&mut text, "all", sums);
    text
}

fn row(text: &mut String, name: &str, figures: [(usize, usize); 3]) {
    let cells = figures.map(|(all, reached)| match all {
        0 => "none".to_owned(),
        _ => format!("{reached} of {all} ({} %)", reached * 100 / all),
    });
    let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
}

/// Functions that were not called, and lines of others that were not reached, file by file.
#[must_use]
pub fn gaps(files: &Files) -> String {
    let mut text = String::new();
    for (name, reached) in files {
        let functions = reached.uncalled();
        if !functions.is_empty() {
            let _ = writeln!(text, "{name}: not called: {}", functions.join(", "));
        }
        let range = |(from, to)| match from == to {
            true => format!("{from}"),
            false => format!("{from}-{to}"),
        };
        let lines: Vec<_> = reached.unreached().into_iter().map(range).collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "{name}: lines not reached: {}", lines.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_sums_and_gaps_have_names() {
        let text = "SF:/a.h\nFN:1,f\nFN:9,g\nFNDA:1,f\nFNDA:0,g\nDA:1,1\nDA:2,0\nDA:3,0\nDA:9,0\n\
                    BRDA:1,0,0,1\nBRDA:1,0,1,0\nend_of_record\nSF:/b.h\nFN:1,h\nFNDA:0,h\nDA:1,0\n\
                    end_of_record\n";
        let files = lcov::parse(text);
        let table = table(&files);
        assert!(
            table.contains("| `/a.h` | 1 of 4 (25 %) | 1 of 2 (50 %) | 1 of 2 (50 %) |"),
            "{table}"
        );
        assert!(
            table.ends_with("| all | 1 of 5 (20 %) | 1 of 2 (50 %) | 1 of 3 (33 %) |\n"),
            "{table}"
        );
        assert_eq!(
            gaps(&files),
            "/a.h: not called: g\n/a.h: lines not reached: 2-3\n/b.h: not called: h\n"
        );
    }
}
