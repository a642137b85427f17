//! Reads coverage in the format of lcov, as `llvm-cov export -format=lcov` writes it.

use std::collections::BTreeMap;

/// What has been reached of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// How often, by line; lines without code are not here.
    pub lines: BTreeMap<usize, u64>,
    /// First line, and how often, by the function's name.
    pub functions: BTreeMap<String, (usize, u64)>,
    /// Branches, and those that were taken.
    pub branches: (usize, usize),
}

impl Reached {
    /// Lines with code, and those that were reached.
    #[must_use]
    pub fn line_sums(&self) -> (usize, usize) {
        let reached = self.lines.values().filter(|&&times| times > 0);
        (self.lines.len(), reached.count())
    }

    /// Functions, and those that were called.
    #[must_use]
    pub fn function_sums(&self) -> (usize, usize) {
        let called = self.functions.values().filter(|(_, times)| *times > 0);
        (self.functions.len(), called.count())
    }

    /// Functions that were never called, in the order of the file.
    #[must_use]
    pub fn uncalled(&self) -> Vec<&str> {
        let uncalled = self.functions.iter().filter(|(_, (_, times))| *times == 0);
        let mut found: Vec<_> = uncalled.map(|(name, (line, _))| (line, name)).collect();
        found.sort();
        found.into_iter().map(|(_, name)| name.as_str()).collect()
    }

    /// Ranges of lines that were not reached, in functions that were called.
    #[must_use]
    pub fn unreached(&self) -> Vec<(usize, usize)> {
        let is_called = |line: usize| {
            let before = self.functions.values().filter(|(first, _)| *first <= line);
            before.max().is_some_and(|(_, times)| *times > 0)
        };
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut open = false;
        for (&line, &times) in &self.lines {
            if times > 0 || !is_called(line) {
                open = false;
                continue;
            }
            match ranges.last_mut().filter(|_| open) {
                Some(range) => range.1 = line,
                None => ranges.push((line, line)),
            }
            open = true;
        }
        ranges
    }
}

/// The files of a report, by path.
#[must_use]
pub fn parse(text: &str) -> BTreeMap<String, Reached> {
    let mut files = BTreeMap::new();
    let (mut path, mut file) = (String::new(), Reached::default());
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let pair = || {
            let (one, other) = value.split_once(',')?;
            Some((one.parse::<u64>().ok()?, other))
        };
        match key {
            "SF" => path = value.to_owned(),
            "FN" => {
                if let Some((line, name)) = pair() {
                    file.functions.entry(plain(name)).or_default().0 = line as usize;
                }
            }
            "FNDA" => {
                if let Some((times, name)) = pair() {
                    file.functions.entry(plain(name)).or_default().1 += times;
                }
            }
            "DA" => {
                if let Some((line, times)) = pair() {
                    file.lines.insert(line as usize, times.parse().unwrap_or(0));
                }
            }
            "BRDA" => {
                file.branches.0 += 1;
                let taken = value.rsplit(',').next().unwrap_or_default();
                file.branches.1 += usize::from(taken.parse::<u64>().is_ok_and(|n| n > 0));
            }
            "end_of_record" => {
                files.insert(std::mem::take(&mut path), std::mem::take(&mut file));
            }
            _ => {}
        }
    }
    files
}

/// Static functions are written as `file.c:name`.
fn plain(name: &str) -> String {
    name.rsplit(':').next().unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let text =
            "SF:/a/b.h\nFN:1,m.c:f\nFN:10,g\nFNDA:3,m.c:f\nFNDA:0,g\nFNF:2\nDA:1,3\nDA:2,0\n\
                    DA:3,0\nDA:5,3\nDA:6,0\nDA:10,0\nDA:11,0\nBRDA:1,0,0,3\nBRDA:1,0,1,0\n\
                    BRDA:10,0,0,-\nend_of_record\nSF:/c.h\nDA:1,1\nend_of_record\n";
        let files = parse(text);
        assert_eq!(files.len(), 2);
        let file = &files["/a/b.h"];
        assert_eq!(file.line_sums(), (7, 2));
        assert_eq!(file.function_sums(), (2, 1));
        assert_eq!(file.branches, (3, 1));
        assert_eq!(file.uncalled(), ["g"]);
        assert_eq!(file.unreached(), [(2, 3), (6, 6)]);
    }
}
