//! The numbers that the papers publish, as their texts have them, and ours
//! beside them.
//!
//! `data/published.csv` is the only place of this repository that quotes them.
//! Numbers that are only in plots are not in the texts, and not here.

use crate::data::Measured;
use crate::metric::Metric;
use crate::table::Table;
use anyhow::{bail, Context, Result};

const DATA: &str = include_str!("../data/published.csv");

/// The entry of a figure for numbers that no figure of ours can have.
pub const NONE: &str = "-";

/// Ours, before there is a measurement.
const NOT_YET: &str = "not measured yet";

/// One published number.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Our figure with the measurement, or [`NONE`].
    pub figure: String,
    /// The paper: SFS, Hermes, thesis or FaaSched.
    pub paper: String,
    /// Section, figure or table.
    pub place: String,
    /// The quantity.
    pub quantity: String,
    /// Its value, as printed.
    pub value: String,
    /// How to compute ours.
    pub ours: Option<Metric>,
    /// What explains the difference, or why there is no measurement.
    pub remark: String,
}

/// All entries, in the order of the texts.
///
/// # Errors
/// None in practice: the data are part of the program and tested.
pub fn all() -> Result<Vec<Entry>> {
    let mut reader = csv::Reader::from_reader(DATA.as_bytes());
    let mut entries = Vec::new();
    for record in reader.records() {
        let record = record.context("published.csv")?;
        let fields: Vec<&str> = record.iter().collect();
        let &[figure, paper, place, quantity, value, ours, remark] = &fields[..] else {
            bail!("published.csv: {fields:?}: want 7 fields");
        };
        let ours = match ours {
            "" => None,
            text => Some(Metric::parse(text)?),
        };
        entries.push(Entry {
            figure: figure.to_string(),
            paper: paper.to_string(),
            place: place.to_string(),
            quantity: quantity.to_string(),
            value: value.to_string(),
            ours,
            remark: remark.to_string(),
        });
    }
    Ok(entries)
}

/// The table of a figure's published numbers; `None` if it has none. Without
/// measurements, ours are called so.
///
/// # Errors
/// As [`all`].
pub fn table(figure: &str, measured: Option<&[Measured]>) -> Result<Option<Table>> {
    let entries: Vec<Entry> = all()?
        .into_iter()
        .filter(|entry| entry.figure == figure)
        .collect();
    if entries.is_empty() {
        return Ok(None);
    }
    let columns = [
        "published in",
        "quantity",
        "published",
        "ours",
        "difference",
    ];
    let mut table = Table::new("published", "Published, and ours", &columns);
    table.text = true;
    for entry in entries {
        let ours = match (&entry.ours, measured) {
            (None, _) => "-".to_string(),
            (Some(_), None) => NOT_YET.to_string(),
            (Some(metric), Some(measured)) => metric
                .value(measured)
                .unwrap_or_else(|| "not measured".to_string()),
        };
        // There is no difference to explain yet.
        let remark = match ours == NOT_YET {
            true => "-".to_string(),
            false => entry.remark,
        };
        table.push(vec![
            format!("{}, {}", entry.paper, entry.place),
            entry.quantity,
            entry.value,
            ours,
            remark,
        ]);
    }
    Ok(Some(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;
    use crate::plan::Size;

    const SIZE: Size = Size {
        invocations: 200,
        headline: 300,
        cpus: 4,
        seed: 1,
        list: None,
        table1: "table1",
    };

    #[test]
    fn every_entry_is_complete_and_can_be_computed() {
        let figures = figures::all();
        for entry in all().unwrap() {
            let at = format!("{entry:?}");
            for field in [&entry.paper, &entry.place, &entry.quantity, &entry.value] {
                assert!(!field.is_empty(), "{at}");
            }
            // An explanation, `unexplained`, or why there is no measurement.
            assert!(!entry.remark.is_empty(), "{at}");
            let Some(metric) = entry.ours else {
                continue;
            };
            let figure = figures.iter().find(|figure| figure.id == entry.figure);
            let settings = (figure.expect(&at).settings)(SIZE);
            let setting = settings.iter().find(|one| one.title == metric.setting);
            for row in metric.rows() {
                let there = setting.expect(&at).rows.iter().any(|own| own.name == row);
                assert!(there, "{at}: row {row}");
            }
        }
    }

    #[test]
    fn figures_of_the_entries_exist() {
        for entry in all().unwrap() {
            let known = figures::all()
                .iter()
                .any(|figure| figure.id == entry.figure);
            assert!(known || entry.figure == NONE, "{entry:?}");
        }
    }

    #[test]
    fn numbers_that_are_not_measured_are_called_so() {
        let table = table("headline", None).unwrap().unwrap();
        let row = table.rows.iter().find(|row| row[2] == "49.6x").unwrap();
        assert_eq!(row[3..], ["not measured yet", "-"]);
        assert_eq!(super::table("no figure", None).unwrap(), None);
    }
}
