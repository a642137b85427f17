//! What the program prints: progress, survivors, and the table in the documents.

use crate::campaign::{Tried, Verdict};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, io};

/// How often progress is printed.
const PROGRESS: Duration = Duration::from_secs(30);

/// Says how far the work is, now and then.
pub fn progress(text: &str) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().expect("nobody panics with it");
    let began = last.get_or_insert_with(Instant::now);
    if began.elapsed() > PROGRESS {
        *began = Instant::now();
        say(text);
    }
}

/// Prints a line beside the results.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "sfs_variants: {text}");
}

/// The numbers of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Found out.
    pub killed: usize,
    /// Not found out, though runs took another course.
    pub changed: usize,
    /// Not found out, and no run took another course.
    pub unchanged: usize,
    /// At places that no run reaches.
    pub unreached: usize,
    /// The same code as without it, or none.
    pub invalid: usize,
}

impl Sums {
    /// Counts.
    pub fn of<'a>(tried: impl IntoIterator<Item = &'a Tried>) -> Self {
        let mut sums = Self::default();
        for one in tried {
            *match &one.result {
                Verdict::Uncompilable | Verdict::Same => &mut sums.invalid,
                Verdict::Unreached => &mut sums.unreached,
                Verdict::Killed { .. } => &mut sums.killed,
                Verdict::Survived { changed: 0, .. } => &mut sums.unchanged,
                Verdict::Survived { .. } => &mut sums.changed,
            } += 1;
        }
        sums
    }

    /// Those that some run reaches.
    #[must_use]
    pub fn reached(&self) -> usize {
        self.killed + self.changed + self.unchanged
    }
}

/// The table of results, a row for each file that has some.
#[must_use]
pub fn table(tried: &[Tried]) -> String {
    let mut files: BTreeMap<&str, Vec<&Tried>> = BTreeMap::new();
    for one in tried {
        files.entry(&one.mutant.file).or_default().push(one);
    }
    let mut text = String::from(
        "| file | killed, of those reached | survived, runs differ | survived, no run differs | \
         not reached |\n|---|---|---|---|---|\n",
    );
    for (name, of) in files {
        row(&mut text, &format!("`{name}`"), Sums::of(of));
    }
    row(&mut text, "all", Sums::of(tried));
    text
}

fn row(text: &mut String, name: &str, sums: Sums) {
    let killed = match sums.reached() {
        0 => "none reached".to_owned(),
        all => format!("{} of {all} ({} %)", sums.killed, sums.killed * 100 / all),
    };
    let Sums {
        changed,
        unchanged,
        unreached,
        ..
    } = sums;
    let _ = writeln!(
        text,
        "| {name} | {killed} | {changed} | {unchanged} | {unreached} |"
    );
}

/// The survivors, a line each, in the order of files and lines.
#[must_use]
pub fn survivors(tried: &[Tried]) -> String {
    let mut found: Vec<_> = tried.iter().collect();
    found.sort_by_key(|one| (&one.mutant.file, one.mutant.line, one.mutant.at.start));
    let mut text = String::new();
    for one in found {
        let how = match &one.result {
            Verdict::Unreached => "not reached".to_owned(),
            Verdict::Survived { changed, runs } => format!("{changed} of {runs} runs differ"),
            _ => continue,
        };
        let Tried {
            mutant, text: of, ..
        } = one;
        let (file, line, inside) = (&mutant.file, mutant.line, &mutant.inside);
        let _ = writeln!(text, "{file}:{line} {inside}: {of}; {how}");
    }
    text
}

/// Puts a text between the lines `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a file.
///
/// # Errors
/// If the file cannot be read or written, or has no such lines.
pub fn write_between(path: &Path, name: &str, text: &str) -> Result<()> {
    let old =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let new = between(&old, name, text)
        .with_context(|| format!("{} has no place for {name}", path.display()))?;
    fs::write(path, new).with_context(|| format!("cannot write {}", path.display()))
}

fn between(old: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->"),
    );
    let (before, rest) = old.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::all_mutants;

    fn tried() -> Vec<Tried> {
        let text = "static void f(void)\n{\n\ta = b < c;\n\te = d + 3;\n\tg(h);\n}\n";
        let killed = Verdict::Killed {
            by: "sfs_model run 1".into(),
            how: "crash".into(),
        };
        let results = [
            Verdict::Survived {
                changed: 0,
                runs: 9,
            },
            killed,
            Verdict::Survived {
                changed: 2,
                runs: 9,
            },
            Verdict::Same,
            Verdict::Unreached,
        ];
        let mutants = all_mutants(&[("a.h".into(), text.into())]);
        assert_eq!(mutants.len(), results.len());
        let both = mutants.into_iter().zip(results);
        both.map(|(mutant, result)| Tried {
            text: mutant.describe(text),
            mutant,
            result,
        })
        .collect()
    }

    #[test]
    fn results_are_counted_and_listed() {
        let table = table(&tried());
        assert!(
            table.contains("| `a.h` | 1 of 3 (33 %) | 1 | 1 | 1 |"),
            "{table}"
        );
        assert_eq!(
            survivors(&tried()),
            "a.h:3 f: `<` → `<=` in a = b < c;; 0 of 9 runs differ\n\
             a.h:4 f: `3` → `4` in e = d + 3;; 2 of 9 runs differ\n\
             a.h:5 f: g(h) → left out; not reached\n"
        );
    }

    #[test]
    fn a_table_replaces_the_one_before() {
        let old = "a\n<!-- x: begin -->\n\nold\n\n<!-- x: end -->\nb\n";
        let new = between(old, "x", "new\n").expect("it has a place");
        assert_eq!(new, "a\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nb\n");
        assert_eq!(between(old, "y", "new"), None);
    }
}
