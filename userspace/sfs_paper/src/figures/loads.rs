//! SFS compared with the default over loads: turnaround, run-time
//! effectiveness, percentiles, and the headline.

use super::{at, distribution, mean, ratio, share, suffix, turnaround_chart, turnaround_table};
use super::{Drawn, Figure, LOADS};
use crate::chart::{Chart, Series};
use crate::data::{Measured, Run};
use crate::plan::{row, Setting, Size};
use crate::table::{factor, ms, percent, Table};
use faas_data::measure::Measure;
use faas_data::stats::sorted;

const SPLIT: &str =
    "SFS paper, 16 vCPU, load 1.0, 10,000 requests: the shortest 83 % finish 49.6x \
                     faster than under CFS on average, the longest 17 % take 1.29x as long";

fn over_loads(size: Size) -> Vec<Setting> {
    let rows = ["eevdf", "scx_sfs", "srtf", "ideal"].map(row);
    let setting = |load| Setting::table1(size, load, &rows);
    LOADS.into_iter().map(setting).collect()
}

/// The headline at full size.
pub const HEADLINE: Figure = Figure {
    id: "headline",
    title: "The headline: short and long functions at load 1.0",
    published: &[SPLIT],
    settings: |size| {
        let rows = ["eevdf", "scx_sfs", "ps", "sfs", "srtf", "ideal"].map(row);
        let mut setting = Setting::table1(size, 1.0, &rows);
        setting.name = "headline".to_string();
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
            notes: vec![
                "The baseline differs: CFS placed a new process a slice behind the others (START_DEBIT), EEVDF gives it \
                 half a slice as its first deadline (PLACE_DEADLINE_INITIAL), so that a short function waits less."
                    .into(),
            ],
        })
    },
    needs_traces: false,
};

/// SFS's figure 6.
pub const FIGURE_6: Figure = Figure {
    id: "6",
    title: "Turnaround under EEVDF and scx_sfs, loads 0.5 to 1.0",
    published: &[
        "SFS paper: at load 0.5 SFS and CFS are almost the same; from 0.65 on SFS is ahead for \
         83 % of the requests",
    ],
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
    published: &[
        "SFS paper: RTE of 0.95 or more for 93 % / 88 % of the requests at load 0.65 / 0.8, under \
         CFS for 55 % / 35 %",
    ],
    settings: over_loads,
    draw: |measured, _| {
        let columns = ["load", "scheduler", "mean", "0.95 or more", "below 0.2"];
        let mut table = Table::new("rte", "Run-time effectiveness", &columns);
        let mut drawn = Drawn::default();
        for (one, load) in measured.iter().zip(LOADS) {
            for run in &one.runs {
                let values = effectiveness(run);
                let cells = [
                    format!("{load:?}"),
                    run.label(),
                    ms(mean(&values)),
                    percent(share(&values, |value| value >= 0.95)),
                    percent(share(&values, |value| value < 0.2)),
                ];
                table.push(cells.to_vec());
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
    published: &[SPLIT],
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

/// RTE of each invocation.
fn effectiveness(run: &Run) -> Vec<f64> {
    run.measures.iter().map(Measure::rte).collect()
}

/// Gains of short functions and losses of long ones, scx_sfs compared with
/// EEVDF.
fn gains(measured: &[Measured]) -> Table {
    let columns = [
        "setting",
        "short, EEVDF, ms",
        "short, scx_sfs, ms",
        "faster",
        "long, EEVDF, ms",
        "long, scx_sfs, ms",
        "as long",
    ];
    let mut table = Table::new("gains", "scx_sfs against EEVDF, means", &columns);
    for one in measured {
        let (Some(base), Some(own)) = (one.run("eevdf"), one.run("scx_sfs")) else {
            continue;
        };
        let (short, long) = (|run| one.short_ms(run), |run| one.long_ms(run));
        let cell = |values: Vec<f64>| ms(mean(&values));
        table.push(vec![
            one.title.clone(),
            cell(short(base)),
            cell(short(own)),
            factor(ratio(&short(base), &short(own))),
            cell(long(base)),
            cell(long(own)),
            factor(ratio(&long(own), &long(base))),
        ]);
    }
    table
}
