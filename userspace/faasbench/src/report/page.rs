//! The page: one file of HTML with everything in it.

use super::svg::escape;
use super::{charts, is_simulated, label, table, words, Comparison};
use crate::summary::Summary;
use std::fmt::Write;

/// Colours: those of Okabe and Ito that keep their contrast on white and on
/// dark, and grey for the baseline.
const STYLE: &str = "\
:root { color-scheme: light dark; --fg: #1b1f24; --dim: #59636e; --bg: #ffffff; \
--grid: #d8dee4; --stripe: #f6f8fa; --warn: #9a3412; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6edf3; --dim: #9198a1; --bg: #0d1117; \
--grid: #30363d; --stripe: #151b23; --warn: #fdba74; } }
body { color: var(--fg); background: var(--bg); margin: 2rem auto; max-width: 80rem; \
padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.facts, .notes, figcaption { color: var(--dim); } .warn { color: var(--warn); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid var(--grid); }
th, td { white-space: nowrap; } th { font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
tbody tr:nth-child(even) { background: var(--stripe); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); \
gap: 1rem 2rem; }
figure { margin: 0; } .bars { max-width: 46rem; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--fg); font: 13px system-ui, sans-serif; }
svg text.tick { fill: var(--dim); } svg text.value { font-size: 12px; }
.grid { stroke: var(--grid); } .axis { stroke: var(--fg); }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.base { stroke: #868e96; stroke-width: 3.5; }
.c0 { stroke: #0072b2; } .c1 { stroke: #d55e00; } .c2 { stroke: #009e73; }
.c3 { stroke: #cc79a7; } .c4 { stroke: #56b4e9; } .c5 { stroke: #e69f00; }
.d1 { stroke-dasharray: 8 4; } .d2 { stroke-dasharray: 2 4; }
rect.short, .key.short { fill: #0072b2; } rect.long, .key.long { fill: #e69f00; }
@media (prefers-color-scheme: dark) { .c0 { stroke: #3a9bdc; } rect.short { fill: #3a9bdc; } }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0; \
margin: .5rem 0; }
ul.legend svg { width: 34px; height: 12px; display: inline-block; margin-right: .4rem; }
";

/// What the words of the table mean.
const NOTES: &str = "Turnaround is the time from arrival to completion; slowdown is turnaround / \
uncontended duration (service time, and the time blocked if any), RTE its inverse. Short are the \
shortest 83 % by service time. Percentiles are by nearest rank. Involuntary switches are means for \
one invocation. Simulated rows are served by sfs_sim on the same trace, without any overhead, and no \
kernel. Failed invocations are in no other number.";

/// The page for a comparison.
pub fn html(comparison: &Comparison) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.push_str("<title>faasbench report</title>\n");
    // Writing to a String cannot fail, here and below.
    let _ = write!(page, "<style>\n{STYLE}</style>\n");
    page.push_str("<h1>Schedulers for functions, compared</h1>\n");
    let live = comparison.rows.iter().find(|row| !is_simulated(row));
    if let Some(first) = live.or(comparison.rows.first()) {
        let _ = writeln!(page, "<p class=\"facts\">{}</p>", escape(&facts(first)));
    }
    if let Some(mismatch) = comparison.mismatch() {
        let _ = writeln!(page, "<p class=\"warn\">{}</p>", escape(&mismatch));
    }
    write_table(&mut page, &table::COLUMNS, &table::rows(comparison));
    let mismatch = comparison.mismatch();
    let said = words::sentences(comparison);
    for sentence in said.iter().filter(|said| Some(*said) != mismatch.as_ref()) {
        let _ = writeln!(page, "<p>{}</p>", escape(sentence));
    }
    write_plots(&mut page, comparison);
    page.push_str("<h2>More numbers</h2>\n");
    write_table(
        &mut page,
        &table::MORE_COLUMNS,
        &table::more_rows(comparison),
    );
    let _ = writeln!(page, "<p class=\"notes\">{NOTES}</p>\n</html>");
    page
}

fn facts(row: &Summary) -> String {
    let trace = &row.trace;
    let load = trace
        .offered_load
        .map_or_else(String::new, |load| format!(" at offered load {load:.3}"));
    format!(
        "Trace {} ({} invocations{load}, sha256 {}) on {} CPUs, kernel {}, machine: {}.",
        trace.name,
        trace.invocations,
        trace.sha256.get(..12).unwrap_or(&trace.sha256),
        trace.cpus,
        row.kernel,
        row.accel,
    )
}

fn write_table<const N: usize>(page: &mut String, columns: &[&str; N], rows: &[[String; N]]) {
    page.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    for column in columns {
        let _ = write!(page, "<th>{}</th>", escape(column).replace('\n', "<br>"));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for cell in row {
            let _ = write!(page, "<td>{}</td>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn write_plots(page: &mut String, comparison: &Comparison) {
    if comparison.rows.iter().all(|row| row.cdf.is_none()) {
        return;
    }
    page.push_str("<h2>Distributions</h2>\n");
    write_legend(page, comparison);
    page.push_str("<div class=\"plots\">\n");
    let _ = write!(
        page,
        "<figure>\n{}</figure>\n",
        charts::turnaround(comparison)
    );
    let _ = write!(
        page,
        "<figure>\n{}</figure>\n",
        charts::slowdown(comparison)
    );
    page.push_str("</div>\n");
    if let Some(bars) = charts::relative(comparison) {
        page.push_str("<h2>Short and long functions</h2>\n<ul class=\"legend\">\n");
        for class in ["short", "long"] {
            let key = format!("<rect class=\"{class}\" width=\"34\" height=\"12\"/>");
            let _ = writeln!(
                page,
                "<li><svg viewBox=\"0 0 34 12\">{key}</svg>{class}</li>"
            );
        }
        let _ = write!(page, "</ul>\n<figure class=\"bars\">\n{bars}</figure>\n");
    }
}

fn write_legend(page: &mut String, comparison: &Comparison) {
    page.push_str("<ul class=\"legend\">\n");
    for (index, row) in comparison.rows.iter().enumerate() {
        if row.cdf.is_none() {
            continue;
        }
        let class = charts::classes(comparison, index);
        let key = format!("<line class=\"{class}\" x1=\"1\" y1=\"6\" x2=\"33\" y2=\"6\"/>");
        let name = escape(&label(row));
        let _ = writeln!(
            page,
            "<li><svg viewBox=\"0 0 34 12\">{key}</svg>{name}</li>"
        );
    }
    page.push_str("</ul>\n");
}
