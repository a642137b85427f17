//! The results as a table.

use crate::code::Code;
use crate::kept::{Kept, Outcome, Row};
use crate::part::Part;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Stands before the table on its page.
const BEGIN: &str = "<!-- test-full -->";

/// Stands after it.
const END: &str = "<!-- end of test-full -->";

/// The parts of one row.
struct Group<'a> {
    name: &'a str,
    /// Each part's result, if there is one.
    rows: Vec<Option<&'a Row>>,
}

fn groups<'a>(parts: &'a [Part], kept: &'a Kept) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for part in parts {
        let row = kept.row(&part.name);
        match groups.last_mut().filter(|group| group.name == part.group()) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group {
                name: part.group(),
                rows: vec![row],
            }),
        }
    }
    groups
}

impl Group<'_> {
    fn known(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().copied().flatten()
    }

    /// `2 of 31 parts: 12 passed, 0 failed, 0 skipped`, or what there is of it.
    fn result(&self) -> String {
        let known = self.known().count();
        if known == 0 {
            return "not run".to_string();
        }
        let mut text = match self.rows.len() {
            1 => String::new(),
            all => format!("{known} of {all} parts: "),
        };
        let counts: Vec<[u32; 3]> = self.known().filter_map(Row::counts).collect();
        let sum = |index: usize| counts.iter().map(|counts| counts[index]).sum::<u32>();
        let _ = match counts.is_empty() {
            true => write!(text, "{}", outcome(self.known())),
            false => write!(
                text,
                "{} passed, {} failed, {} skipped",
                sum(0),
                sum(1),
                sum(2)
            ),
        };
        text
    }

    /// The line of the table.
    fn line(&self) -> String {
        let all = |field: fn(&Row) -> &str| {
            let different: BTreeSet<&str> = self.known().map(field).collect();
            let different: Vec<&str> = different.into_iter().filter(|t| !t.is_empty()).collect();
            match different.is_empty() {
                true => "-".to_string(),
                false => different.join(" ").replace('|', "/"),
            }
        };
        let minutes = self
            .known()
            .map(|row| row.seconds)
            .sum::<u64>()
            .div_ceil(60);
        let cells = [
            format!("`{}`", self.name),
            all(|row| &row.kernel),
            self.result(),
            all(|row| &row.note),
            all(|row| &row.commit),
            minutes.to_string(),
        ];
        format!("| {} |\n", cells.join(" | "))
    }
}

/// The worst outcome of a row's parts.
fn outcome<'a>(rows: impl Iterator<Item = &'a Row>) -> &'static str {
    let of: Vec<Outcome> = rows.map(|row| row.outcome).collect();
    match [Outcome::Failed, Outcome::Skipped].map(|worst| of.contains(&worst)) {
        [true, _] => "failed",
        [false, true] => "skipped",
        [false, false] => "passed",
    }
}

/// The table, and a sentence that says how much of it is about the present code.
pub fn markdown(parts: &[Part], kept: &Kept, code: &Code) -> String {
    let with = |has: &dyn Fn(&&Part) -> bool| parts.iter().filter(has).count();
    let known = with(&|part| kept.row(&part.name).is_some());
    let present = with(&|part| kept.present(part, code).is_some());
    let mut text = format!(
        "{} of {} parts have a result, {present} of them for the code of commit {} (`make test-full` runs the others):\n\n\
         | part | kernel | result | failed, or its last line | commit | minutes |\n|---|---|---|---|---|---|\n",
        known,
        parts.len(),
        code.commit,
    );
    for group in groups(parts, kept) {
        text.push_str(&group.line());
    }
    text
}

/// Parts, a line each, with what is known.
pub fn list(parts: &[&Part], kept: &Kept, code: &Code) -> String {
    let mut text = String::new();
    for part in parts {
        let known = match kept.row(&part.name) {
            None => format!("{}: never run", part.name),
            Some(row) if kept.present(part, code).is_some() => row.sentence(),
            Some(row) => format!("{}, at commit {}", row.sentence(), row.commit),
        };
        text.push_str(&known);
        text.push('\n');
    }
    text
}

/// Writes the table into the page, between its marks.
///
/// # Errors
/// If the page cannot be read or written, or has no such marks.
pub fn write(page: &Path, table: &str) -> Result<()> {
    let cannot = || format!("cannot write the table into {}", page.display());
    let text = std::fs::read_to_string(page).with_context(cannot)?;
    let with_table = between(&text, table)
        .with_context(|| format!("{} has no line {BEGIN} before {END}", page.display()))?;
    if with_table != text {
        std::fs::write(page, with_table).with_context(cannot)?;
    }
    Ok(())
}

/// The page with `table` between the marks.
fn between(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part;

    #[test]
    fn a_row_adds_up_its_parts_and_says_what_is_missing() {
        let cases = 2 * part::CASES_PER_PART + 1;
        let cases: Vec<String> = (0..cases).map(|number| format!("case_{number}")).collect();
        let parts = part::all(&cases, 1);
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Kept::read(&folder.path().join("kept.csv")).unwrap();
        for (part, commit, out) in [
            ("suite/6.18:64#01", "old", "6 passed, 0 failed, 0 skipped"),
            (
                "suite/6.18:64#03",
                "new",
                "not ok 1 - x # y\n0 passed, 1 failed, 0 skipped",
            ),
        ] {
            let row = Row {
                part: part.into(),
                code: commit.into(),
                commit: commit.into(),
                seconds: 90,
                ..Row::parse(Outcome::Passed, out, "")
            };
            kept.put(row).unwrap();
        }
        let code = Code::for_test("new");
        let table = markdown(&parts, &kept, &code);
        assert!(table.starts_with(&format!("2 of {} parts have a result, 1 of", parts.len())));
        let row = "| `suite/6.18:64` | - | 2 of 3 parts: 6 passed, 1 failed, 0 skipped | x | new old | 3 |\n";
        assert!(table.contains(row), "{table}");
        assert!(table.contains("| `units` | - | not run | - | - | 0 |\n"));
        let all: Vec<&Part> = parts.iter().collect();
        let list = list(&all, &kept, &code);
        assert!(list.contains(
            "suite/6.18:64#01 passed after 90 s: 6 passed, 0 failed, 0 skipped, at commit old\n"
        ));
    }

    #[test]
    fn the_page_keeps_everything_else() {
        let page = format!("# Page\n\n{BEGIN}\nold\n{END}\n\nmore\n");
        let written = between(&page, "new\n").unwrap();
        assert_eq!(written, page.replace("old", "new"));
        assert_eq!(between("# Page\n", "new\n"), None);
    }
}
