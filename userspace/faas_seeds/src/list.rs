//! The file that names the runs of a series, `series.json`.
//!
//! The runs themselves are in folders beside it, in which each scheduler has a summary
//! (`NAME.json`) and a result (`NAME.csv`), and which have the trace.

use anyhow::{bail, Context, Result};
use faas_data::input;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The name and version of the format.
pub const SCHEMA: &str = "faasbench.series/1";

/// A series of comparisons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// [`SCHEMA`].
    pub schema: String,
    /// The names of the rows. The others are compared with the first.
    pub rows: Vec<String>,
    /// By how much arrivals are moved at most, as `50us`, if the repetitions are copies of
    /// one trace; their seeds are those of the moves then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// The repetitions, at least one.
    pub repetitions: Vec<Repetition>,
}

/// One trace, replayed under each scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repetition {
    /// The seed of the trace.
    pub seed: u64,
    /// The requested load, as it was given, if the trace was made for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// The folder with the results, from the folder of the list.
    pub folder: PathBuf,
}

impl Series {
    /// A series in the current format.
    pub fn new(rows: Vec<String>, repetitions: Vec<Repetition>) -> Self {
        Self {
            schema: SCHEMA.to_string(),
            rows,
            jitter: None,
            repetitions,
        }
    }

    /// Reads and checks the list.
    ///
    /// # Errors
    /// If it cannot be read, is malformed, has no row to compare, or has a seed twice.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = input::read(path)?;
        let shown = path.display();
        let series: Self = serde_json::from_slice(&bytes)
            .with_context(|| format!("{shown} is not a list of runs"))?;
        if series.schema != SCHEMA {
            bail!("{shown} is not a list of runs: its schema is not {SCHEMA}");
        }
        if series.rows.len() < 2 || series.repetitions.is_empty() {
            bail!("{shown} has nothing to compare: want two rows and a seed");
        }
        let mut known = HashSet::new();
        for one in &series.repetitions {
            if !known.insert((&one.load, one.seed)) {
                bail!("{shown} has seed {} twice", one.seed);
            }
        }
        Ok(series)
    }

    /// The loads, each once: steady ones first, which is by size. Loads that are no numbers
    /// come last.
    pub fn loads(&self) -> Vec<Option<&str>> {
        let mut loads: Vec<Option<&str>> = Vec::new();
        for one in &self.repetitions {
            if !loads.contains(&one.load.as_deref()) {
                loads.push(one.load.as_deref());
            }
        }
        let size = |load: &Option<&str>| load.and_then(number).unwrap_or(f64::INFINITY);
        loads.sort_by(|one, other| size(one).total_cmp(&size(other)));
        loads
    }
}

fn number(load: &str) -> Option<f64> {
    load.parse().ok()
}

/// Whether a queue at this load has a steady state: it is below 1. `None` if the load is no
/// number.
///
/// # Example
///
/// ```
/// use faas_seeds::list::is_steady;
///
/// assert_eq!(["0.9", "1.0", "own"].map(is_steady), [Some(true), Some(false), None]);
/// ```
pub fn is_steady(load: &str) -> Option<bool> {
    number(load).map(|load| load < 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Series, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("series.json");
        std::fs::write(&path, text).unwrap();
        Series::read(&path).map_err(|error| format!("{error:#}"))
    }

    fn list(rows: &str, repetitions: &str) -> String {
        format!(r#"{{"schema":"{SCHEMA}","rows":[{rows}],"repetitions":[{repetitions}]}}"#)
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let one = r#"{"seed":1,"folder":"seed-1"}"#;
        let two = r#""a","b""#;
        assert_eq!(read(&list(two, one)).unwrap().repetitions[0].seed, 1);
        for (text, message) in [
            (list(r#""a""#, one), "has nothing to compare"),
            (list(two, ""), "has nothing to compare"),
            (list(two, &format!("{one},{one}")), "has seed 1 twice"),
            (list(two, one).replace("series/1", "series/9"), "its schema"),
            ("{}".into(), "is not a list of runs: missing field"),
        ] {
            let said = read(&text).unwrap_err();
            assert!(said.contains(message), "{said}");
        }
    }

    #[test]
    fn steady_loads_come_first() {
        let at = |load: Option<&str>| Repetition {
            seed: 1,
            load: load.map(str::to_string),
            folder: PathBuf::new(),
        };
        let loads = [
            Some("own"),
            Some("1.2"),
            Some("0.5"),
            Some("1.2"),
            Some("1.0"),
        ];
        let series = Series::new(Vec::new(), loads.map(at).to_vec());
        let want = [Some("0.5"), Some("1.0"), Some("1.2"), Some("own")];
        assert_eq!(series.loads(), want);
    }
}
