//! What is compared of a run.

use faas_data::summary::{Status, Summary};
use serde::{Deserialize, Serialize};

/// One of the compared figures. Less is better for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Mean of turnaround over service time.
    MeanSlowdown,
    /// Its 99th percentile.
    TailSlowdown,
    /// Mean turnaround, ms.
    Mean,
    /// That of the short invocations, ms.
    Short,
    /// That of the long ones, ms.
    Long,
    /// The 99.9th percentile of turnaround, ms.
    Tail,
}

impl Figure {
    /// All, in the order of the page.
    pub const ALL: [Self; 6] = [
        Self::MeanSlowdown,
        Self::TailSlowdown,
        Self::Mean,
        Self::Short,
        Self::Long,
        Self::Tail,
    ];

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::MeanSlowdown => "mean slowdown",
            Self::TailSlowdown => "99th percentile of slowdown",
            Self::Mean => "mean turnaround",
            Self::Short => "mean turnaround of the short",
            Self::Long => "mean turnaround of the long",
            Self::Tail => "99.9th percentile of turnaround",
        }
    }

    /// What its values are in.
    pub fn unit(self) -> &'static str {
        match self {
            Self::MeanSlowdown | Self::TailSlowdown => "",
            Self::Mean | Self::Short | Self::Long | Self::Tail => " ms",
        }
    }
}

/// The figures of one run. A run in which nothing was long, or nothing completed, lacks some.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// As of [`Figure::MeanSlowdown`].
    pub mean_slowdown: Option<f64>,
    /// As of [`Figure::TailSlowdown`].
    pub p99_slowdown: Option<f64>,
    /// As of [`Figure::Mean`].
    pub mean_ms: Option<f64>,
    /// As of [`Figure::Short`].
    pub short_ms: Option<f64>,
    /// As of [`Figure::Long`].
    pub long_ms: Option<f64>,
    /// As of [`Figure::Tail`].
    pub p999_ms: Option<f64>,
}

impl Figures {
    /// Those of a summary; none if it is no clean measurement.
    pub fn of(summary: &Summary) -> Self {
        if summary.scheduler.status != Status::Ok || summary.failed > 0 {
            return Self::default();
        }
        let mean = |group: &faas_data::summary::groups::Group| group.turnaround_ms.map(|t| t.mean);
        Self {
            mean_slowdown: summary.slowdown.map(|slowdown| slowdown.mean),
            p99_slowdown: summary.slowdown.map(|slowdown| slowdown.p99),
            mean_ms: summary.turnaround_ms.map(|turnaround| turnaround.mean),
            short_ms: mean(&summary.short),
            long_ms: mean(&summary.long),
            p999_ms: summary.turnaround_ms.map(|turnaround| turnaround.p999),
        }
    }

    /// The value of one, if there is a positive one.
    pub fn get(&self, figure: Figure) -> Option<f64> {
        let value = match figure {
            Figure::MeanSlowdown => self.mean_slowdown,
            Figure::TailSlowdown => self.p99_slowdown,
            Figure::Mean => self.mean_ms,
            Figure::Short => self.short_ms,
            Figure::Long => self.long_ms,
            Figure::Tail => self.p999_ms,
        };
        value.filter(|value| *value > 0.0)
    }
}
