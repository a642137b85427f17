//! Context switches per invocation.

use super::{at, mean, openlambda, share, Drawn, Figure};
use crate::chart::{cdf, Chart, Series};
use crate::data::{Measured, Run};
use crate::metric::{switch_ratios, switches};
use crate::plan::{row, Setting};
use crate::table::{factor, ms, percent, Table};
use faas_data::stats::sorted;

/// The loads of that figure.
const LOADS: [f64; 2] = [0.8, 1.0];

/// SFS's figure 16.
pub const FIGURE_16: Figure = Figure {
    id: "16",
    title: "Context switches of an invocation under EEVDF / under scx_sfs, loads 0.8 and 1.0",
    settings: |size| {
        let setting = |load| openlambda::setting(size, load);
        LOADS.into_iter().map(setting).collect()
    },
    draw: |measured, _| Ok(draw(measured)),
    needs_traces: false,
};

/// The same for the SFS paper's Table I, load 1.0.
pub const SWITCHES: Figure = Figure {
    id: "switches",
    title: "Context switches of an invocation under EEVDF / under scx_sfs, Table I, load 1.0",
    settings: |size| vec![Setting::table1(size, 1.0, &["eevdf", "scx_sfs"].map(row))],
    draw: |measured, _| Ok(draw(measured)),
    needs_traces: false,
};

fn draw(measured: &[Measured]) -> Drawn {
    let columns = [
        "setting",
        "mean under EEVDF",
        "mean under scx_sfs",
        "median ratio",
        "ratio above 1",
        "ratio 10 or more",
    ];
    let title = "Switches of an invocation, involuntary and voluntary";
    let mut table = Table::new("switches", title, &columns);
    let mut drawn = Drawn::default();
    for one in measured {
        let (Some(base), Some(own)) = (one.run("eevdf"), one.run("scx_sfs")) else {
            continue;
        };
        let ratios = sorted(switch_ratios(base, own));
        let of = |run: &Run| ms(mean(&run.completed().map(switches).collect::<Vec<_>>()));
        table.push(vec![
            one.title.clone(),
            of(base),
            of(own),
            factor(at(&ratios, 500)),
            percent(share(&ratios, |ratio| ratio > 1.0)),
            percent(share(&ratios, |ratio| ratio >= 10.0)),
        ]);
        let name = one.title.replace(' ', "-");
        drawn.charts.push(chart(&name, &one.title, &ratios));
    }
    drawn.tables.push(table);
    drawn
}

fn chart(name: &str, title: &str, ratios: &[f64]) -> Chart {
    Chart {
        name: name.into(),
        title: format!("Switches under EEVDF / under scx_sfs, {title}"),
        x: "ratio".into(),
        y: "share of the invocations".into(),
        log_x: true,
        series: vec![Series {
            name: "EEVDF / scx_sfs".into(),
            points: cdf(ratios),
        }],
    }
}
