//! Context switches per invocation.

use super::{at, mean, share, Drawn, Figure};
use crate::chart::{cdf, Chart, Series};
use crate::data::{Measured, Run};
use crate::plan::{row, Setting};
use crate::table::{factor, ms, percent, Table};
use faas_data::result::Record;
use faas_data::stats::sorted;

/// SFS's figure 16.
pub const FIGURE_16: Figure = Figure {
    id: "16",
    title: "Context switches of an invocation under EEVDF / under scx_sfs, load 1.0",
    published: &[
        "SFS paper, OpenLambda, 72 cores: CFS makes 10x more switches for 85 % of the requests",
    ],
    settings: |size| vec![Setting::table1(size, 1.0, &["eevdf", "scx_sfs"].map(row))],
    draw: |measured, _| Ok(draw(&measured[0])),
    needs_traces: false,
};

/// All switches of an invocation; at least one, since it exits.
fn switches(one: &Record) -> f64 {
    (one.voluntary_switches + one.involuntary_switches).max(1) as f64
}

/// Switches under `base` per switch under `own`, of the invocations that
/// completed in both.
fn ratios(base: &Run, own: &Run) -> Vec<f64> {
    let pairs = base.records.iter().zip(&own.records);
    let both = pairs.filter(|(base, own)| base.completed().is_some() && own.completed().is_some());
    both.map(|(base, own)| switches(base) / switches(own))
        .collect()
}

fn draw(measured: &Measured) -> Drawn {
    let mut drawn = Drawn::default();
    let (Some(base), Some(own)) = (measured.run("eevdf"), measured.run("scx_sfs")) else {
        return drawn;
    };
    let ratios = sorted(ratios(base, own));
    let columns = [
        "",
        "mean under EEVDF",
        "mean under scx_sfs",
        "median ratio",
        "ratio 10 or more",
        "ratio below 1",
    ];
    let mut table = Table::new(
        "switches",
        "Switches of an invocation, involuntary and voluntary",
        &columns,
    );
    let means = [base, own].map(|run| ms(mean(&run.completed().map(switches).collect::<Vec<_>>())));
    let [before, now] = means;
    table.push(vec![
        "all".into(),
        before,
        now,
        factor(at(&ratios, 500)),
        percent(share(&ratios, |ratio| ratio >= 10.0)),
        percent(share(&ratios, |ratio| ratio < 1.0)),
    ]);
    drawn.tables.push(table);
    drawn.charts.push(Chart {
        name: "switches".into(),
        title: "Switches under EEVDF / under scx_sfs".into(),
        x: "ratio".into(),
        y: "share of the invocations".into(),
        log_x: true,
        series: vec![Series {
            name: "EEVDF / scx_sfs".into(),
            points: cdf(&ratios),
        }],
    });
    drawn
}
