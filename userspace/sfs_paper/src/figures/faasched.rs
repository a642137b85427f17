//! FaaSched's ten applications (its Table II): the jitter of each class, and
//! each application by itself.

use super::{at, distribution, mean, Drawn, Figure};
use crate::data::{Measured, Run};
use crate::plan::{row, Setting, Size};
use crate::table::{ms, Table};
use faas_data::stats::{deviation, sorted};
use faas_data::trace::Class;
use std::collections::BTreeSet;

/// The applications' own load on 16 CPUs, and one at which they wait.
const LOADS: [f64; 2] = [0.56, 0.9];

/// Invocations in simulation: 92 of 100 are one application's of 3 ms.
const SIMULATED_INVOCATIONS: u32 = 100_000;

/// CPUs of the paper's machine with all ten applications.
const CPUS: u32 = 16;

/// The mix under live schedulers.
pub const LIVE: Figure = Figure {
    id: "faasched",
    title: "FaaSched's Table II: five latency-sensitive and five latency-desirable applications",
    settings: |size| over(size, &["eevdf", "scx_sfs"]),
    draw: |measured, _| Ok(draw(measured)),
    needs_traces: false,
};

/// The same in simulation, with fifty times as many invocations.
pub const SIMULATED: Figure = Figure {
    id: "faasched-simulated",
    title: "FaaSched's Table II, simulated",
    settings: |size| {
        let mut settings = over(size, &["ps", "sfs", "learned", "srtf", "ideal"]);
        for setting in &mut settings {
            setting.name += "-simulated";
            setting.invocations = SIMULATED_INVOCATIONS;
            setting.cpus = CPUS;
        }
        settings
    },
    draw: |measured, _| Ok(draw(measured)),
    needs_traces: false,
};

fn over(size: Size, rows: &[&'static str]) -> Vec<Setting> {
    let rows: Vec<_> = rows.iter().copied().map(row).collect();
    let setting = |load| Setting::generated(size, "classes", load, &rows);
    LOADS.into_iter().map(setting).collect()
}

/// Sorted turnarounds in milliseconds of the invocations for which `keep` is
/// true of their class and function.
fn of(measured: &Measured, run: &Run, keep: impl Fn(Option<Class>, &str) -> bool) -> Vec<f64> {
    sorted(run.turnarounds_ms(|one| {
        let invocation = &measured.trace[one.id];
        keep(invocation.class, &invocation.function)
    }))
}

fn draw(measured: &[Measured]) -> Drawn {
    let mut drawn = Drawn::default();
    for one in measured {
        drawn.tables.push(classes(one));
        drawn.tables.push(applications(one));
        for class in [Class::Ls, Class::Ld] {
            let title = format!("Turnaround of {class}, {}", one.title);
            let values = |run: &Run| of(one, run, |own, _| own == Some(class));
            let name = format!("{class}-{}", one.title.replace(' ', "-"));
            let x = "turnaround, ms";
            let chart = distribution(&name, &title, x, &one.runs, values);
            drawn.charts.push(chart);
        }
    }
    drawn
}

fn classes(measured: &Measured) -> Table {
    let columns = [
        "class and scheduler",
        "invocations",
        "mean, ms",
        "p50, ms",
        "p99, ms",
        "IQR, ms",
        "deviation, ms",
    ];
    let name = format!("classes-{}", measured.title.replace(' ', "-"));
    let title = format!("Turnaround and its jitter by class, {}", measured.title);
    let mut table = Table::new(&name, &title, &columns);
    for class in [Class::Ls, Class::Ld] {
        for run in &measured.runs {
            let all = of(measured, run, |own, _| own == Some(class));
            table.push(vec![
                format!("{class}, {}", run.label()),
                all.len().to_string(),
                ms(mean(&all)),
                ms(at(&all, 500)),
                ms(at(&all, 990)),
                ms(at(&all, 750) - at(&all, 250)),
                ms(deviation(&all).unwrap_or(f64::NAN)),
            ]);
        }
    }
    table
}

/// Mean turnaround of each application under each scheduler.
fn applications(measured: &Measured) -> Table {
    let class = |class: Option<Class>| class.map_or("-".into(), |class| class.to_string());
    let functions: BTreeSet<(String, &str)> = measured
        .trace
        .iter()
        .map(|one| (class(one.class), one.function.as_str()))
        .collect();
    let labels: Vec<String> = measured
        .runs
        .iter()
        .map(|run| format!("{}, ms", run.label()))
        .collect();
    let mut columns = vec!["application", "class", "invocations"];
    columns.extend(labels.iter().map(String::as_str));
    let name = format!("applications-{}", measured.title.replace(' ', "-"));
    let title = format!("Mean turnaround by application, {}", measured.title);
    let mut table = Table::new(&name, &title, &columns);
    for (class, function) in functions {
        let own = measured.trace.iter().filter(|one| one.function == function);
        let mut cells = vec![function.to_string(), class, own.count().to_string()];
        let value = |run| ms(mean(&of(measured, run, |_, found| found == function)));
        cells.extend(measured.runs.iter().map(value));
        table.push(cells);
    }
    table
}
