//! Applications with classes: latency-sensitive (LS) and latency-desirable (LD)
//! ones side by side, as in FaaSched (Panda and Sarangi, arXiv 2303.06473).
//!
//! They come from a table that can be replaced. The built-in one has the
//! paper's structure, five of each class, with our own figures, because the
//! paper's Table II was not available.

use super::random::Random;
use super::{service_us, Durations};
use anyhow::Result;
use faas_data::input::{self, InputError};
use faas_data::trace::Class;
use std::path::Path;

/// The built-in table.
pub const BUILT_IN: &str = include_str!("../data/applications.csv");

/// The first line of a table that is not a comment.
const HEADER: &str = "application,class,service_ms,cv,rate";

/// One application.
#[derive(Debug, Clone, PartialEq)]
struct Application {
    name: String,
    class: Class,
    /// Mean service time in microseconds.
    mean_us: f64,
    /// Coefficient of variation of the service time.
    cv: f64,
    /// Its relative share of the invocations.
    rate: f64,
}

/// A mix of applications. Service times are log-normal around each one's mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Applications(Vec<Application>);

impl Applications {
    /// Reads a table; all service times are multiplied by `scale`.
    ///
    /// # Errors
    /// If the file cannot be read, or for the first line that differs from the
    /// format of the built-in table.
    pub fn read(path: &Path, scale: f64) -> Result<Self> {
        let bytes = input::read(path)?;
        Ok(Self::parse(&path.display().to_string(), &bytes, scale)?)
    }

    /// The built-in table; all service times are multiplied by `scale`.
    ///
    /// # Errors
    /// None in practice: it is part of the program and tested.
    pub fn built_in(scale: f64) -> Result<Self> {
        Ok(Self::parse(
            "the built-in table",
            BUILT_IN.as_bytes(),
            scale,
        )?)
    }

    fn parse(file: &str, bytes: &[u8], scale: f64) -> Result<Self, InputError> {
        let at = |line, message| InputError {
            file: file.to_string(),
            line,
            message,
        };
        let mut all: Vec<Application> = Vec::new();
        let mut header = false;
        let mut last = 1;
        for (line, text) in input::lines(file, bytes)? {
            last = line;
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if !header {
                if text != HEADER {
                    let message = format!("`{}`: want `{HEADER}`", input::shorten(text, 60));
                    return Err(at(line, message));
                }
                header = true;
                continue;
            }
            let one = application(text, scale).map_err(|message| at(line, message))?;
            if all.iter().any(|other| other.name == one.name) {
                return Err(at(line, format!("`{}` is defined twice", one.name)));
            }
            all.push(one);
        }
        if all.is_empty() {
            return Err(at(last, "this file has no applications".to_string()));
        }
        Ok(Self(all))
    }

    fn total_rate(&self) -> f64 {
        self.0.iter().map(|one| one.rate).sum()
    }
}

/// One line of the table.
fn application(text: &str, scale: f64) -> Result<Application, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let &[name, class, service_ms, cv, rate] = fields.as_slice() else {
        return Err(format!("{} fields, want 5: {HEADER}", fields.len()));
    };
    if !input::is_name(name) {
        return Err(format!("`{}` is not a name", input::shorten(name, 40)));
    }
    let class = match class {
        "LS" => Class::Ls,
        "LD" => Class::Ld,
        other => {
            let other = input::shorten(other, 40);
            return Err(format!("class `{other}`: want LS or LD"));
        }
    };
    Ok(Application {
        name: name.to_string(),
        class,
        mean_us: number("service_ms", service_ms, 0.001, 1e6)? * 1e3 * scale,
        cv: number("cv", cv, 0.0, 10.0)?,
        rate: number("rate", rate, 0.001, 1e6)?,
    })
}

fn number(what: &str, text: &str, low: f64, high: f64) -> Result<f64, String> {
    let value = super::files::decimal(text).filter(|value| (low..=high).contains(value));
    value.ok_or_else(|| {
        let text = input::shorten(text, 40);
        format!("{what} `{text}`: want a number from {low} to {high}")
    })
}

impl Durations for Applications {
    fn mean_us(&self) -> f64 {
        let sum: f64 = self.0.iter().map(|one| one.rate * one.mean_us).sum();
        sum / self.total_rate()
    }

    fn draw(&self, random: &mut Random) -> (String, u64) {
        let mut point = random.unit() * self.total_rate();
        // Rounding may leave a point beyond the end.
        let mut chosen = &self.0[self.0.len() - 1];
        for one in &self.0 {
            if point < one.rate {
                chosen = one;
                break;
            }
            point -= one.rate;
        }
        let us = chosen.mean_us * random.noise(chosen.cv);
        (chosen.name.clone(), service_us(us))
    }

    fn class(&self, function: &str) -> Option<Class> {
        let found = self.0.iter().find(|one| one.name == function);
        found.map(|one| one.class)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Amount, Workload};
    use super::*;
    use std::collections::BTreeMap;

    fn amount(invocations: u32) -> Amount {
        Amount {
            invocations,
            load: 0.9,
            cpus: 4,
            seed: 3,
        }
    }

    #[test]
    fn the_built_in_table_has_five_of_each_class() {
        let all = Applications::built_in(1.0).unwrap().0;
        let count = |class| all.iter().filter(|one| one.class == class).count();
        assert_eq!((count(Class::Ls), count(Class::Ld)), (5, 5));
    }

    #[test]
    fn invocations_have_the_class_duration_and_share_of_their_application() {
        let table = b"application,class,service_ms,cv,rate\nfast,LS,10,0,3\nslow,LD,100,0.5,1\n";
        let mix = Applications::parse("t", table, 2.0).unwrap();
        assert_eq!(mix.mean_us(), (3.0 * 20e3 + 200e3) / 4.0);
        let made = Workload::new(&mix).make(amount(100_000)).unwrap();
        let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for one in &made {
            let class = if one.function == "fast" {
                Class::Ls
            } else {
                Class::Ld
            };
            assert_eq!(one.class, Some(class));
            let (count, sum) = sums.entry(&one.function).or_default();
            (*count, *sum) = (*count + 1.0, *sum + one.service_us() as f64);
        }
        let (fast, slow) = (sums["fast"], sums["slow"]);
        // Three standard errors: 3 x sqrt(0.75 x 0.25 / 100,000) = 0.0041
        assert!((fast.0 / 1e5 - 0.75).abs() < 0.0041, "{fast:?}");
        assert_eq!(fast.1 / fast.0, 20e3);
        // 3 x 0.5 / sqrt(25,000) = 0.0095
        assert!((slow.1 / slow.0 / 200e3 - 1.0).abs() < 0.0095, "{slow:?}");
    }

    #[test]
    fn invalid_tables_are_refused_with_the_line() {
        let cases = [
            ("", "the file is empty"),
            ("x\n", "t:1: `x`: want `application,"),
            (
                "application,class,service_ms,cv,rate\n",
                "t:1: this file has no applications",
            ),
            ("a,LS,1,1\n", "t:3: 4 fields, want 5"),
            ("a,XX,1,1,1\n", "t:3: class `XX`: want LS or LD"),
            (
                "a,LS,0,1,1\n",
                "t:3: service_ms `0`: want a number from 0.001",
            ),
            ("a,LS,1,-1,1\n", "t:3: cv `-1`: want a number from 0 to 10"),
            ("a,LS,1,1,x\n", "t:3: rate `x`"),
            ("a,LS,1,1,1\na,LD,1,1,1\n", "t:4: `a` is defined twice"),
            ("a b,LS,1,1,1\n", "t:3: `a b` is not a name"),
        ];
        for (text, want) in cases {
            let text = if text.contains("LS") || text.contains("XX") {
                format!("# a comment\n{HEADER}\n{text}")
            } else {
                text.to_string()
            };
            let said = Applications::parse("t", text.as_bytes(), 1.0).unwrap_err();
            assert!(said.to_string().contains(want), "{said}, want {want}");
        }
    }
}
