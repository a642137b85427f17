//! The page: one self-contained HTML file without scripts.

use super::svg::{escape, Picture};
use super::table::{self, Cell, Table};
use super::{charts, label, short_sha, style, words, Comparison};
use faas_data::summary::Summary;
use std::fmt::Write;

/// The style of the page; that of the pictures is in [`style`].
const STYLE: &str = "\
:root { color-scheme: light dark; --fg: #1b1f24; --dim: #59636e; --bg: #ffffff; \
--grid: #d8dee4; --stripe: #f6f8fa; --warn: #9a3412; }
* { box-sizing: border-box; }
body { color: var(--fg); background: var(--bg); margin: 1.5rem auto; max-width: 78rem; \
padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
p { max-width: 48rem; margin: .5rem 0; }
.facts, .notes, figcaption, caption, small { color: var(--dim); }
.warn { color: var(--warn); } p.reading { font-size: 1.05rem; }
.wide { overflow-x: auto; margin: .6rem 0 1.4rem; }
table { border-collapse: separate; border-spacing: 0; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0 0 .3rem; white-space: normal; }
caption span { position: sticky; left: 0; display: inline-block; max-width: min(48rem, 90vw); }
th, td { padding: .28rem .55rem; text-align: right; border-bottom: 1px solid var(--grid); \
white-space: nowrap; }
thead th { font-weight: 600; vertical-align: bottom; white-space: normal; min-width: 4.2rem; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--bg); \
font-weight: 500; }
tbody tr:nth-child(even) > * { background: var(--stripe); }
td small { display: inline-block; min-width: 2.9em; } th small { display: block; font-weight: 400; }
th svg.key, .legend svg { width: 34px; height: 12px; flex: none; }
th svg.key { display: inline-block; margin-right: .4rem; vertical-align: middle; }
@media (max-width: 40rem) { th svg.key { display: none; } table { font-size: 13px; } \
th, td { padding: .25rem .4rem; } }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; padding: 0; \
margin: .4rem 0 .6rem; }
.legend label { display: inline-flex; align-items: center; gap: .35rem; cursor: pointer; }
.legend input { margin: 0; accent-color: var(--dim); }
.plots { display: grid; gap: 1.2rem 1.4rem; margin: .6rem 0; \
grid-template-columns: repeat(auto-fill, minmax(min(100%, 20.5rem), 1fr)); }
.panels { display: grid; gap: .5rem .6rem; margin: .6rem 0; \
grid-template-columns: repeat(auto-fill, minmax(min(46%, 13.5rem), 1fr)); }
figure { margin: 0; } figcaption { font-size: 14px; }
.plots > figure > svg, .panels svg { width: 100%; max-width: 30rem; height: auto; display: block; }
";

/// Style for dark screens only.
const DARK: &str = "\
:root { --fg: #e6edf3; --dim: #9198a1; --bg: #0d1117; --grid: #30363d; --stripe: #151b23; \
--warn: #fdba74; }
";

/// Style for paper only.
const PRINT: &str = "\
@page { size: A4; margin: 12mm; }
body { max-width: none; margin: 0; padding: 0; font-size: 9.5pt; }
.wide { overflow: visible; margin-bottom: .8rem; } table { font-size: 7pt; width: 100%; }
th, td { padding: .1rem .22rem; } thead th { min-width: 0; }
th:first-child, caption span { position: static; } td small { min-width: 0; }
table.many { font-size: 6pt; } table.many th, table.many td { padding: .1rem .12rem; }
.legend input, .screen { display: none; }
.plots { grid-template-columns: repeat(2, 1fr); } .panels { grid-template-columns: repeat(4, 1fr); }
figure, tr, .reading { break-inside: avoid; } h2, caption { break-after: avoid; }
";

/// Tables with more columns than this have smaller text on paper.
const MANY_COLUMNS: usize = 9;

/// Definitions of the terms.
const NOTES: &str = "Turnaround is the time from arrival to completion, queue delay that from \
arrival to the first run. Slowdown is turnaround / uncontended duration (service time, and the time \
blocked if any); RTE, run-time effectiveness, is its inverse. Short invocations are the shortest \
83 % by service time. Percentiles are exact, by nearest rank. Jitter is given as interquartile range \
(IQR) and variance. Switches are means per invocation; CPU / service is the mean of CPU time used / \
service time. Arrival lag is the delay that the benchmark itself caused; a row is marked late if that \
is more than 1 % of the mean turnaround of the short ones. Simulated rows come from sfs_sim on the \
same trace, without overhead and without a kernel. Failed invocations are counted, and excluded from \
all other numbers.";

/// The page for a comparison.
pub fn html(comparison: &Comparison) -> String {
    let mut page =
        String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        page,
        "<title>{}</title>\n<style>\n{}</style>\n",
        title(comparison),
        css(comparison)
    );
    page.push_str("</head>\n<body>\n<main>\n<h1>Schedulers for functions, compared</h1>\n");
    let live = comparison.rows.iter().find(|row| !row.is_simulated());
    if let Some(first) = live.or(comparison.rows.first()) {
        let _ = writeln!(page, "<p class=\"facts\">{}</p>", escape(&facts(first)));
    }
    for warning in words::warnings(comparison) {
        let _ = writeln!(
            page,
            "<p class=\"warn\"><strong>Note:</strong> {}</p>",
            escape(&warning)
        );
    }
    let reading = words::reading(comparison);
    if !reading.is_empty() {
        let _ = writeln!(
            page,
            "<p class=\"reading\">{}</p>",
            escape(&reading.join(" "))
        );
    }
    write_table(&mut page, &table::main(comparison), comparison);
    write_distributions(&mut page, comparison);
    write_ratios(&mut page, comparison);
    write_panels(&mut page, charts::by_service(comparison), comparison);
    write_over_time(&mut page, comparison);
    write_numbers(&mut page, comparison);
    let _ = write!(
        page,
        "<h2>Definitions</h2>\n<p class=\"notes\">{NOTES}</p>\n</main>\n</body>\n</html>\n"
    );
    page
}

fn title(comparison: &Comparison) -> String {
    let trace = comparison.rows.first().map(|row| row.trace.name.as_str());
    format!("faasbench report: {}", escape(trace.unwrap_or_default()))
}

fn css(comparison: &Comparison) -> String {
    let mut css = format!("{STYLE}{}{}", style::shapes(), style::pictures(false));
    let dark = format!("{DARK}{}", style::pictures(true));
    let _ = write!(
        css,
        "@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"
    );
    let _ = write!(
        css,
        "@media print {{\n:root {{ color-scheme: light; }}\n{PRINT}}}\n"
    );
    for index in 0..comparison.rows.len() {
        let _ = writeln!(
            css,
            "body:has(#s{index}:not(:checked)) .r{index} {{ display: none; }}"
        );
    }
    css
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
        short_sha(row),
        trace.cpus,
        row.kernel,
        row.accel,
    )
}

fn write_table(page: &mut String, table: &Table, comparison: &Comparison) {
    let many = if table.columns.len() > MANY_COLUMNS {
        " class=\"many\""
    } else {
        ""
    };
    let caption = escape(&table.caption);
    let _ = write!(
        page,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table{many}>\n\
         <caption><span>{caption}</span></caption>\n<thead><tr>"
    );
    for column in &table.columns {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escape(column));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    let pairs: Vec<bool> = (0..table.columns.len())
        .map(|column| table.rows.iter().any(|row| !row[column].small.is_empty()))
        .collect();
    for row in &table.rows {
        page.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            match index {
                0 => write_name(page, cell, comparison),
                _ => write_cell(page, cell, pairs[index]),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// The name of a row, with its key if it is a scheduler.
fn write_name(page: &mut String, cell: &Cell, comparison: &Comparison) {
    page.push_str("<th scope=\"row\">");
    let rows = charts::rows(comparison);
    if let Some(row) = cell.row.map(|index| &rows[index]) {
        page.push_str(&key(row, comparison));
    }
    page.push_str(&escape(&cell.text));
    if !cell.small.is_empty() {
        let _ = write!(
            page,
            "<small class=\"warn\">{}</small>",
            escape(&cell.small)
        );
    }
    page.push_str("</th>");
}

fn write_cell(page: &mut String, cell: &Cell, pair: bool) {
    let text = escape(&cell.text);
    let text = if cell.best {
        format!("<b>{text}</b>")
    } else {
        text
    };
    let small = match cell.small.as_str() {
        // Keep numbers aligned, with or without small print.
        "" if pair => " <small>&#160;</small>".to_string(),
        "" => String::new(),
        small => format!(" <small>{}</small>", escape(small)),
    };
    let _ = write!(page, "<td>{text}{small}</td>");
}

/// The key of a row; its meaning is beside it.
fn key(row: &charts::Row, comparison: &Comparison) -> String {
    format!(
        "<svg class=\"key\" viewBox=\"0 0 34 12\" aria-hidden=\"true\">{}</svg>",
        charts::key(row, comparison).content().trim_end()
    )
}

fn write_distributions(page: &mut String, comparison: &Comparison) {
    let pictures = [charts::turnaround, charts::slowdown, charts::rte];
    let pictures = pictures.map(|draw| draw(comparison));
    if pictures.iter().all(Option::is_none) {
        return;
    }
    page.push_str("<h2>Distributions</h2>\n");
    write_legend(page, comparison);
    page.push_str("<div class=\"plots\">\n");
    for picture in pictures.iter().flatten() {
        write_figure(page, picture, "");
    }
    page.push_str("</div>\n");
}

fn write_figure(page: &mut String, picture: &Picture, caption: &str) {
    let _ = write!(page, "<figure>\n{}", picture.inline());
    if !caption.is_empty() {
        let _ = writeln!(page, "<figcaption>{}</figcaption>", escape(caption));
    }
    page.push_str("</figure>\n");
}

/// The legend; each row can be hidden in the pictures.
fn write_legend(page: &mut String, comparison: &Comparison) {
    page.push_str("<ul class=\"legend\">\n");
    for row in charts::rows(comparison) {
        if row.summary.cdf.is_none() {
            continue;
        }
        let (index, name) = (row.index, escape(&label(row.summary)));
        let key = key(&row, comparison);
        let _ = writeln!(
            page,
            "<li><label><input type=\"checkbox\" id=\"s{index}\" checked>{key}{name}</label></li>"
        );
    }
    page.push_str("</ul>\n<p class=\"notes screen\">The boxes show and hide a scheduler in all pictures.</p>\n");
}

fn write_ratios(page: &mut String, comparison: &Comparison) {
    let relative = charts::relative(comparison);
    let switches = charts::switches(comparison);
    if relative.is_none() && switches.is_none() {
        return;
    }
    let base = comparison.base().map(label).unwrap_or_default();
    let _ = write!(
        page,
        "<h2>Against {}</h2>\n<div class=\"plots\">\n",
        escape(&base)
    );
    if let Some(picture) = relative {
        let caption = "Mean turnaround. Full colour: short invocations; pale: long ones. Left of 1 is faster.";
        write_figure(page, &picture, caption);
    }
    if let Some(picture) = switches {
        let caption = "Involuntary context switches for one invocation. Left of 1 is fewer.";
        write_figure(page, &picture, caption);
    }
    page.push_str("</div>\n");
}

fn write_panels(page: &mut String, panels: Option<charts::Panels>, comparison: &Comparison) {
    let Some(panels) = panels else { return };
    let _ = write!(
        page,
        "<h2>{}</h2>\n<p class=\"notes\">{}</p>\n<div class=\"panels\">\n",
        escape(&panels.title),
        escape(&panels.caption)
    );
    for (index, panel) in &panels.panels {
        debug_assert!(*index < comparison.rows.len());
        let _ = write!(
            page,
            "<figure class=\"r{index}\">\n{}</figure>\n",
            panel.inline()
        );
    }
    page.push_str("</div>\n");
}

fn write_over_time(page: &mut String, comparison: &Comparison) {
    if let Some(picture) = charts::slice(comparison) {
        let _ = write!(
            page,
            "<h2>{}</h2>\n<div class=\"plots\">\n",
            escape(&picture.title)
        );
        let caption = "Mean inter-arrival time (IAT) of the invocations that arrived in a stretch of \
                       time. S, where a scheduler says it, is recomputed from the last arrivals: mean \
                       IAT x CPUs. Shaded: fair-only mode.";
        write_figure(page, &picture, caption);
        page.push_str("</div>\n");
    }
    write_panels(page, charts::queue_delay(comparison), comparison);
}

fn write_numbers(page: &mut String, comparison: &Comparison) {
    page.push_str("<h2>Percentiles</h2>\n");
    for table in table::percentiles(comparison) {
        write_table(page, &table, comparison);
    }
    page.push_str("<h2>Groups and jitter</h2>\n");
    for table in table::groups(comparison) {
        write_table(page, &table, comparison);
    }
    if let Some(table) = table::functions(comparison) {
        page.push_str("<h2>Functions</h2>\n");
        write_table(page, &table, comparison);
    }
    let each = words::comparisons(comparison);
    if !each.is_empty() {
        page.push_str("<h2>One by one</h2>\n<ul>\n");
        for sentence in each {
            let _ = writeln!(page, "<li>{}</li>", escape(&sentence));
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<h2>Runs</h2>\n");
    write_table(page, &table::runs(comparison), comparison);
}
