//! All that is said, in the form of `--json`.

use serde::Serialize;

use crate::prediction::Prediction;
use crate::recording::Recording;
use crate::seen::Seen;
use crate::verdict::Verdict;

/// The report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The form of this report.
    pub format: &'static str,
    /// The present scheduler, which the recording was made under.
    pub scheduler: String,
    /// Whether it was recorded here; else it is a trace.
    pub is_recorded: bool,
    /// What was seen.
    pub seen: Seen,
    /// The figures of each scheduler; none without advice.
    pub predictions: Vec<Prediction>,
    /// Whether scx_sfs is worth it.
    pub verdict: Verdict,
}

impl Report {
    /// The report of a recording.
    pub fn new(recording: &Recording, seen: Seen, predictions: Vec<Prediction>) -> Self {
        Self {
            format: "sfs_advise/1",
            scheduler: recording.scheduler.name().to_owned(),
            is_recorded: recording.others.is_some(),
            verdict: Verdict::of(&seen, &predictions),
            seen,
            predictions,
        }
    }
}
