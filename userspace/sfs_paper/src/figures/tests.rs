//! Draws every figure from a small synthetic measurement.

use super::*;
use crate::metric::Metric;
use crate::plan::Source;
use faas_data::result::{Exit, Record};
use faas_data::summary::{summarise, SchedulerInfo, Setting as Ran, Status};
use faas_data::trace::{Class, Invocation, Trace};

const SIZE: Size = Size {
    invocations: 200,
    headline: 300,
    cpus: 4,
    seed: 1,
    list: None,
    table1: "table1",
};

/// Invocations of 10 ms, 1 ms apart, every fifth of 100 ms. Row k takes k + 1
/// times as long as uncontended.
fn measured(setting: &Setting) -> Measured {
    let invocation = |id: u64| Invocation {
        class: Some(if id % 5 == 4 { Class::Ld } else { Class::Ls }),
        ..Invocation::cpu(id * 1000, "0-1", if id % 5 == 4 { 100_000 } else { 10_000 })
    };
    let trace = Trace {
        name: "t".into(),
        sha256: "00".into(),
        invocations: (0..200).map(invocation).collect(),
    };
    let mut measured = Measured::new(setting, trace.invocations.clone());
    for (k, row) in setting.rows.iter().enumerate() {
        measured.runs.push(run(row.name, k as u64 + 1, &trace));
    }
    measured
}

fn run(name: &str, times: u64, trace: &Trace) -> Run {
    let record = |(id, one): (usize, &Invocation)| Record {
        id,
        function: one.function.clone(),
        arrival_us: one.arrival_us,
        start_us: Some(one.arrival_us + 5),
        end_us: Some(one.arrival_us + one.service_us() * times),
        cpu_us: one.service_us(),
        service_us: one.service_us(),
        voluntary_switches: 1,
        involuntary_switches: 19,
        exit: Exit::Code(0),
        runqueue_wait_us: None,
        alone_us: None,
    };
    let records: Vec<Record> = trace.invocations.iter().enumerate().map(record).collect();
    let ran = Ran {
        cpus: 4,
        scheduler: SchedulerInfo {
            name: name.to_string(),
            version: "1".into(),
            args: String::new(),
            status: Status::Ok,
            detail: String::new(),
        },
        kernel: "k".into(),
        accel: "icount".into(),
        sandbox: None,
    };
    let summary = summarise(trace, &records, &ran, &[]);
    Run::new(name, summary, records, &trace.invocations)
}

/// All figures that need no traces, drawn from the synthetic measurement.
fn drawn() -> Vec<(Figure, Drawn)> {
    let figures = all().into_iter().filter(|figure| !figure.needs_traces);
    let draw = |figure: Figure| {
        let settings = (figure.settings)(SIZE);
        let measured: Vec<Measured> = settings.iter().map(measured).collect();
        (
            figure,
            (figure.draw)(&measured, Path::new("/none")).unwrap(),
        )
    };
    figures.map(draw).collect()
}

/// The content of a figure: tables in full; for charts the title, the axes, and
/// for each series its name, number of points, first and last point.
fn text(figure: &Figure, drawn: &Drawn) -> String {
    let mut text = format!("figure {}: {}\n", figure.id, figure.title);
    for table in &drawn.tables {
        text += &format!("table {}: {}\n", table.name, table.title);
        text += &format!("  {}\n", table.columns.join(" | "));
        for row in &table.rows {
            text += &format!("  {}\n", row.join(" | "));
        }
    }
    for chart in &drawn.charts {
        let scale = if chart.log_x { "log" } else { "linear" };
        let (x, y) = (&chart.x, &chart.y);
        text += &format!(
            "chart {}: {}\n  {x} ({scale}) | {y}\n",
            chart.name, chart.title
        );
        for series in &chart.series {
            let point = |point: Option<&(f64, f64)>| {
                point.map_or("none".to_string(), |(x, y)| format!("({x:.3}, {y:.3})"))
            };
            let (first, last) = (point(series.points.first()), point(series.points.last()));
            let count = series.points.len();
            text += &format!("  {}: {count} points, {first} to {last}\n", series.name);
        }
    }
    text
}

/// `figures.txt` beside this file has the content of every figure. To change
/// it, copy what this test prints, and check it by hand: row k takes k + 1
/// times as long as uncontended.
#[test]
fn every_figure_can_be_drawn() {
    let texts: Vec<String> = drawn()
        .iter()
        .map(|(figure, drawn)| text(figure, drawn))
        .collect();
    let found = texts.join("\n");
    let wanted = include_str!("figures.txt");
    for (found, wanted) in found.lines().zip(wanted.lines()) {
        assert_eq!(found, wanted, "of all:\n{}", texts.join("\n"));
    }
    assert_eq!(found.len(), wanted.len(), "of all:\n{found}");
}

/// The lines of a picture: CSS class, number of points, name.
fn lines(svg: &str) -> Vec<(&str, usize, &str)> {
    let paths = svg.split("<path class=\"line").skip(1);
    paths
        .map(|path| {
            let (class, rest) = path.split_once("\" d=\"").unwrap();
            let (points, rest) = rest.split_once("\"><title>").unwrap();
            let name = rest.split_once("</title>").unwrap().0;
            (class, points.matches(['M', 'L']).count(), name)
        })
        .collect()
}

#[test]
fn every_chart_shows_its_axes_and_each_series_in_its_colour() {
    for (figure, drawn) in drawn() {
        for chart in &drawn.charts {
            let at = format!("{} {}", figure.id, chart.name);
            let svg = chart.svg().unwrap();
            let scale = if chart.log_x { " (log scale)" } else { "" };
            for part in [
                format!("<title>{}</title>", chart.title),
                format!(">{}{scale}</text>", chart.x),
                format!(">{}</text>", chart.y),
            ] {
                assert!(svg.contains(&part), "{at}: {part}: {svg}");
            }
            let lines = lines(&svg);
            assert_eq!(lines.len(), chart.series.len(), "{at}");
            for ((class, points, name), series) in lines.iter().zip(&chart.series) {
                assert_eq!(*name, series.name, "{at}");
                assert_eq!(*points, series.points.len(), "{at} {name}");
                assert!(
                    svg.contains(&format!(">{name}</text>")),
                    "{at} {name}: legend"
                );
                let scheduler = name.split(" (").next().unwrap();
                let colour = format!(" k{} ", faas_report::style::Style::of(scheduler).colour);
                assert!(class.contains(&colour), "{at} {name}: {class}");
            }
        }
    }
}

#[test]
fn the_same_folder_is_the_same_setting() {
    // Figures share folders: the content must not depend on the order of the
    // figures.
    let mut seen: Vec<Setting> = Vec::new();
    let mut ids = Vec::new();
    for figure in all() {
        assert!(!ids.contains(&figure.id), "{}", figure.id);
        ids.push(figure.id);
        for setting in (figure.settings)(SIZE) {
            for other in seen.iter().filter(|other| other.name == setting.name) {
                assert_eq!(other.source, setting.source, "{}", setting.name);
                assert_eq!(other.invocations, setting.invocations);
                for row in &setting.rows {
                    let same = other.rows.iter().find(|other| other.name == row.name);
                    assert!(same.is_none_or(|same| same == row), "{}", row.name);
                }
            }
            seen.push(setting);
        }
    }
}

#[test]
fn loads_reach_bench_unchanged() {
    let loads = (loads::FIGURE_6.settings)(SIZE);
    let load = |setting: &Setting| match setting.source {
        Source::Generated { load, .. } => load,
        Source::Fc { .. } | Source::List { .. } => unreachable!(),
    };
    let found: Vec<f64> = loads.iter().map(load).collect();
    assert_eq!(found, LOADS);
}

#[test]
fn short_and_long_agree_with_the_summary() {
    let setting = &(loads::HEADLINE.settings)(SIZE)[0];
    let one = measured(setting);
    // A fifth is long, more than 17 %: 166 of 200 are short, the 160 of 10 ms
    // and the first six of the equal ones of 100 ms.
    assert_eq!(one.short.iter().filter(|short| **short).count(), 166);
    let run = &one.runs[1];
    // Twice as long as uncontended: (160 x 20 + 6 x 200) / 166 = 26.5
    let cells = turnaround_row(&one, run);
    assert_eq!(cells[..4], ["scx_sfs", "56.0", "26.5", "200"]);
    let mean = |stats: Option<stats::Stats>| ms(stats.unwrap().mean);
    assert_eq!(mean(run.summary.turnaround_ms), cells[1]);
    assert_eq!(mean(run.summary.short.turnaround_ms), cells[2]);
    assert_eq!(mean(run.summary.long.turnaround_ms), cells[3]);
}

#[test]
fn single_numbers_are_computed_as_they_are_named() {
    let one = [measured(&(loads::HEADLINE.settings)(SIZE)[0])];
    let value = |text: &str| Metric::parse(text).unwrap().value(&one);
    // Rows in order take 1 to 6 times as long: eevdf, scx_sfs, ps, sfs, srtf, ideal.
    let cases = [
        ("mean scx_sfs load 1.0", "56.0 ms"),
        ("short eevdf/scx_sfs load 1.0", "0.50x"),
        ("short-each ps/eevdf load 1.0", "3.00x"),
        ("long-each scx_sfs/eevdf load 1.0", "2.00x"),
        ("LS-mean ps load 1.0", "30.0 ms"),
        ("LD-mean ps/eevdf load 1.0", "3.00x"),
        ("LS-variance eevdf load 1.0", "0.0000 s^2"),
        ("p50 scx_sfs load 1.0", "20.0 ms"),
        ("p99.9 ideal load 1.0", "600 ms"),
        ("slowdown-p99 srtf load 1.0", "5.00"),
        ("rte-0.95 eevdf load 1.0", "100.0 %"),
        ("rte-below-0.2 ideal load 1.0", "100.0 %"),
        ("each-p40 ps/eevdf load 1.0", "3.00x"),
        ("sooner eevdf/ps load 1.0", "100.0 %"),
        ("more-switches eevdf/scx_sfs load 1.0", "0.0 %"),
        ("ten-times-switches eevdf/scx_sfs load 1.0", "0.0 %"),
    ];
    for (text, want) in cases {
        assert_eq!(value(text).as_deref(), Some(want), "{text}");
    }
    assert_eq!(value("mean scx_sfs load 0.5"), None);
    assert_eq!(value("mean scx_lavd load 1.0"), None);
}

#[test]
fn failures_are_in_no_figure() {
    let setting = &(loads::HEADLINE.settings)(SIZE)[0];
    let clean = measured(setting);
    let mut failed = clean.clone();
    for run in &mut failed.runs {
        for record in run.records.iter_mut().filter(|record| record.id % 2 == 1) {
            // With both times, as for a function that crashed at its end.
            record.exit = Exit::Signal(9);
            record.end_us = Some(record.arrival_us + 1_000_000_000);
            record.involuntary_switches = 1_000_000;
        }
        *run = Run::new(
            &run.name,
            run.summary.clone(),
            run.records.clone(),
            &failed.trace,
        );
    }
    // The even half has the same mix as the whole: 80 of 10 ms, 20 of 100 ms.
    let all = |one: &Measured| turnaround_row(one, &one.runs[1])[1].clone();
    assert_eq!(all(&failed), all(&clean));
    for figure in [&loads::FIGURE_7, &switches::FIGURE_16, &overload::FIGURE_12] {
        let settings = (figure.settings)(SIZE);
        let draw = |change: fn(&mut Run)| {
            let mut measured: Vec<Measured> = settings.iter().map(measured).collect();
            for one in &mut measured {
                one.runs.iter_mut().for_each(change);
                for run in &mut one.runs {
                    *run = Run::new(
                        &run.name,
                        run.summary.clone(),
                        run.records.clone(),
                        &one.trace,
                    );
                }
            }
            (figure.draw)(&measured, Path::new("/none")).unwrap()
        };
        let ends_late = draw(|run| {
            run.records[7].exit = Exit::Code(1);
            run.records[7].end_us = Some(9_000_000_000);
            run.records[7].start_us = Some(8_000_000_000);
            run.records[7].voluntary_switches = 1_000_000;
        });
        let has_no_times = draw(|run| {
            run.records[7].exit = Exit::Code(1);
            run.records[7].end_us = None;
            run.records[7].start_us = None;
        });
        assert_eq!(ends_late, has_no_times, "{}", figure.id);
    }
}
