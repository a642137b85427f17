//! A plan, a file and what follows from it, in words.

use crate::analysis::{Finding, Line, Said};
use crate::conduct::deadline;
use crate::counters::Counts;
use crate::file::Trial;
use crate::guard::LATE;
use crate::plan::{Plan, Row};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use std::fmt::Write;

/// Shown in place of what is not known.
const NONE: &str = "-";

/// The plan.
pub fn plan(plan: &Plan) -> String {
    let mut text = format!(
        "Plan (seed {}): {} blocks, about {} minutes, on all CPUs.\n\
         Each block replays one trace of Table I of the SFS paper, whose arrivals last about\n\
         {} s, under four rows in an order that the seed draws. Loads are shares of the\n\
         capacity that is measured first.\n\n",
        plan.seed,
        plan.blocks.len(),
        (plan.seconds() / 60.0).ceil(),
        plan.span_s
    );
    let mut table = table(&["block", "load", "trace's seed", "order of the rows"], 3);
    for (number, block) in (1..).zip(&plan.blocks) {
        let order = block.order.map(Row::name).join(", ");
        table.add_row([
            format!("{number}"),
            format!("{}", block.load),
            format!("{}", block.seed),
            order,
        ]);
    }
    text += &lines(&table);
    let _ = write!(
        text,
        "\nIt starts processes that use the CPUs to these loads, loads scx_sfs without options\n\
         (row scx_sfs) or starts a daemon that renices the trial's own processes (row renice),\n\
         and leaves the kernel's own scheduler behind. It changes no settings. A guard, which\n\
         is independent of this session, ends all of it if the trial dies, if its heartbeat is\n\
         {} s late, or after {} minutes.\n",
        LATE.as_secs(),
        deadline(plan).as_secs().div_ceil(60)
    );
    text
}

/// What a file holds, for somebody who decides whether to keep it.
pub fn holds(trial: &Trial, bytes: usize) -> String {
    let about = &trial.about;
    let replays: usize = trial.blocks.iter().map(|block| block.rows.len()).sum();
    let times: usize = trial
        .blocks
        .iter()
        .map(|block| block.service_us.len())
        .sum();
    let known = |text: &str| {
        let words = if text.is_empty() { NONE } else { text };
        faas_data::input::shorten(words, 60)
    };
    let smt = about.smt.map_or(NONE, |on| if on { "on" } else { "off" });
    let version = about.scx_sfs.as_deref().unwrap_or("never loaded");
    let mut text = format!(
        "The file holds, in {} KiB of JSON, and nothing else:\n\
         \x20 CPU model            {}\n\
         \x20 CPUs, threads        {}, two threads on a core: {smt}\n\
         \x20 kernel               {}\n\
         \x20 clock, governor      {}, {}\n\
         \x20 virtual, emulated    {}, {}\n\
         \x20 faasbench, scx_sfs   {}, {}\n\
         \x20 the plan             {} blocks with loads, seeds and orders\n\
         \x20 the calibration      speeds of the CPUs, costs of small things\n\
         \x20 the measurements     {replays} replays: arrivals and CPU times of {times}\n\
         \x20                      generated invocations, turnaround, delay and CPU time of\n\
         \x20                      each, counters, frequency, steal\n\
         \x20 what follows         the table below\n\
         No name of the host or a user, no path, no address, no serial number, no date.\n",
        bytes.div_ceil(1024),
        known(&about.cpu_model),
        about.cpus,
        known(&about.kernel),
        known(&about.clock),
        known(&about.governor),
        yes(about.is_virtual),
        yes(about.is_emulated),
        known(&trial.version),
        known(version),
        trial.blocks.len(),
    );
    text += &calibration(trial);
    text
}

fn yes(is_so: bool) -> &'static str {
    if is_so {
        "yes"
    } else {
        "no"
    }
}

/// The calibration, in words.
fn calibration(trial: &Trial) -> String {
    let capacity = &trial.capacity;
    let us = |time: Option<f64>| time.map_or(NONE.to_string(), |time| format!("{time:.1} us"));
    let costs = trial.costs;
    let [slow, mean, fast] = capacity.alone;
    format!(
        "\nCalibration: a CPU alone makes {mean:.0} rounds a millisecond ({slow:.0} to {fast:.0}), \
         {:.0} with\nall busy ({:.0} to {:.0}); busy CPUs gave {:.1} % of the time.\n\
         Fork and exit {}, switch {}, pipe to the same CPU {},\n\
         wake-up on another CPU {}, a timer is late by {}.\n",
        capacity.busy[1],
        capacity.busy[0],
        capacity.busy[2],
        capacity.available * 100.0,
        us(costs.map(|costs| costs.fork_exit_us)),
        us(costs.and_then(|costs| costs.switch_us)),
        us(costs.map(|costs| costs.handoff_us)),
        us(costs.and_then(|costs| costs.wakeup_us)),
        us(costs.map(|costs| costs.timer_us)),
    )
}

/// What follows from a trial.
pub fn said(trial: &Trial, said: &Said) -> String {
    let mut text = String::from(
        "\nRatios to `eevdf`, of the same traces; less is better. `eevdf again` is the noise.\n\n",
    );
    let heads = [
        "load",
        "figure",
        "row",
        "blocks",
        "ratio",
        "95 % interval",
        "p",
        "this shows",
    ];
    let mut table = table(&heads, 1);
    for line in &said.lines {
        table.add_row(cells(line));
    }
    text += &lines(&table);
    text += "\n";
    text += &counters(trial);
    for remark in &said.remarks {
        let _ = writeln!(text, "Remark: {remark}.");
    }
    text + &verdict(said)
}

/// Whether there is a result, in one paragraph.
fn verdict(said: &Said) -> String {
    if !said.against.is_empty() {
        let mut text =
            "\nNot a result: nothing in this table tells schedulers apart.\n".to_string();
        for why in &said.against {
            let _ = writeln!(text, "- {why}");
        }
        return text;
    }
    let count = |wanted: &[Finding]| {
        let lines = said.lines.iter();
        lines.filter(|line| wanted.contains(&line.finding)).count()
    };
    let shown = count(&[Finding::Smaller, Finding::Larger]);
    let noisy = count(&[Finding::TooNoisy, Finding::NotAResult]);
    match (shown, noisy) {
        (0, 0) => "\nNo difference that this trial can show.\n".to_string(),
        (0, _) => "\nNot a result: the noise is too large, or a row is not complete.\n".to_string(),
        _ => format!(
            "\n{shown} of {} comparisons are beyond the noise, at an error rate of 5 % for all of \
             them together.\n",
            count(&[
                Finding::Smaller,
                Finding::Larger,
                Finding::None,
                Finding::TooNoisy,
                Finding::NotAResult
            ])
        ),
    }
}

fn cells(line: &Line) -> [String; 8] {
    let interval = |[low, high]: [f64; 2]| format!("{low:.3} to {high:.3}");
    [
        format!("{}", line.load),
        line.figure.clone(),
        line.row.name().to_string(),
        line.blocks.to_string(),
        format!("{:.3}", line.ratio),
        line.interval.map_or(NONE.to_string(), interval),
        line.p.map_or(NONE.to_string(), |p| format!("{p:.3}")),
        line.finding.words().to_string(),
    ]
}

/// The means of the counters over the replays of each row.
fn counters(trial: &Trial) -> String {
    let heads = [
        "row",
        "cycles",
        "instructions",
        "cache misses",
        "migrations",
        "switches",
        "MHz",
        "busy",
        "steal",
    ];
    let mut table = table(&heads, 0);
    for row in Row::ALL {
        let replays = || {
            let all = trial.blocks.iter().flat_map(|block| &block.rows);
            all.filter(|one| one.row == row)
        };
        let count = |of: fn(&Counts) -> Option<u64>| {
            mean(replays().map(|one| of(&one.counters).map(|count| count as f64)))
                .map_or(NONE.to_string(), short)
        };
        let share = |shares: Option<f64>| {
            shares.map_or(NONE.to_string(), |share| format!("{:.1} %", share * 100.0))
        };
        let mhz = mean(replays().flat_map(|one| one.frequency_mhz));
        table.add_row([
            row.name().to_string(),
            count(|counts| counts.cycles),
            count(|counts| counts.instructions),
            count(|counts| counts.cache_misses),
            count(|counts| counts.migrations),
            count(|counts| counts.switches),
            mhz.map_or(NONE.to_string(), |mhz| format!("{mhz:.0}")),
            share(mean(replays().map(|one| one.busy))),
            share(mean(replays().map(|one| one.steal))),
        ]);
    }
    format!(
        "Means of a replay, all CPUs ({NONE}: this machine does not count it):\n\n{}\n",
        lines(&table)
    )
}

/// The mean; `None` if any is not known.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    faas_data::stats::mean(&values.collect::<Option<Vec<_>>>()?)
}

/// A large number, in thousands, millions or milliards.
fn short(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(size, _)| value >= *size) {
        Some((size, unit)) => format!("{:.2} {unit}", value / size),
        None => format!("{value:.0}"),
    }
}

/// A table with these heads, of which the first `words` are not of numbers.
pub(crate) fn table(heads: &[&str], text_column: usize) -> Table {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line));
    table.set_header(heads.iter().copied());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        let is_text = index == text_column || heads[index] == "row" || index + 1 == heads.len();
        if !is_text {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The lines of a table, without space at their ends.
pub(crate) fn lines(table: &Table) -> String {
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::analysis::tests::synthetic;

    #[test]
    fn a_plan_has_its_blocks_and_says_what_it_does() {
        let made = Plan::new(10, &[0.9], 4).unwrap();
        let text = plan(&made);
        assert!(text.starts_with("Plan (seed 4): "), "{text}");
        assert!(text.contains("4001") && text.contains("A guard"), "{text}");
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(90), "{text}");
    }

    #[test]
    fn an_effect_is_told_and_noise_is_not_called_a_result() {
        let told = |effect, noise| {
            let trial = synthetic(effect, noise);
            said(&trial, &analyse(&trial))
        };
        let text = told(0.5, 0.02);
        assert!(
            text.contains("5 of 10 comparisons are beyond the noise"),
            "{text}"
        );
        let text = told(1.0, 0.02);
        assert!(
            text.contains("\nNo difference that this trial can show.\n"),
            "{text}"
        );
        let text = told(0.5, 0.6);
        assert!(
            text.contains("\nNot a result: the noise is too large"),
            "{text}"
        );
        let mut trial = synthetic(0.5, 0.02);
        trial.about.is_emulated = true;
        let text = said(&trial, &analyse(&trial));
        assert!(text.contains("Not a result: nothing") && text.contains("- the CPUs are emulated"));
    }

    #[test]
    fn what_a_file_holds_is_told_without_forged_lines() {
        let mut trial = synthetic(0.5, 0.02);
        trial.about.cpu_model = "x".repeat(500);
        let text = holds(&trial, 4097);
        assert!(
            text.contains("in 5 KiB of JSON") && text.contains("xxx..."),
            "{text}"
        );
        assert_eq!(short(1_234_567.0), "1.23 M");
        assert_eq!((short(999.0), short(2e9)), ("999".into(), "2.00 G".into()));
    }
}
