//! Further data for plots: values over time, and over service time. Bins depend
//! on the trace only, so that plots of different schedulers can be overlaid.

use crate::measure::Measure;
use crate::stats::{nearest_rank, Ms};
use crate::trace::Invocation;
use serde::{Deserialize, Serialize};

/// Bins of [`ByService`] per factor of ten.
const BINS_PER_DECADE: f64 = 8.0;

/// Maximum number of bins of [`OverTime`], and target number of invocations per
/// bin.
const MOST_BINS: u64 = 120;
const INVOCATIONS_PER_BIN: u64 = 8;

/// Arrivals and queue delay over time, in bins of equal length by arrival.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// Start of the first bin, at the first arrival, in milliseconds since the
    /// start of the trace.
    pub from_ms: f64,
    /// Length of a bin in milliseconds.
    pub bin_ms: f64,
    /// Invocations that arrived in each bin, completed or not.
    pub arrivals: Vec<u64>,
    /// Mean queue delay of those that completed; null if none did.
    pub mean_queue_delay_ms: Vec<Option<f64>>,
    /// Longest queue delay of those that completed; null if none did.
    pub max_queue_delay_ms: Vec<Option<f64>>,
}

impl OverTime {
    /// `None` if all arrive at once, or nothing completed.
    pub(super) fn of(invocations: &[Invocation], done: &[Measure]) -> Option<Self> {
        let from = invocations.first()?.arrival_us;
        let span = invocations.last()?.arrival_us - from;
        if span == 0 || done.is_empty() {
            return None;
        }
        let wanted = (invocations.len() as u64 / INVOCATIONS_PER_BIN).clamp(1, MOST_BINS);
        // The last arrival must be within the last bin.
        let length = (span + 1).div_ceil(wanted);
        let bin = |one: &Invocation| ((one.arrival_us - from) / length) as usize;
        let count = bin(invocations.last()?) + 1;
        let mut arrivals = vec![0; count];
        for one in invocations {
            arrivals[bin(one)] += 1;
        }
        let mut delays: Vec<Vec<u64>> = vec![Vec::new(); count];
        for one in done {
            delays[bin(&invocations[one.id])].push(one.queue_delay_us);
        }
        let mean = |delays: &Vec<u64>| {
            let sum: u64 = delays.iter().sum();
            (!delays.is_empty()).then(|| (sum / delays.len() as u64).ms())
        };
        Some(Self {
            from_ms: from.ms(),
            bin_ms: length.ms(),
            arrivals,
            mean_queue_delay_ms: delays.iter().map(mean).collect(),
            max_queue_delay_ms: delays
                .iter()
                .map(|delays| delays.iter().max().map(|us| us.ms()))
                .collect(),
        })
    }
}

/// Turnaround against service time, in bins of equal ratio (8 per factor of
/// ten), without bins in which nothing completed and without invocations that
/// need no CPU time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ByService {
    /// Mean service time of the completed invocations in each bin.
    pub service_ms: Vec<f64>,
    /// Number of these invocations.
    pub invocations: Vec<usize>,
    /// Median of their turnaround.
    pub turnaround_p50_ms: Vec<f64>,
    /// 99th percentile of their turnaround.
    pub turnaround_p99_ms: Vec<f64>,
}

impl ByService {
    pub(super) fn of(invocations: &[Invocation], done: &[Measure]) -> Option<Self> {
        let mut points: Vec<(u64, u64)> = done
            .iter()
            .map(|one| (invocations[one.id].service_us(), one.turnaround_us))
            .filter(|(service_us, _)| *service_us > 0)
            .collect();
        points.sort_unstable();
        let bin = |service_us: u64| {
            let decades = libm::log10(service_us as f64);
            libm::floor(decades * BINS_PER_DECADE) as i32
        };
        let mut all = Self::default();
        for points in points.chunk_by(|one, next| bin(one.0) == bin(next.0)) {
            let mut turnaround: Vec<u64> = points.iter().map(|point| point.1).collect();
            turnaround.sort_unstable();
            let service: u64 = points.iter().map(|point| point.0).sum();
            all.service_ms.push((service / points.len() as u64).ms());
            all.invocations.push(points.len());
            let at = |per_cent| nearest_rank(&turnaround, per_cent, 100).ms();
            all.turnaround_p50_ms.push(at(50));
            all.turnaround_p99_ms.push(at(99));
        }
        (!all.service_ms.is_empty()).then_some(all)
    }
}
