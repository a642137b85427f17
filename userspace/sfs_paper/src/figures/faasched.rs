//! FaaSched's mix: latency-sensitive and latency-desirable applications, and the
//! jitter of each class.

use super::{at, distribution, mean, Drawn, Figure};
use crate::data::{Measured, Run};
use crate::plan::{row, Setting, Source};
use crate::table::{ms, Table};
use faas_data::stats::{deviation, sorted};
use faas_data::trace::Class;

/// FaaSched's mix.
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

/// Sorted turnarounds of a class, in milliseconds.
fn of_class(measured: &Measured, run: &Run, class: Class) -> Vec<f64> {
    sorted(run.turnarounds_ms(|one| measured.trace[one.id].class == Some(class)))
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
    for class in [Class::Ls, Class::Ld] {
        for run in &measured.runs {
            let all = of_class(measured, run, class);
            table.push(vec![
                class.to_string(),
                run.label(),
                all.len().to_string(),
                ms(mean(&all)),
                ms(at(&all, 500)),
                ms(at(&all, 990)),
                ms(at(&all, 750) - at(&all, 250)),
                ms(deviation(&all).unwrap_or(f64::NAN)),
            ]);
        }
        let title = format!("Turnaround of {class}, {}", measured.title);
        let values = |run: &Run| of_class(measured, run, class);
        drawn.charts.push(distribution(
            &class.to_string(),
            &title,
            "turnaround, ms",
            &measured.runs,
            values,
        ));
    }
    drawn.tables.push(table);
    drawn.notes.push(
        "The applications' service times and rates are ours, since the paper's are not available (docs/workloads.md): \
         these figures cannot be compared with the paper's."
            .into(),
    );
    drawn
}
