//! FaaSched's mix: latency-sensitive and latency-desirable applications, and the
//! jitter of each class.

use super::{distribution, Drawn, Figure};
use crate::data::{turnarounds_ms, Measured, Run};
use crate::plan::{row, Setting, Source};
use crate::stats::{deviation, mean, quantile, sorted};
use crate::table::{ms, Table};

/// The mix.
pub const FIGURE: Figure = Figure {
    id: "faasched",
    title: "FaaSched's mix: five latency-sensitive and five latency-desirable applications",
    published: &[
        "FaaSched's abstract (arXiv 2303.06473), on its own service times and rates: for LS 50.31 % less variance of \
         the response time and 27.4 % less mean latency, for LD 19.88 % more",
    ],
    settings: |size| {
        vec![Setting {
            name: "classes-load0.90".into(),
            title: "load 0.9".into(),
            source: Source::Generated {
                workload: "classes",
                load: 0.9,
                scale: 1.0,
                options: String::new(),
            },
            rows: ["eevdf", "fifo", "rr", "scx_sfs", "srtf"].map(row).to_vec(),
            invocations: size.invocations,
            cpus: size.cpus,
        }]
    },
    draw: |measured, _| Ok(draw(&measured[0])),
    needs_traces: false,
};

/// Turnarounds of a class in order, in milliseconds.
fn of_class(measured: &Measured, run: &Run, class: &str) -> Vec<f64> {
    let has =
        |id: usize| measured.trace.get(id).and_then(|one| one.class.as_deref()) == Some(class);
    sorted(turnarounds_ms(run, |one| has(one.id)))
}

fn draw(measured: &Measured) -> Drawn {
    let columns = [
        "class",
        "scheduler",
        "invocations",
        "mean, ms",
        "p50, ms",
        "p99, ms",
        "IQR, ms",
        "deviation, ms",
    ];
    let mut table = Table::new("classes", "Turnaround and its jitter by class", &columns);
    let mut drawn = Drawn::default();
    for class in ["LS", "LD"] {
        for run in &measured.runs {
            let all = of_class(measured, run, class);
            let at = |share| quantile(&all, share);
            let or_none = |value: f64| ms(if all.is_empty() { f64::NAN } else { value });
            table.push(vec![
                class.to_string(),
                run.label(),
                all.len().to_string(),
                or_none(mean(&all)),
                ms(at(0.5)),
                ms(at(0.99)),
                ms(at(0.75) - at(0.25)),
                or_none(deviation(&all)),
            ]);
        }
        let title = format!("Turnaround of {class}, {}", measured.title);
        let values = |run: &Run| of_class(measured, run, class);
        drawn.charts.push(distribution(
            class,
            &title,
            "turnaround, ms",
            &measured.runs,
            values,
        ));
    }
    drawn.tables.push(table);
    drawn.notes.push(
        "The applications' service times and rates are ours, the paper's were not to be had (docs/workloads.md): \
         nothing here can be set against the paper's figures."
            .into(),
    );
    drawn
}
