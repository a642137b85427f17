//! Fixed work: measures what it takes alone, before a run.

use crate::calibrate::{measure, Report};
use crate::setup::Setup;
use anyhow::{bail, Result};
use faas_data::fixed::Kernel;
use faas_data::output::note;
use faas_data::summary::fixed::{Calibrated, Calibration};
use faas_data::trace::{Phase, Trace};
use faas_fixed::calibration::{Found, DOUBTFUL, REPETITIONS};
use faas_fixed::memory;
use std::collections::BTreeSet;

/// The implementation of CPUs that share one stream of instructions.
const SHARED: &str = "icount";

/// Measures the fixed work of `trace`, if it has any, writes the rates into
/// `setup`, and returns what the summary is to say. The measurements may vary
/// by `limit` per cent.
///
/// # Errors
/// If working sets do not fit the memory, or the measurement fails or varies
/// too much.
pub fn prepare(
    setup: &mut Setup,
    trace: &Trace,
    cpus: u32,
    accel: &str,
    limit: u32,
) -> Result<Option<Calibration>> {
    let kernels = setup.kernels(trace);
    if kernels.is_empty() {
        return Ok(None);
    }
    check_memory(setup, trace, cpus, &kernels)?;
    let report = measure(&kernels, accel == SHARED, limit)?;
    setup.rates = report.calibrated.rates();
    for one in &report.calibrated.kernels {
        if one.spread > DOUBTFUL {
            note(&format!(
                "note: the calibration of {} varies by {:.1} %, so CPU time over CPU time alone \
                 is as uncertain",
                name(one),
                one.spread * 100.0
            ));
        }
    }
    tell_of_long_ones(setup, trace);
    Ok(Some(calibration(&report)))
}

/// Refuses working sets that do not fit the memory even if no more invocations
/// run than there are CPUs, or sandboxes before the replay.
fn check_memory(setup: &Setup, trace: &Trace, cpus: u32, kernels: &[Kernel]) -> Result<()> {
    let count = match setup.warm() {
        None => u64::from(cpus),
        Some(warm) => {
            let is_fixed = |phase: &Phase| setup.decide(*phase).fixed().is_some();
            let fixed = trace.invocations.iter();
            let fixed = fixed.filter(|one| one.phases.iter().any(is_fixed));
            let functions: BTreeSet<&str> = fixed.map(|one| one.function.as_str()).collect();
            functions.len() as u64 * u64::from(warm.prestart.max(1))
        }
    };
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match memory::check(count, memory::largest(kernels), &meminfo) {
        Ok(()) => Ok(()),
        Err(message) => bail!("{message}"),
    }
}

/// Says how many invocations take longer alone than the trace says.
fn tell_of_long_ones(setup: &Setup, trace: &Trace) {
    let rates = setup.rates();
    let is_longer = |one: &&faas_data::trace::Invocation| {
        let alone_us = rates.alone_us(one, setup.defaults.work);
        // Times are rounded.
        alone_us.is_some_and(|us| us > one.service_us() + 1)
    };
    let longer = trace.invocations.iter().filter(is_longer).count();
    if longer > 0 {
        note(&format!(
            "note: {longer} of {} invocations are shorter in the trace than it takes to start \
             their processes and to make their working sets; they take as long as that. A larger \
             --scale, a smaller working set or --sandbox warm avoids it",
            trace.invocations.len()
        ));
    }
}

fn name(one: &Found) -> &'static str {
    let kernel = Kernel::ALL.get(one.number);
    kernel.map_or("unknown work", |kernel| kernel.name())
}

/// What the summary says.
fn calibration(report: &Report) -> Calibration {
    let us = |ns: u64| ns as f64 / 1e3;
    let round = faas_data::stats::round;
    let kernel = |one: &Found| {
        let calibrated = Calibrated {
            setup_us: us(one.setup_ns),
            iterations_per_us: round(1e6 / one.iteration_ps as f64, 3),
            spread: round(one.spread, 4),
        };
        (name(one).to_string(), calibrated)
    };
    Calibration {
        cpu: report.cpu,
        repetitions: REPETITIONS as u32,
        beside: report.beside,
        start_us: us(report.calibrated.start_ns),
        kernels: report.calibrated.kernels.iter().map(kernel).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_fixed::calibration::Calibrated as Measured;

    #[test]
    fn the_summary_has_units_that_can_be_read() {
        let found = Found {
            number: 4,
            setup_ns: 250_500,
            iteration_ps: 2_500,
            spread: 0.012_345,
        };
        let said = calibration(&Report {
            cpu: 3,
            beside: 1,
            calibrated: Measured {
                start_ns: 90_000,
                kernels: vec![found],
            },
        });
        assert_eq!((said.cpu, said.beside, said.start_us), (3, 1, 90.0));
        let one = said.kernels["sum-1m"];
        assert_eq!(
            (one.setup_us, one.iterations_per_us, one.spread),
            (250.5, 400.0, 0.0123)
        );
    }
}
