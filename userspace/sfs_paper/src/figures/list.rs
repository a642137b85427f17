//! SFS's own list of requests, with the factors on its arrivals that the
//! paper's appendix has.

use super::loads::gains_of;
use super::{turnaround_chart, turnaround_table, Drawn, Figure};
use crate::data::Measured;
use crate::plan::{row, Setting, Size};
use crate::table::{ms, Table};
use faas_data::trace::offered_load;

/// The factors: "we evaluate the performance under an IAT ratio from 7 to 13".
const MULTIPLIERS: [u32; 7] = [7, 8, 9, 10, 11, 12, 13];

/// The list under the live schedulers: a figure for each factor, since each
/// takes an hour or more at full size.
pub const LIVE: [Figure; 7] = [
    live("list-7", "SFS's own list, arrivals x 7", |size| {
        one(size, 7)
    }),
    live("list-8", "SFS's own list, arrivals x 8", |size| {
        one(size, 8)
    }),
    live("list-9", "SFS's own list, arrivals x 9", |size| {
        one(size, 9)
    }),
    live("list-10", "SFS's own list, arrivals x 10", |size| {
        one(size, 10)
    }),
    live("list-11", "SFS's own list, arrivals x 11", |size| {
        one(size, 11)
    }),
    live("list-12", "SFS's own list, arrivals x 12", |size| {
        one(size, 12)
    }),
    live("list-13", "SFS's own list, arrivals x 13", |size| {
        one(size, 13)
    }),
];

const fn live(id: &'static str, title: &'static str, settings: fn(Size) -> Vec<Setting>) -> Figure {
    Figure {
        id,
        title,
        settings,
        draw: |measured, _| Ok(draw(measured, ("eevdf", "EEVDF"), ("scx_sfs", "scx_sfs"))),
        needs_traces: true,
    }
}

fn one(size: Size, multiplier: u32) -> Vec<Setting> {
    vec![Setting::list(size, multiplier, &LIVE_ROWS.map(row))]
}

/// The rows of the live figures.
const LIVE_ROWS: [&str; 2] = ["eevdf", "scx_sfs"];

/// The list in simulation, which has no overhead and no other scheduler's
/// peculiarities.
pub const SIMULATED: Figure = Figure {
    id: "list-simulated",
    title: "SFS's own list, arrivals x 7 to 13, simulated",
    settings: |size| {
        let rows = ["ps", "sfs", "sfs-no-hybrid", "srtf", "ideal"].map(row);
        let setting = |multiplier| {
            let mut setting = Setting::list(size, multiplier, &rows);
            // A folder of its own, so that it can be made without a VM.
            setting.name += "-simulated";
            setting
        };
        MULTIPLIERS.into_iter().map(setting).collect()
    },
    draw: |measured, _| {
        let names = (("ps", "processor sharing"), ("sfs", "the paper's policy"));
        Ok(draw(measured, names.0, names.1))
    },
    needs_traces: true,
};

fn draw(measured: &[Measured], base: (&str, &str), own: (&str, &str)) -> Drawn {
    let mut drawn = Drawn::default();
    let mut loads = Table::new("loads", "Offered load", &["setting", "of 12 CPUs", "of 16"]);
    for one in measured {
        let load = |cpus| offered_load(&one.trace, cpus).map_or("-".into(), ms);
        loads.push(vec![one.title.clone(), load(12), load(16)]);
    }
    drawn.tables.push(loads);
    drawn.tables.push(gains_of(measured, base, own));
    for one in measured {
        drawn.tables.push(turnaround_table(&one.title, one));
        drawn.charts.push(turnaround_chart(&one.title, one));
    }
    drawn
}
