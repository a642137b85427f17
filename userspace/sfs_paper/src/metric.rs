//! Single numbers of a measured figure, for the comparison with the texts.

use crate::data::{Measured, Run};
use crate::table::{factor, ms, percent};
use anyhow::{bail, Context, Result};
use faas_data::measure::Measure;
use faas_data::result::Record;
use faas_data::stats::{self, sorted};
use faas_data::trace::Class;
use std::collections::HashMap;

/// A statistic of one row's invocations.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    /// Mean turnaround of all, of the short, of the long, of a class.
    Mean(Group),
    /// Variance of the turnaround.
    Variance(Group),
    /// Percentile of turnaround, per mille.
    Turnaround(usize),
    /// Percentile of the slowdown, per mille.
    Slowdown(usize),
    /// Share with a run-time effectiveness of 0.95 or more.
    RteHigh,
    /// Share with a run-time effectiveness below 0.2.
    RteLow,
}

/// A statistic of two rows' invocations, one by one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pairs {
    /// Mean of the first's turnaround / the second's.
    Mean(Group),
    /// Percentile of the same, per mille.
    Percentile(usize),
    /// Share for which the first is sooner.
    Sooner,
    /// Share with more switches under the first.
    MoreSwitches,
    /// Share with ten times as many or more.
    TenTimes,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Group {
    All,
    Short,
    Long,
    Of(Class),
}

/// How to compute a number: a statistic, one or two rows, and the setting.
///
/// As text `STATISTIC ROW SETTING` or `STATISTIC ROW/ROW SETTING`, where the
/// setting is its title.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    kind: Kind,
    /// The title of the setting.
    pub setting: String,
    rows: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Of one row, or the ratio of two.
    Plain(Statistic),
    Paired(Pairs),
}

/// All statistics, by name.
const KINDS: [(&str, Kind); 27] = {
    use Kind::{Paired, Plain};
    use Statistic::{Mean, RteHigh, RteLow, Slowdown, Turnaround, Variance};
    [
        ("mean", Plain(Mean(Group::All))),
        ("short", Plain(Mean(Group::Short))),
        ("long", Plain(Mean(Group::Long))),
        ("LS-mean", Plain(Mean(Group::Of(Class::Ls)))),
        ("LD-mean", Plain(Mean(Group::Of(Class::Ld)))),
        ("LS-variance", Plain(Variance(Group::Of(Class::Ls)))),
        ("p50", Plain(Turnaround(500))),
        ("p99", Plain(Turnaround(990))),
        ("p99.9", Plain(Turnaround(999))),
        ("slowdown-p50", Plain(Slowdown(500))),
        ("slowdown-p99", Plain(Slowdown(990))),
        ("rte-0.95", Plain(RteHigh)),
        ("rte-below-0.2", Plain(RteLow)),
        ("each", Paired(Pairs::Mean(Group::All))),
        ("short-each", Paired(Pairs::Mean(Group::Short))),
        ("long-each", Paired(Pairs::Mean(Group::Long))),
        ("each-p1", Paired(Pairs::Percentile(10))),
        ("each-p10", Paired(Pairs::Percentile(100))),
        ("each-p40", Paired(Pairs::Percentile(400))),
        ("each-p50", Paired(Pairs::Percentile(500))),
        ("each-p70", Paired(Pairs::Percentile(700))),
        ("each-p90", Paired(Pairs::Percentile(900))),
        ("each-p99", Paired(Pairs::Percentile(990))),
        ("each-max", Paired(Pairs::Percentile(1000))),
        ("sooner", Paired(Pairs::Sooner)),
        ("more-switches", Paired(Pairs::MoreSwitches)),
        ("ten-times-switches", Paired(Pairs::TenTimes)),
    ]
};

impl Metric {
    /// Reads the text.
    ///
    /// # Errors
    /// If it is not in the form above, or the statistic is unknown.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = text.splitn(3, ' ');
        let (Some(name), Some(rows), Some(setting)) = (words.next(), words.next(), words.next())
        else {
            bail!("`{text}`: want STATISTIC ROW[/ROW] SETTING");
        };
        let found = KINDS.iter().find(|(known, _)| *known == name);
        let (_, kind) = found.with_context(|| format!("`{name}` is no statistic"))?;
        let rows: Vec<String> = rows.split('/').map(ToString::to_string).collect();
        let pairs = matches!(kind, Kind::Paired(_));
        if rows.len() > 2 || (pairs && rows.len() != 2) {
            bail!("`{text}`: want one row or two, and two for a statistic of pairs");
        }
        Ok(Self {
            kind: *kind,
            setting: setting.to_string(),
            rows,
        })
    }

    /// The rows that it needs.
    pub fn rows(&self) -> &[String] {
        &self.rows
    }

    /// The number, formatted; `-` if nothing was measured, `None` if its
    /// setting or row is not among the measured ones.
    pub fn value(&self, measured: &[Measured]) -> Option<String> {
        let one = measured.iter().find(|one| one.title == self.setting)?;
        let rows: Option<Vec<&Run>> = self.rows.iter().map(|name| one.run(name)).collect();
        Some(match (self.kind, &rows?[..]) {
            (Kind::Plain(statistic), [run]) => plain(statistic, statistic.of(one, run)),
            (Kind::Plain(statistic), [above, below]) => {
                factor(statistic.of(one, above) / statistic.of(one, below))
            }
            (Kind::Paired(pairs), [above, below]) => pairs.of(one, above, below),
            _ => "-".to_string(),
        })
    }
}

/// Formats the value of one row.
fn plain(statistic: Statistic, value: f64) -> String {
    match statistic {
        Statistic::Mean(_) | Statistic::Turnaround(_) if value >= 1000.0 => {
            format!("{:.2} s", value / 1e3)
        }
        Statistic::Mean(_) | Statistic::Turnaround(_) => format!("{} ms", ms(value)),
        Statistic::Variance(_) => format!("{:.4} s^2", value / 1e6),
        Statistic::Slowdown(_) => ms(value),
        Statistic::RteHigh | Statistic::RteLow => percent(value),
    }
}

impl Group {
    /// Whether an invocation belongs to it.
    fn has(self, measured: &Measured, id: usize) -> bool {
        match self {
            Self::All => true,
            Self::Short => measured.short[id],
            Self::Long => !measured.short[id],
            Self::Of(class) => measured.trace[id].class == Some(class),
        }
    }
}

impl Statistic {
    /// Its value, in milliseconds if it is a time; NaN without invocations.
    fn of(self, measured: &Measured, run: &Run) -> f64 {
        let turnarounds = |group: Group| run.turnarounds_ms(|one| group.has(measured, one.id));
        let rtes = || -> Vec<f64> { run.measures.iter().map(Measure::rte).collect() };
        let value = match self {
            Self::Mean(group) => stats::mean(&turnarounds(group)),
            Self::Variance(group) => stats::variance(&turnarounds(group)),
            Self::Turnaround(at) => stats::percentile(&sorted(turnarounds(Group::All)), at),
            Self::Slowdown(at) => {
                let all = run.measures.iter().map(|one| one.slowdown).collect();
                stats::percentile(&sorted(all), at)
            }
            Self::RteHigh => stats::share(&rtes(), |rte| rte >= 0.95),
            Self::RteLow => stats::share(&rtes(), |rte| rte < 0.2),
        };
        value.unwrap_or(f64::NAN)
    }
}

impl Pairs {
    fn of(self, measured: &Measured, above: &Run, below: &Run) -> String {
        let ratios = |group| ratios(measured, above, below, group);
        match self {
            Self::Mean(group) => factor(stats::mean(&ratios(group)).unwrap_or(f64::NAN)),
            Self::Percentile(at) => {
                let all = sorted(ratios(Group::All));
                factor(stats::percentile(&all, at).unwrap_or(f64::NAN))
            }
            Self::Sooner => share(&ratios(Group::All), |ratio| ratio < 1.0),
            Self::MoreSwitches => share(&switch_ratios(above, below), |ratio| ratio > 1.0),
            Self::TenTimes => share(&switch_ratios(above, below), |ratio| ratio >= 10.0),
        }
    }
}

fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> String {
    percent(stats::share(values, holds).unwrap_or(f64::NAN))
}

/// Turnaround of each invocation of a group under `above` / under `below`, if
/// it completed under both.
fn ratios(measured: &Measured, above: &Run, below: &Run, group: Group) -> Vec<f64> {
    let below: HashMap<usize, f64> = below
        .measures
        .iter()
        .map(|one| (one.id, one.turnaround_us.max(1) as f64))
        .collect();
    let own = above
        .measures
        .iter()
        .filter(|one| group.has(measured, one.id));
    own.filter_map(|one| Some(one.turnaround_us as f64 / below.get(&one.id)?))
        .collect()
}

/// Mean of the turnarounds of each short (or long) invocation under `above` /
/// under `below`; NaN if there is none.
pub fn mean_of_ratios(measured: &Measured, above: &Run, below: &Run, short: bool) -> f64 {
    let group = if short { Group::Short } else { Group::Long };
    stats::mean(&ratios(measured, above, below, group)).unwrap_or(f64::NAN)
}

/// All switches of an invocation; at least one, since it exits.
pub fn switches(one: &Record) -> f64 {
    (one.voluntary_switches + one.involuntary_switches).max(1) as f64
}

/// Switches under `base` per switch under `own`, of the invocations that
/// completed in both.
pub fn switch_ratios(base: &Run, own: &Run) -> Vec<f64> {
    let pairs = base.records.iter().zip(&own.records);
    let both = pairs.filter(|(base, own)| base.completed().is_some() && own.completed().is_some());
    both.map(|(base, own)| switches(base) / switches(own))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_or_refused() {
        let metric = Metric::parse("short eevdf/scx_sfs load 1.0, with I/O").unwrap();
        assert_eq!(metric.setting, "load 1.0, with I/O");
        assert_eq!(metric.rows(), ["eevdf", "scx_sfs"]);
        for (text, want) in [
            ("short eevdf", "want STATISTIC"),
            ("shrt eevdf x7", "`shrt` is no statistic"),
            ("short a/b/c x7", "want one row or two"),
            ("each a x7", "two for a statistic of pairs"),
        ] {
            let said = Metric::parse(text).unwrap_err().to_string();
            assert!(said.contains(want), "{said}");
        }
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
        }
    }
}
