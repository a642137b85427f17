//! The rows: a VM for each scheduler.

use crate::platform::Platform;
use anyhow::Result;
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::{in_path, Tree};
use std::ffi::OsString;
use std::path::PathBuf;

/// The kernel's own scheduler.
const EEVDF: &str = "eevdf";

/// A scheduler.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, which is also that of its files.
    pub name: String,
    /// Its program; none for the kernel's own.
    pub program: Option<PathBuf>,
    /// Its options, separated by spaces.
    pub options: OsString,
}

/// The rows that `names` lists, separated by spaces. `variable` has the environment's variables.
///
/// # Errors
/// If there is none, if one occurs twice, or if a scheduler has no program.
pub fn rows(
    tree: &Tree,
    platform: &Platform,
    names: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for name in names.split_whitespace() {
        if rows.iter().any(|row| row.name == name) {
            refuse!("{name} is in SCHEDULERS twice");
        }
        let program = program(tree, name)?;
        let own = program.as_ref().map_or("", |_| platform.options);
        rows.push(Row {
            name: name.to_owned(),
            options: variable(&args(name)).unwrap_or_else(|| own.into()),
            program,
        });
    }
    if rows.is_empty() {
        refuse!("SCHEDULERS names no scheduler");
    }
    Ok(rows)
}

/// The environment variable that has the options of a row.
fn args(row: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("ARGS_{}", row.chars().map(plain).collect::<String>())
}

fn program(tree: &Tree, name: &str) -> Result<Option<PathBuf>> {
    if name == EEVDF {
        return Ok(None);
    }
    // The name is also that of files, which are removed.
    if name.contains('/') || name.starts_with('.') {
        refuse!("'{name}' in SCHEDULERS is not the name of a program");
    }
    let ours = tree.program(name);
    if tree.is_program(&ours) {
        return Ok(Some(tree.at(ours)));
    }
    match in_path(name) {
        Some(path) => Ok(Some(path)),
        None => refuse!(
            "found no scheduler {name}, neither in userspace/target/release nor in PATH; build or install it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::LAMBDA;

    fn none(_: &str) -> Option<OsString> {
        None
    }

    fn found(names: &str, variable: impl Fn(&str) -> Option<OsString>) -> Result<Vec<Row>> {
        rows(&Tree::new("/none", None), &LAMBDA, names, variable)
    }

    #[test]
    fn a_scheduler_has_the_options_of_the_platform_unless_it_has_its_own() {
        let options = |names: &str, value: Option<&str>| {
            let rows = found(names, |name| {
                let is_set = name == "ARGS_eevdf" || name == "ARGS_sh";
                value.filter(|_| is_set).map(OsString::from)
            });
            let options = rows.unwrap().into_iter().map(|row| row.options);
            options.collect::<Vec<_>>()
        };
        assert_eq!(options("eevdf sh", None), ["", LAMBDA.options]);
        assert_eq!(options("sh  eevdf", Some("-x")), ["-x", "-x"]);
        assert_eq!(options("sh", Some("")), [""]);
    }

    #[test]
    fn programs_are_those_of_the_path_if_not_ours() {
        let rows = found("eevdf sh", none).unwrap();
        assert_eq!(rows[0].program, None);
        assert_eq!(rows[1].program, in_path("sh"));
    }

    #[test]
    fn bad_names_are_refused() {
        for (names, text) in [
            ("eevdf scx_nowhere", "found no scheduler scx_nowhere"),
            ("sh eevdf sh", "sh is in SCHEDULERS twice"),
            ("../sh", "'../sh' in SCHEDULERS is not the name"),
            (".", "'.' in SCHEDULERS is not the name"),
            (" ", "names no scheduler"),
        ] {
            let said = found(names, none).unwrap_err().to_string();
            assert!(said.contains(text), "{said}");
        }
    }

    #[test]
    fn variables_have_plain_names() {
        assert_eq!(args("scx_p2dq-1.1"), "ARGS_scx_p2dq_1_1");
    }
}
