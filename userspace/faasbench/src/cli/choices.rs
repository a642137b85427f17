//! Options with a few fixed values, for clap: the crates that use the values do
//! not depend on it.

use clap::ValueEnum;
use faas_replay::cgroup::Layout;
use faas_workload::convert::{azure, fc};
use faas_workload::hermes;
use faas_workload::io::Place;

/// `convert fc --figure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Figure {
    /// Of the microVM, with 3.5 s for its start
    Tfc,
    /// Of the program in it
    Tvm,
    /// Of the microVM, with a start that blocks except for 535 ms of CPU time
    StartWaits,
}

impl From<Figure> for fc::Figure {
    fn from(figure: Figure) -> Self {
        match figure {
            Figure::Tfc => Self::Tfc,
            Figure::Tvm => Self::Tvm,
            Figure::StartWaits => Self::StartWaits,
        }
    }
}

/// `convert azure --pick`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Pick {
    /// The most popular
    Popular,
    /// A random sample, by the seed
    Sample,
}

impl From<Pick> for azure::Pick {
    fn from(pick: Pick) -> Self {
        match pick {
            Pick::Popular => Self::Popular,
            Pick::Sample => Self::Sample,
        }
    }
}

/// `convert azure --between`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Between {
    /// A straight line; overstates the mean of skewed functions
    Linear,
    /// A straight line of the logarithms; closer to the mean
    Log,
}

impl From<Between> for azure::Between {
    fn from(between: Between) -> Self {
        match between {
            Between::Linear => Self::Linear,
            Between::Log => Self::Log,
        }
    }
}

/// `gen --io-at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum IoAt {
    /// Before any computation, as in the SFS paper
    Start,
    /// Once, after half of its service time
    Middle,
    /// Three times for a third each, after a quarter, a half and three
    /// quarters of its service time
    Several,
}

impl From<IoAt> for Place {
    fn from(at: IoAt) -> Self {
        match at {
            IoAt::Start => Self::Start,
            IoAt::Middle => Self::Middle,
            IoAt::Several => Self::Several,
        }
    }
}

/// `gen hermes --mix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mix {
    /// One popular and 49 other functions of Azure's trace, with its arrivals
    MsTrace,
    /// 50 functions, one with 90 % of the load; Poisson arrivals
    MsRepresentative,
    /// One function
    SingleFunction,
    /// 50 functions with the same load
    MultipleFunctionsBalanced,
    /// As ms-trace, with exponential times of mean 8.9 s
    HomogeneousExecutionTimes,
}

impl From<Mix> for hermes::Mix {
    fn from(mix: Mix) -> Self {
        match mix {
            Mix::MsTrace => Self::MsTrace,
            Mix::MsRepresentative => Self::MsRepresentative,
            Mix::SingleFunction => Self::SingleFunction,
            Mix::MultipleFunctionsBalanced => Self::MultipleFunctionsBalanced,
            Mix::HomogeneousExecutionTimes => Self::HomogeneousExecutionTimes,
        }
    }
}

/// `run --cgroup-layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CgroupLayout {
    /// All in one folder, as in container engines and Kubernetes: a fair
    /// scheduler shares the CPUs between sandboxes
    Flat,
    /// The sandboxes of each function in a cgroup of that function: a fair
    /// scheduler first shares the CPUs between functions, which favours
    /// functions with few concurrent requests
    Nested,
}

impl From<CgroupLayout> for Layout {
    fn from(layout: CgroupLayout) -> Self {
        match layout {
            CgroupLayout::Flat => Self::Flat,
            CgroupLayout::Nested => Self::Nested,
        }
    }
}
