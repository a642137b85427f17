//! Invocation counts of functions.

use super::super::Skipped;
use super::durations::Quantiles;
use super::table::{Key, Table};
use super::Minutes;
use anyhow::{bail, Result};
use csv::StringRecord;
use faas_data::input::{is_name, number, shorten};
use std::collections::{HashMap, HashSet};
use std::io::Read;

/// Last minute of a day; columns are named from 1. A file may also begin at 0.
const LAST_MINUTE: u32 = 1440;

/// Number of characters of a hash in a function's name, if they are unique.
const NAME_LENGTH: usize = 12;

/// Maximum length of a name made from a hash, so that a number fits after it.
const LONGEST_NAME: usize = 200;

/// An invoked function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Its line.
    pub(super) line: usize,
    pub(super) quantiles: Quantiles,
    /// Minutes, in ascending order, and the number of invocations in each,
    /// above 0.
    pub(super) counts: Vec<(u32, u32)>,
    /// Total number of invocations.
    pub(super) total: u64,
}

/// The invocations in the selected minutes.
#[derive(Default)]
pub(super) struct Counts {
    /// In the order of the file.
    pub(super) functions: Vec<Function>,
    pub(super) skipped: Skipped,
    pub(super) without_durations: u64,
    pub(super) idle: usize,
    pub(super) first_minute: u32,
}

/// Reads the file of invocations, and looks durations up.
pub(super) fn read(
    file: &str,
    reader: impl Read,
    quantiles: &HashMap<Key, Quantiles>,
    minutes: Option<Minutes>,
) -> Result<Counts> {
    let mut table = Table::open(file, reader)?;
    let columns = select_minutes(file, table.columns(minute), minutes)?;
    let mut counts = Counts {
        first_minute: columns[0].0,
        ..Counts::default()
    };
    let mut seen = HashSet::new();
    let mut names = HashSet::new();
    while let Some((line, row)) = table.next()? {
        let parsed = row.and_then(|row| Ok((table.key(&row), parse(&row, &columns)?)));
        let parsed = parsed.and_then(|(key, found)| match seen.insert(key.clone()) {
            true => Ok((key, found)),
            false => Err("this function's invocations are in an earlier row".to_string()),
        });
        match parsed {
            Ok((key, found)) => counts.add(line, &key, found, quantiles.get(&key), &mut names),
            Err(reason) => counts.skipped.push((line, reason)),
        }
    }
    Ok(counts)
}

impl Counts {
    /// Adds a function, or records why it cannot be used.
    fn add(
        &mut self,
        line: usize,
        key: &Key,
        counts: Vec<(u32, u32)>,
        quantiles: Option<&Quantiles>,
        names: &mut HashSet<String>,
    ) {
        let total = counts.iter().map(|(_, count)| u64::from(*count)).sum();
        if total == 0 {
            self.idle += 1;
            return;
        }
        let Some(quantiles) = quantiles else {
            self.without_durations += total;
            let reason = "this function has no durations".to_string();
            self.skipped.push((line, reason));
            return;
        };
        match new_name(&key[2], names) {
            Ok(name) => self.functions.push(Function {
                name,
                line,
                quantiles: quantiles.clone(),
                counts,
                total,
            }),
            Err(reason) => self.skipped.push((line, reason)),
        }
    }
}

/// The minute of a column.
pub(super) fn minute(name: &str) -> Option<u32> {
    let minute = number("", name, u64::from(LAST_MINUTE)).ok()?;
    Some(minute as u32)
}

/// The columns within `minutes`, in order.
pub(super) fn select_minutes(
    file: &str,
    mut columns: Vec<(u32, usize)>,
    minutes: Option<Minutes>,
) -> Result<Vec<(u32, usize)>> {
    columns.sort_unstable();
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else {
        bail!("{file}:1: no columns of minutes, named 1 to {LAST_MINUTE}");
    };
    let (first, last) = (first.0, last.0);
    if columns.windows(2).any(|two| two[0].0 == two[1].0) {
        bail!("{file}:1: two columns are for the same minute");
    }
    let (from, to) = minutes.unwrap_or((first, last));
    columns.retain(|(minute, _)| (from..=to).contains(minute));
    if columns.is_empty() {
        bail!("{file}:1: its minutes are {first} to {last}, none of them is in {from}..{to}");
    }
    Ok(columns)
}

/// The minutes with invocations, and their number.
pub(super) fn parse(
    row: &StringRecord,
    columns: &[(u32, usize)],
) -> Result<Vec<(u32, u32)>, String> {
    let mut counts = Vec::new();
    for (minute, column) in columns {
        let what = || format!("the count of minute {minute}");
        let text = &row[*column];
        // Most of them are zero.
        if text != "0" {
            match number(&what(), text, u64::from(u32::MAX))? as u32 {
                0 => {}
                count => counts.push((*minute, count)),
            }
        }
    }
    Ok(counts)
}

/// A new name for the function with this hash: as much of the hash as makes it
/// unique, and a number if all of it does not.
fn new_name(hash: &str, names: &mut HashSet<String>) -> Result<String, String> {
    let cut = |length| hash.chars().take(length).collect::<String>();
    let long = cut(LONGEST_NAME);
    if !is_name(&long) {
        return Err(format!("`{}` cannot name a function", shorten(hash, 40)));
    }
    let mut name = cut(NAME_LENGTH);
    let mut number = 1;
    while !names.insert(name.clone()) {
        name = match number {
            1 => long.clone(),
            more => format!("{long}-{more}"),
        };
        number += 1;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_as_long_as_they_are_unique() {
        let mut names = HashSet::new();
        let mut name = |hash| new_name(hash, &mut names).unwrap();
        assert_eq!(name("0123456789abcdef"), "0123456789ab");
        assert_eq!(name("0123456789abcdxx"), "0123456789abcdxx");
        assert_eq!(name("0123456789abcdxx"), "0123456789abcdxx-2");
        assert_eq!(name("0123456789abcdxx"), "0123456789abcdxx-3");
        assert_eq!(name("f"), "f");
        for bad in ["", "a b", "a,b"] {
            assert!(new_name(bad, &mut names).is_err(), "{bad}");
        }
    }

    #[test]
    fn minutes_are_columns_named_by_a_number() {
        assert_eq!((minute("1"), minute("1440")), (Some(1), Some(1440)));
        for other in ["Trigger", "", "-1", "1441", "1.5"] {
            assert_eq!(minute(other), None, "{other}");
        }
    }
}
