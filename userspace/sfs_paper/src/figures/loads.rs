//! SFS compared with the default over loads: turnaround, run-time
//! effectiveness, percentiles, and the headline.

use super::{at, distribution, mean, ratio, share, suffix, turnaround_chart, turnaround_table};
use super::{Drawn, Figure, LOADS};
use crate::chart::{Chart, Series};
use crate::data::{Measured, Run};
use crate::metric::mean_of_ratios;
use crate::plan::{row, Setting, Size};
use crate::table::{factor, ms, percent, Table};
use faas_data::measure::Measure;
use faas_data::stats::sorted;

fn over_loads(size: Size) -> Vec<Setting> {
    let rows = ["eevdf", "scx_sfs", "srtf", "ideal"].map(row);
    let setting = |load| Setting::table1(size, load, &rows);
    LOADS.into_iter().map(setting).collect()
}

/// The headline at full size.
pub const HEADLINE: Figure = Figure {
    id: "headline",
    title: "The headline: short and long functions at load 1.0",
    settings: |size| {
        let rows = ["eevdf", "scx_sfs", "ps", "sfs", "srtf", "ideal"].map(row);
        let mut setting = Setting::table1(size, 1.0, &rows);
        setting.name = format!("{}-headline", size.table1);
        setting.invocations = size.headline;
        vec![setting]
    },
    draw: |measured, _| {
        Ok(Drawn {
            tables: vec![
                turnaround_table("turnaround", &measured[0]),
                gains(measured),
            ],
            charts: vec![turnaround_chart("turnaround", &measured[0])],
            notes: Vec::new(),
        })
    },
    needs_traces: false,
};

/// SFS's figure 6.
pub const FIGURE_6: Figure = Figure {
    id: "6",
    title: "Turnaround under EEVDF and scx_sfs, loads 0.5 to 1.0",
    settings: over_loads,
    draw: |measured, _| {
        let named = |measured: &[Measured]| {
            measured
                .iter()
                .zip(LOADS)
                .map(|(one, load)| (suffix(load), one.clone()))
                .collect::<Vec<_>>()
        };
        let mut drawn = Drawn::default();
        for (name, one) in named(measured) {
            drawn.charts.push(turnaround_chart(&name, &one));
        }
        drawn.tables.push(gains(measured));
        Ok(drawn)
    },
    needs_traces: false,
};

/// SFS's figure 7.
pub const FIGURE_7: Figure = Figure {
    id: "7",
    title: "Run-time effectiveness (uncontended duration / turnaround), loads 0.5 to 1.0",
    settings: over_loads,
    draw: |measured, _| {
        let mut table = Table::new("rte", "Run-time effectiveness", &EFFECTIVENESS);
        let mut drawn = Drawn::default();
        for (one, load) in measured.iter().zip(LOADS) {
            for run in &one.runs {
                table.push(effectiveness_row(load, run));
            }
            let title = format!("Run-time effectiveness, {}", one.title);
            let mut chart = distribution(&suffix(load), &title, "RTE", &one.runs, effectiveness);
            chart.log_x = false;
            drawn.charts.push(chart);
        }
        drawn.tables.push(table);
        drawn.notes.push(
            "Starting a process costs 0.5 to 1 ms of CPU time on emulated CPUs, 4 to 8 % of the \
             shortest function: an RTE of 0.95 is out of reach for these, whatever the scheduler."
                .into(),
        );
        Ok(drawn)
    },
    needs_traces: false,
};

/// SFS's figure 8.
pub const FIGURE_8: Figure = Figure {
    id: "8",
    title: "Percentiles of turnaround, loads 0.5 to 1.0",
    settings: over_loads,
    draw: |measured, _| {
        let mut drawn = Drawn::default();
        for (one, load) in measured.iter().zip(LOADS) {
            drawn.tables.push(turnaround_table(&suffix(load), one));
        }
        let p99 = |run: &Run| at(&sorted(run.turnarounds_ms(|_| true)), 990);
        drawn.charts.push(over(
            measured,
            "p99",
            "99th percentile of turnaround",
            |_, run| p99(run),
        ));
        drawn.charts.push(over(
            measured,
            "short",
            "Mean turnaround of the shortest 83 %",
            |one, run| mean(&one.short_ms(run)),
        ));
        Ok(drawn)
    },
    needs_traces: false,
};

/// One value per row and load.
fn over(
    measured: &[Measured],
    name: &str,
    title: &str,
    value: impl Fn(&Measured, &Run) -> f64,
) -> Chart {
    let names: Vec<String> = measured[0].runs.iter().map(Run::label).collect();
    let line = |(index, name): (usize, &String)| Series {
        name: name.clone(),
        points: measured
            .iter()
            .zip(LOADS)
            .map(|(one, load)| (load, value(one, &one.runs[index])))
            .collect(),
    };
    Chart {
        name: name.to_string(),
        title: title.to_string(),
        x: "load".to_string(),
        y: "ms".to_string(),
        log_x: false,
        series: names.iter().enumerate().map(line).collect(),
    }
}

/// The columns of [`effectiveness_row`].
pub const EFFECTIVENESS: [&str; 5] = ["load", "scheduler", "mean", "0.95 or more", "below 0.2"];

/// Run-time effectiveness of a row.
pub fn effectiveness_row(load: f64, run: &Run) -> Vec<String> {
    let values = effectiveness(run);
    vec![
        format!("{load:?}"),
        run.label(),
        ms(mean(&values)),
        percent(share(&values, |value| value >= 0.95)),
        percent(share(&values, |value| value < 0.2)),
    ]
}

/// RTE of each invocation.
pub fn effectiveness(run: &Run) -> Vec<f64> {
    run.measures.iter().map(Measure::rte).collect()
}

/// Gains of short functions and losses of long ones, scx_sfs compared with
/// EEVDF.
pub fn gains(measured: &[Measured]) -> Table {
    gains_of(measured, ("eevdf", "EEVDF"), ("scx_sfs", "scx_sfs"))
}

/// The same for two rows, each with its name and how tables call it: ratios of
/// means, and means of the ratios of single invocations.
pub fn gains_of(measured: &[Measured], base: (&str, &str), own: (&str, &str)) -> Table {
    let columns = [
        "setting",
        &format!("short, {}, ms", base.1),
        &format!("short, {}, ms", own.1),
        "faster, ratio of means",
        "faster, mean of ratios",
        &format!("long, {}, ms", base.1),
        &format!("long, {}, ms", own.1),
        "as long, ratio of means",
        "as long, mean of ratios",
    ];
    let title = format!("{} against {}, means", own.1, base.1);
    let mut table = Table::new("gains", &title, &columns);
    for one in measured {
        let (Some(base), Some(own)) = (one.run(base.0), one.run(own.0)) else {
            continue;
        };
        let (short, long) = (|run| one.short_ms(run), |run| one.long_ms(run));
        let cell = |values: Vec<f64>| ms(mean(&values));
        table.push(vec![
            one.title.clone(),
            cell(short(base)),
            cell(short(own)),
            factor(ratio(&short(base), &short(own))),
            factor(mean_of_ratios(one, base, own, true)),
            cell(long(base)),
            cell(long(own)),
            factor(ratio(&long(own), &long(base))),
            factor(mean_of_ratios(one, own, base, false)),
        ]);
    }
    table
}
