//! Arrivals alone, from the file of invocations: those of a sample of
//! applications (the SFS paper), and those of one popular and many other
//! functions (Hermes).
//!
//! The file counts invocations by the minute; here they are uniform within
//! their minute, like those of [`super::convert`].

use super::counts::{minute, parse, select_minutes};
use super::table::Table;
use super::MINUTE_US;
use crate::random::Random;
use crate::stream;
use anyhow::{bail, Result};
use std::collections::BTreeMap;
use std::io::Read;

/// Applications in the SFS paper's sample.
pub const APPLICATIONS: usize = 100;

/// An application of that sample has more invocations than this.
pub const MORE_THAN: u64 = 200;

/// Functions of medium popularity in Hermes's MS Trace, beside a popular one.
pub const MEDIUM: usize = 49;

/// Share of the functions that Hermes's text gives 90 % of the invocations:
/// the popular ones.
const POPULAR: f64 = 0.006;

/// Arrivals to draw at most: a limit of memory.
const MAX_ARRIVALS: u64 = 20_000_000;

/// An application or a function, with its line and its invocations.
#[derive(Debug, Clone, Default, PartialEq)]
struct Source {
    line: usize,
    /// Minutes and the number of invocations in each, above 0.
    counts: BTreeMap<u32, u64>,
    total: u64,
}

/// The arrivals of a sample of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Arrivals in microseconds from the first minute on, in order, each with
    /// the index of its source (0 to `sources` - 1).
    pub arrivals: Vec<(u64, usize)>,
    /// Number of applications or functions in the sample.
    pub sources: usize,
    /// Number of those to sample from.
    pub eligible: usize,
    /// Number of rows that cannot be used.
    pub skipped: usize,
}

impl Sample {
    /// The gaps between the arrivals in microseconds.
    pub fn gaps_us(&self) -> Vec<u64> {
        let pairs = self.arrivals.windows(2);
        pairs.map(|two| two[1].0 - two[0].0).collect()
    }
}

/// The first `first` arrivals (1 or more) of 100 applications, drawn by the
/// seed from those with more than 200 invocations in the file; of all of them
/// if there are fewer.
///
/// Source: SFS (SC'22), Section VII. The paper's file is the whole of day 1.
///
/// # Errors
/// If the file cannot be read or lacks a column, or if it has no such
/// application or fewer than two arrivals of them.
pub fn of_applications(file: &str, reader: impl Read, seed: u64, first: usize) -> Result<Sample> {
    let (sources, skipped) = read(file, reader, |key| {
        [&key[0], &key[1]].map(Into::into).into()
    })?;
    let mut eligible: Vec<Source> = sources
        .into_iter()
        .filter(|one| one.total > MORE_THAN)
        .collect();
    if eligible.is_empty() {
        bail!("{file}: no application has more than {MORE_THAN} invocations");
    }
    let count = eligible.len();
    let mut random = Random::stream(seed, stream::AZURE);
    shuffle(&mut eligible, APPLICATIONS, &mut random);
    eligible.truncate(APPLICATIONS);
    let arrivals = draw(&eligible, first, &mut random)?;
    if arrivals.len() < 2 || arrivals[0].0 == arrivals[arrivals.len() - 1].0 {
        bail!("{file}: its applications have fewer than two arrivals");
    }
    Ok(Sample {
        arrivals,
        sources: eligible.len(),
        eligible: count,
        skipped,
    })
}

/// `first` arrivals of 50 functions over the whole file: one of the 0.6 % most
/// popular, which is source 0, and 49 of the middle third by popularity, all
/// drawn by the seed. Of their invocations a random sample of that size is
/// kept.
///
/// Source: Hermes (arXiv 2111.07226), Section 6.1: one function of high and 49
/// of medium popularity, with the number of invocations scaled. What high and
/// medium mean is not in the text; these bounds are ours.
///
/// # Errors
/// If the file cannot be read or lacks a column, or if it has too few functions
/// or invocations.
pub fn of_functions(file: &str, reader: impl Read, seed: u64, first: usize) -> Result<Sample> {
    let (mut sources, skipped) = read(file, reader, |key| key.to_vec())?;
    sources.sort_by_key(|one| (std::cmp::Reverse(one.total), one.line));
    let count = sources.len();
    let (from, to) = (count / 3, count - count / 3);
    if to - from < MEDIUM {
        bail!("{file}: {count} functions are invoked, too few for {MEDIUM} of medium popularity");
    }
    let mut random = Random::stream(seed, stream::AZURE);
    let popular = ((count as f64 * POPULAR).round() as usize).max(1);
    let mut chosen = vec![sources[random.below(popular)].clone()];
    shuffle(&mut sources[from..to], MEDIUM, &mut random);
    chosen.extend_from_slice(&sources[from..from + MEDIUM]);
    let there: u64 = chosen.iter().map(|one| one.total).sum();
    if there < first as u64 {
        bail!("{file}: the 50 functions have {there} invocations, fewer than {first}");
    }
    let all = draw(&chosen, usize::MAX, &mut random)?;
    Ok(Sample {
        arrivals: keep(all, first, &mut random),
        sources: chosen.len(),
        eligible: count,
        skipped,
    })
}

/// Adds the rows of the file up by what `identity` returns for their hashes,
/// without those that are not invoked, in the order of the file; and the
/// number of rows that cannot be used.
fn read(
    file: &str,
    reader: impl Read,
    identity: impl Fn(&[String; 3]) -> Vec<String>,
) -> Result<(Vec<Source>, usize)> {
    let mut table = Table::open(file, reader)?;
    let columns = select_minutes(file, table.columns(minute), None)?;
    let mut sources: BTreeMap<Vec<String>, Source> = BTreeMap::new();
    let mut skipped = 0;
    while let Some((line, row)) = table.next()? {
        let parsed = row.and_then(|row| Ok((table.key(&row), parse(&row, &columns)?)));
        let Ok((key, counts)) = parsed else {
            skipped += 1;
            continue;
        };
        let source = sources.entry(identity(&key)).or_default();
        if source.total == 0 {
            source.line = line;
        }
        for (minute, count) in counts {
            *source.counts.entry(minute).or_default() += u64::from(count);
            source.total += u64::from(count);
        }
    }
    let mut sources: Vec<Source> = sources.into_values().filter(|one| one.total > 0).collect();
    sources.sort_by_key(|one| one.line);
    Ok((sources, skipped))
}

/// Moves a random sample of `count` to the front.
fn shuffle(sources: &mut [Source], count: usize, random: &mut Random) {
    for place in 0..count.min(sources.len()) {
        let other = place + random.below(sources.len() - place);
        sources.swap(place, other);
    }
}

/// Draws the first `first` arrivals, minute by minute.
fn draw(sources: &[Source], first: usize, random: &mut Random) -> Result<Vec<(u64, usize)>> {
    let mut minutes: BTreeMap<u32, Vec<(usize, u64)>> = BTreeMap::new();
    for (index, source) in sources.iter().enumerate() {
        for (minute, count) in &source.counts {
            minutes.entry(*minute).or_default().push((index, *count));
        }
    }
    let begin = minutes.keys().next().copied().unwrap_or(0);
    let mut arrivals: Vec<(u64, usize)> = Vec::new();
    for (minute, counts) in minutes {
        let more: u64 = counts.iter().map(|(_, count)| count).sum();
        if arrivals.len() as u64 + more > MAX_ARRIVALS {
            bail!("more than {MAX_ARRIVALS} invocations are to be drawn: take a smaller file");
        }
        let before = arrivals.len();
        let start_us = u64::from(minute - begin) * MINUTE_US;
        for (index, count) in counts {
            let mut arrival = || start_us + random.below(MINUTE_US as usize) as u64;
            arrivals.extend((0..count).map(|_| (arrival(), index)));
        }
        arrivals[before..].sort_unstable();
        if arrivals.len() >= first {
            break;
        }
    }
    arrivals.truncate(first);
    Ok(arrivals)
}

/// A random sample of `count` arrivals (at most all), in order: Knuth's
/// algorithm S.
fn keep(all: Vec<(u64, usize)>, count: usize, random: &mut Random) -> Vec<(u64, usize)> {
    let mut left = all.len();
    let mut kept = Vec::with_capacity(count);
    for one in all {
        let wanted = (count - kept.len()) as f64;
        if random.unit() * (left as f64) < wanted {
            kept.push(one);
        }
        left -= 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::super::{shared, NOT_HERE};
    use super::*;
    use sfs_skip::skip;
    use std::fs::File;

    const HEADER: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2\n";

    fn applications(rows: &str, first: usize) -> Result<Sample, String> {
        let text = format!("{HEADER}{rows}");
        of_applications("i.csv", text.as_bytes(), 1, first).map_err(|error| error.to_string())
    }

    #[test]
    fn an_application_is_the_sum_of_its_functions() {
        // 150 + 51 invocations are more than 200; 200 of another are not.
        let rows = "o,a,f,http,150,0\no,a,g,http,0,51\no,b,f,http,200,0\no,c,f,x,1\n";
        let found = applications(rows, 1000).unwrap();
        assert_eq!(
            (found.sources, found.eligible, found.skipped),
            (1, 1, 1),
            "{found:?}"
        );
        assert_eq!(found.arrivals.len(), 201);
        let first_minute = |(us, _): &&(u64, usize)| *us < MINUTE_US;
        assert_eq!(found.arrivals.iter().filter(first_minute).count(), 150);
        assert_eq!(found.gaps_us().len(), 200);
        assert_eq!(applications(rows, 7).unwrap().arrivals, found.arrivals[..7]);
        let said = applications("o,a,f,http,100,100\n", 9).unwrap_err();
        assert_eq!(said, "i.csv: no application has more than 200 invocations");
    }

    #[test]
    fn a_popular_function_and_49_others_are_sampled() {
        // Function 0 has 6000 invocations, function k from 1 to 199 has 200 - k.
        let row = |k: usize| match k {
            0 => "o,a,f0,http,3000,3000\n".to_string(),
            k => format!("o,a,f{k},http,{},0\n", 200 - k),
        };
        let text = HEADER.to_string() + &(0..200).map(row).collect::<String>();
        let found = of_functions("i.csv", text.as_bytes(), 1, 5000).unwrap();
        assert_eq!((found.sources, found.eligible), (50, 200));
        assert_eq!(found.arrivals.len(), 5000);
        assert!(found.arrivals.is_sorted());
        let popular = found.arrivals.iter().filter(|one| one.1 == 0).count() as f64;
        // The others are ranks 66 to 133, with 67 to 134 invocations each: 49 of
        // them have 3283 to 6566 in all, and the popular one 48 to 65 %.
        assert!((0.45..0.68).contains(&(popular / 5000.0)), "{popular}");
        let said = of_functions("i.csv", text.as_bytes(), 1, 1_000_000).unwrap_err();
        assert!(said.to_string().contains("fewer than 1000000"), "{said}");
        let few = format!("{HEADER}o,a,f,http,1,1\n");
        let said = of_functions("i.csv", few.as_bytes(), 1, 1).unwrap_err();
        assert!(said.to_string().contains("too few"), "{said}");
    }

    #[test]
    fn the_published_sample_has_enough_applications() {
        let Some(path) = shared("traces/azure2019/500/invocations.csv") else {
            skip!(NOT_HERE);
        };
        let open = || File::open(&path).unwrap();
        let found = of_applications("i.csv", open(), 1, 10_000).unwrap();
        assert_eq!((found.sources, found.eligible), (100, 121));
        assert_eq!((found.arrivals.len(), found.skipped), (10_000, 0));
        let other = of_applications("i.csv", open(), 2, 10_000).unwrap();
        assert_ne!(found.arrivals, other.arrivals);
        let hermes = of_functions("i.csv", open(), 1, 10_000).unwrap();
        assert_eq!((hermes.sources, hermes.arrivals.len()), (50, 10_000));
    }

    /// `data/published.csv` of sfs_paper quotes these beside the papers' own.
    #[test]
    fn the_sample_has_the_numbers_that_the_results_quote() {
        let file = |name: &str| shared(&format!("traces/azure2019/500/{name}.csv"));
        let (Some(counts), Some(durations)) = (file("invocations"), file("durations")) else {
            skip!(NOT_HERE);
        };
        let counts = File::open(counts).unwrap();
        let (mut functions, _) = read("i.csv", counts, |key| key.to_vec()).unwrap();
        let total: u64 = functions.iter().map(|one| one.total).sum();
        assert_eq!(total, 3_037_902);
        functions.sort_by_key(|one| std::cmp::Reverse(one.total));
        let nine_tenths = |count: usize| {
            let sum: u64 = functions[..count].iter().map(|one| one.total).sum();
            sum as f64 >= 0.9 * total as f64
        };
        // 2.0 % of 500
        assert!(nine_tenths(10) && !nine_tenths(9));
        let mut table = csv::Reader::from_path(durations).unwrap();
        let average = table
            .headers()
            .unwrap()
            .iter()
            .position(|name| name == "Average");
        let means: Vec<f64> = table
            .records()
            .map(|row| row.unwrap()[average.unwrap()].parse().unwrap())
            .collect();
        let below = |ms: f64| means.iter().filter(|mean| **mean < ms).count() as f64 / 500.0;
        let found = [300.0, 1e3, 224e3].map(below);
        assert_eq!(found, [0.414, 0.594, 0.996]);
    }
}
