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

/// The list under the live schedulers.
pub const LIVE: Figure = Figure {
    id: "list",
    title: "SFS's own list, arrivals x 7 to 13",
    settings: |size| over(size, &["eevdf", "scx_sfs"]),
    draw: |measured, _| Ok(draw(measured, ("eevdf", "EEVDF"), ("scx_sfs", "scx_sfs"))),
    needs_traces: true,
};

/// The list in simulation, which has no overhead and no other scheduler's
/// peculiarities.
pub const SIMULATED: Figure = Figure {
    id: "list-simulated",
    title: "SFS's own list, arrivals x 7 to 13, simulated",
    settings: |size| {
        let mut settings = over(size, &["ps", "sfs", "sfs-no-hybrid", "srtf", "ideal"]);
        for setting in &mut settings {
            // A folder of its own, so that it can be made without a VM.
            setting.name += "-simulated";
        }
        settings
    },
    draw: |measured, _| {
        let names = (("ps", "processor sharing"), ("sfs", "the paper's policy"));
        Ok(draw(measured, names.0, names.1))
    },
    needs_traces: true,
};

fn over(size: Size, rows: &[&'static str]) -> Vec<Setting> {
    let rows: Vec<_> = rows.iter().copied().map(row).collect();
    let setting = |multiplier| Setting::list(size, multiplier, &rows);
    MULTIPLIERS.into_iter().map(setting).collect()
}

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
