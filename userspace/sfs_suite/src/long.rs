//! The longest cases take turns (`tests/run --long K/N`): three quarters of the suite's time go to
//! less than half of its cases, and `.ci/run` has an hour.

use anyhow::Result;
use sfs_jobs::failure::Failure;
use std::str::FromStr;

/// The list of long cases, from the root of the repository: `NAME: seconds`, in the order of their
/// length.
pub const LIST: &str = "tests/long";

/// Part K of N of the long cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    part: usize,
    parts: usize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(part, parts)| {
            let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
            Some(Self { part, parts })
        });
        numbers
            .filter(|one| (1..=one.parts).contains(&one.part) && one.parts <= 99)
            .ok_or_else(|| format!("takes a part of at most 99, as 2/3, not '{text}'"))
    }
}

impl Part {
    /// The cases of `names` without the long ones of other parts, and how many these are. `list` is
    /// the text of [`LIST`]. Each part has every N-th of the long cases, so parts take similar times.
    ///
    /// # Errors
    /// If the list has a line that names none of the cases.
    pub fn choose(self, names: Vec<String>, list: &str) -> Result<(Vec<String>, usize)> {
        let mut others = Vec::new();
        let lines = list.lines().filter(|line| !line.starts_with("//"));
        for (index, line) in lines.enumerate() {
            let name = line.split(':').next().unwrap_or(line);
            if !names.iter().any(|one| one == name) {
                let why = format!("{LIST} has the line \"{line}\", and there is no such case");
                return Err(Failure::Usage(why).into());
            }
            if index % self.parts != self.part - 1 {
                others.push(name);
            }
        }
        let mut chosen = names.clone();
        chosen.retain(|name| !others.contains(&name.as_str()));
        let left_out = names.len() - chosen.len();
        Ok((chosen, left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "// why\nb: 9\nd: 8\ne: 7\n";

    fn names() -> Vec<String> {
        ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec()
    }

    #[test]
    fn each_long_case_is_in_one_part_and_others_are_in_all() {
        let parts = [1, 2].map(|part| Part { part, parts: 2 });
        let chosen = parts.map(|part| part.choose(names(), LONG).unwrap());
        assert_eq!(chosen[0].0, ["a", "b", "c", "e"]);
        assert_eq!(chosen[1].0, ["a", "c", "d"]);
        assert_eq!(chosen.map(|(_, left_out)| left_out), [1, 2]);
    }

    #[test]
    fn a_list_with_a_case_that_is_gone_is_refused() {
        let all = Part { part: 1, parts: 1 };
        let error = all.choose(names(), "b: 9\nnone: 7\n").unwrap_err();
        assert!(error.to_string().contains("\"none: 7\""), "{error}");
    }

    #[test]
    fn parts_are_checked() {
        assert_eq!("2/3".parse(), Ok(Part { part: 2, parts: 3 }));
        for text in ["", "2", "0/3", "4/3", "1/100", "a/b", "1/2/3"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
