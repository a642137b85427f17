//! Memory and time of loading.

use super::guest::Lab;
use super::table::{after, header, number, row};
use anyhow::Result;

/// The table of what loading takes with `n` of something, beside what it takes with none.
pub fn growth(lab: &Lab, what: &str, n: u32) -> Result<String> {
    let left = |count: u32, end: &str| lab.left(what, &format!("{what}.{count}{end}"));
    let slabs =
        |count| Ok::<_, anyhow::Error>(grown(&left(count, ".before")?, &left(count, ".after")?));
    let (none, many) = (slabs(0)?, slabs(n)?);
    let maps = left(0, ".maps")?;
    let maps: f64 = maps
        .lines()
        .flat_map(|line| after(line, "memlock"))
        .map(|word| number(Some(word)))
        .sum();
    let (first, second) = (took(&left(0, "")?), took(&left(n, "")?));
    let time = |title: &str, one: f64, other: f64| {
        row(&[title.into(), format!("{one:.1}"), format!("{other:.1}")])
    };
    Ok([
        header("", ["none".into(), format!("{n} {what}")].into_iter()),
        time("s to load", first.0, second.0),
        time("s to unload", first.1, second.1),
        row(&[
            "kernel objects, kB".into(),
            (none / 1024).to_string(),
            (many / 1024).to_string(),
        ]),
        format!("| maps, kB | {:.0} | |\n", maps / 1024.0),
        format!("\nEach takes {} bytes.\n", (many - none) / i64::from(n)),
    ]
    .concat())
}

/// By how many bytes the kernel's objects have grown, from two copies of /proc/slabinfo.
fn grown(before: &str, after: &str) -> i64 {
    bytes(after) - bytes(before)
}

/// The bytes of all objects. The first two lines are the head.
fn bytes(slabs: &str) -> i64 {
    let lines = slabs.lines().skip(2);
    let sum: f64 = lines
        .map(|line| {
            let mut words = line.split_whitespace().skip(2);
            let objects = number(words.next());
            objects * number(words.next())
        })
        .sum();
    sum as i64
}

/// Seconds to load and to unload, from the four times before and after both.
fn took(times: &str) -> (f64, f64) {
    let times: Vec<f64> = times
        .lines()
        .map(|line| number(line.split_whitespace().next()))
        .collect();
    let at = |index: usize| times.get(index).copied().unwrap_or(0.0);
    (at(1) - at(0), at(3) - at(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_with_their_size() {
        let head = "slabinfo - version: 2.1\n# name <active> <num> <size>\n";
        let before = format!("{head}task 10 20 100 1 1\n");
        let after = format!("{head}task 10 30 100 1 1\nother 0 1 8 1 1\n");
        assert_eq!(grown(&before, &after), 1008);
        assert_eq!(grown(&after, &before), -1008);
    }

    #[test]
    fn loading_and_unloading_lie_between_two_times_each() {
        assert_eq!(took("1.5\n4.0\n5.0\n5.25\n"), (2.5, 0.25));
        assert_eq!(took(""), (0.0, 0.0));
    }
}
