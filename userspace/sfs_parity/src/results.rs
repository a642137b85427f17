//! Results: the files `SCHEDULER-CPUS.tsv`, a line for each row, and `SCHEDULER-CPUS@MACHINE.tsv`
//! of other machines.

use anyhow::{Context, Result};
use nix::fcntl::{Flock, FlockArg};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The first line of a file.
const FIELDS: &str = "row\tvalue\tunit\tcommit\tkernel\tprograms\tnote";

/// Stands for a value that there is none of.
pub const NONE: &str = "-";

/// The result of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The row's name.
    pub row: String,
    /// A number, or [`NONE`].
    pub value: String,
    /// `ops/s`, of which more is better, or a time.
    pub unit: String,
    /// The commit that the programs were built from.
    pub commit: String,
    /// The guest's kernel.
    pub kernel: String,
    /// A digest of the programs.
    pub programs: String,
    /// The reason why there is no value, or where it is from.
    pub note: String,
}

impl Line {
    /// Reads a line; fields that are missing are empty.
    fn parse(text: &str) -> Self {
        let mut fields = text.split('\t').map(String::from);
        let mut next = || fields.next().unwrap_or_default();
        Self {
            row: next(),
            value: next(),
            unit: next(),
            commit: next(),
            kernel: next(),
            programs: next(),
            note: next(),
        }
    }

    fn text(&self) -> String {
        let fields = [
            &self.row,
            &self.value,
            &self.unit,
            &self.commit,
            &self.kernel,
            &self.programs,
            &self.note,
        ];
        fields.map(|field| &field[..]).join("\t")
    }

    /// Whether nothing could be measured.
    pub fn is_none(&self) -> bool {
        self.value == NONE
    }

    /// The value as a number; 0 if it is none.
    pub fn number(&self) -> f64 {
        let number = self.value.parse().unwrap_or(0.0);
        if f64::is_finite(number) {
            number
        } else {
            0.0
        }
    }
}

/// Where the results of a scheduler on so many CPUs are. Machine 0 is the one without
/// perturbations, which the tables of single rows are of.
pub fn path(folder: &Path, scheduler: &str, cpus: u32, machine: u32) -> PathBuf {
    let machine = match machine {
        0 => String::new(),
        other => format!("@{other}"),
    };
    folder.join(format!("{scheduler}-{cpus}{machine}.tsv"))
}

/// The lines of a file, without its head; none if it is not there.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().skip(1).filter(|line| !line.is_empty());
    Ok(lines.map(Line::parse).collect())
}

/// A file that has been read.
#[derive(Debug, Clone)]
pub struct Results {
    /// The scheduler.
    pub scheduler: String,
    /// The number of CPUs.
    pub cpus: u32,
    /// The machine: what `vm/run --perturb` was given, or 0.
    pub machine: u32,
    /// The results.
    pub lines: Vec<Line>,
}

/// The results in a folder that are of these schedulers, and on these numbers of CPUs unless
/// there is none: those of one number of CPUs after another, in the order of `schedulers`, and for
/// each of them by machine.
///
/// # Errors
/// If a file cannot be read. A folder that is not there has no results.
pub fn files(folder: &Path, schedulers: &[&str], cpus: &[u32]) -> Result<Vec<Results>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found: BTreeSet<(u32, String, u32)> = names.filter_map(|name| parts(&name)).collect();
    let counts: BTreeSet<u32> = found.iter().map(|(count, _, _)| *count).collect();
    let wanted = |count: &u32| cpus.is_empty() || cpus.contains(count);
    let mut files = Vec::new();
    for cpus in counts.into_iter().filter(wanted) {
        for scheduler in schedulers {
            let first = (cpus, scheduler.to_string(), 0);
            let last = (cpus, scheduler.to_string(), u32::MAX);
            for (_, scheduler, machine) in found.range(first..=last) {
                let path = path(folder, scheduler, cpus, *machine);
                if fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
                    files.push(Results {
                        scheduler: scheduler.clone(),
                        cpus,
                        machine: *machine,
                        lines: read(&path)?,
                    });
                }
            }
        }
    }
    Ok(files)
}

/// The number of CPUs, the scheduler and the machine in the name of a file.
fn parts(name: &str) -> Option<(u32, String, u32)> {
    let (scheduler, rest) = name.strip_suffix(".tsv")?.rsplit_once('-')?;
    let (cpus, machine) = rest.split_once('@').unwrap_or((rest, "0"));
    Some((cpus.parse().ok()?, scheduler.into(), machine.parse().ok()?))
}

/// Returns the rows of `rows` without a result of these programs in `lines`. The first are those
/// that have none at all; with `only`, they are all.
pub fn missing(lines: &[Line], rows: &[String], programs: &str, only: bool) -> Vec<String> {
    let of: HashMap<&str, &str> = lines
        .iter()
        .map(|line| (&line.row[..], &line.programs[..]))
        .collect();
    let is_new = |row: &&String| !of.contains_key(&row[..]);
    let is_old = |row: &&String| !only && of.get(&row[..]).is_some_and(|made| *made != programs);
    let new = rows.iter().filter(is_new);
    new.chain(rows.iter().filter(is_old)).cloned().collect()
}

/// Writes lines into a file, and replaces earlier ones of the same rows. Processes that do
/// so at the same time wait for each other.
///
/// # Errors
/// If the file cannot be read or written.
pub fn keep(path: &Path, lines: Vec<Line>) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let cannot = || format!("cannot write {}", path.display());
    let open = File::open(folder).with_context(cannot)?;
    let _lock = Flock::lock(open, FlockArg::LockExclusive)
        .map_err(|(_, error)| error)
        .with_context(cannot)?;
    let kept = read(path)?.into_iter().chain(lines);
    let by_row: BTreeMap<String, Line> = kept.map(|line| (line.row.clone(), line)).collect();
    let mut text = format!("{FIELDS}\n");
    for line in by_row.values() {
        text += &line.text();
        text += "\n";
    }
    let new = path.with_extension("tsv.new");
    fs::write(&new, text).with_context(cannot)?;
    fs::rename(&new, path).with_context(cannot)
}

/// The output of a guest.
#[derive(Debug, Default)]
pub struct Log {
    /// The fields common to all lines: commit, kernel, programs.
    common: Line,
    /// Whether the guest has begun to measure.
    pub has_begun: bool,
    /// Its results.
    pub lines: Vec<Line>,
}

impl Log {
    /// Reads what a guest with programs of this commit and digest has printed: the kernel,
    /// then for each row a value and a unit, or `-` and why there is none. Part of a line is
    /// no result.
    pub fn parse(text: &str, commit: &str, programs: &str) -> Self {
        let mut log = Self::default();
        log.common.commit = commit.into();
        log.common.programs = programs.into();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["kernel", version, ..] => {
                    log.common.kernel = version.into();
                    log.has_begun = true;
                }
                ["row", row, NONE, ref why @ ..] => log.add(row, NONE, NONE, &why.join(" ")),
                ["row", row, value, unit, ..] => log.add(row, value, unit, ""),
                _ => {}
            }
        }
        log
    }

    fn add(&mut self, row: &str, value: &str, unit: &str, note: &str) {
        self.lines.push(Line {
            row: row.into(),
            value: value.into(),
            unit: unit.into(),
            note: note.into(),
            ..self.common.clone()
        });
    }

    /// Notes why there is no value for a row.
    pub fn note(&mut self, row: &str, why: &str) {
        // A tab or a line's end would end the field.
        let why: Vec<&str> = why.split_whitespace().collect();
        self.add(row, NONE, NONE, &why.join(" "));
    }

    /// The rows of `rows` that the guest has not printed.
    pub fn left(&self, rows: &[String]) -> Vec<String> {
        let said: HashSet<&str> = self.lines.iter().map(|line| &line.row[..]).collect();
        let left = rows.iter().filter(|row| !said.contains(&row[..]));
        left.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> Log {
        Log::parse(text, "abc", "123")
    }

    #[test]
    fn a_guest_says_values_and_why_there_are_none() {
        let log = log("noise\nkernel 6.18\nrow a 1.5 ms\nrow b - no  such\tfile\nrow c 5");
        let texts: Vec<String> = log.lines.iter().map(Line::text).collect();
        assert_eq!(
            texts,
            [
                "a\t1.5\tms\tabc\t6.18\t123\t",
                "b\t-\t-\tabc\t6.18\t123\tno such file"
            ]
        );
        assert_eq!(log.left(&["a", "c"].map(String::from)), ["c"]);
        assert_eq!(Line::parse(&texts[1]), log.lines[1]);
    }

    #[test]
    fn numbers_may_have_exponents() {
        let value = |value: &str| Line::parse(&format!("a\t{value}")).number();
        assert_eq!(value("1.02479e+06"), 1_024_790.0);
        assert_eq!(value("-") + value("inf") + value(""), 0.0);
    }

    #[test]
    fn a_row_that_is_measured_again_takes_the_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path(), "sfs", 4, 0);
        keep(&path, log("kernel 6.18\nrow b 1 us\nrow a+load 2 us").lines).unwrap();
        keep(&path, log("kernel 6.18\nrow b 3 us\nrow a 4 us").lines).unwrap();
        let rows: Vec<String> = read(&path)
            .unwrap()
            .iter()
            .map(|line| format!("{} {}", line.row, line.value))
            .collect();
        assert_eq!(rows, ["a 4", "a+load 2", "b 3"]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("row\tvalue\tunit\t"), "{text}");
    }

    #[test]
    fn files_come_by_cpus_then_scheduler_then_machine() {
        let folder = tempfile::tempdir().unwrap();
        for (scheduler, cpus, machine) in [
            ("sfs", 8, 0),
            ("scx_a-b", 4, 10),
            ("scx_a-b", 4, 2),
            ("scx_a-b", 4, 0),
            ("other", 4, 0),
        ] {
            let path = path(folder.path(), scheduler, cpus, machine);
            keep(&path, log("kernel 6.18\nrow a 1 us").lines).unwrap();
        }
        let found = |cpus: &[u32]| -> Vec<(String, u32, u32)> {
            let files = files(folder.path(), &["sfs", "scx_a-b"], cpus).unwrap();
            let parts = files.into_iter();
            parts
                .map(|of| (of.scheduler, of.cpus, of.machine))
                .collect()
        };
        let of = |scheduler: &str, cpus, machine| (scheduler.to_string(), cpus, machine);
        let four = [
            of("scx_a-b", 4, 0),
            of("scx_a-b", 4, 2),
            of("scx_a-b", 4, 10),
        ];
        assert_eq!(found(&[4]), four);
        assert_eq!(found(&[])[3..], [of("sfs", 8, 0)]);
    }

    #[test]
    fn rows_without_a_result_come_first() {
        let mut lines = log("row a 1 us\nrow b 1 us").lines;
        lines[0].programs = "other".into();
        let rows = ["a", "b", "c"].map(String::from);
        assert_eq!(missing(&lines, &rows, "123", false), ["c", "a"]);
        assert_eq!(missing(&lines, &rows, "123", true), ["c"]);
    }
}
