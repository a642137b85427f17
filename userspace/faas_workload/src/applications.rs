//! Applications with classes: latency-sensitive (LS) and latency-desirable (LD)
//! ones side by side, as in FaaSched (Panda and Sarangi, arXiv 2303.06473).
//!
//! They come from a table that can be replaced. The built-in one is the paper's
//! Table II. In the paper the product of service time and rate is 0.9 for each
//! application; as printed, the rates give 0.875 to 0.917.

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
    spread: Spread,
    /// Invocations per second.
    rate: f64,
}

/// How service times vary around an application's mean.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spread {
    /// Log-normal with this coefficient of variation.
    Lognormal(f64),
    Exponential,
}

impl Spread {
    /// A factor on the mean, 1 on average.
    fn factor(self, random: &mut Random) -> f64 {
        match self {
            Self::Lognormal(cv) => random.noise(cv),
            Self::Exponential => random.exponential(1.0),
        }
    }
}

/// A mix of applications.
#[derive(Debug, Clone, PartialEq)]
pub struct Applications {
    all: Vec<Application>,
    /// The factor that is in the mean service times.
    scale: f64,
}

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
        Ok(Self { all, scale })
    }

    fn total_rate(&self) -> f64 {
        self.all.iter().map(|one| one.rate).sum()
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
        spread: match cv {
            "exponential" => Spread::Exponential,
            cv => Spread::Lognormal(number("cv", cv, 0.0, 10.0)?),
        },
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
        let sum: f64 = self.all.iter().map(|one| one.rate * one.mean_us).sum();
        sum / self.total_rate()
    }

    fn draw(&self, random: &mut Random) -> (String, u64) {
        let mut point = random.unit() * self.total_rate();
        // Rounding may leave a point beyond the end.
        let mut chosen = &self.all[self.all.len() - 1];
        for one in &self.all {
            if point < one.rate {
                chosen = one;
                break;
            }
            point -= one.rate;
        }
        let us = chosen.mean_us * chosen.spread.factor(random);
        (chosen.name.clone(), service_us(us))
    }

    fn class(&self, function: &str) -> Option<Class> {
        let found = self.all.iter().find(|one| one.name == function);
        found.map(|one| one.class)
    }

    fn own_load(&self, cpus: u32) -> Option<f64> {
        let busy = self.total_rate() * self.mean_us() / self.scale / 1e6;
        Some(busy / f64::from(cpus))
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
        let all = Applications::built_in(1.0).unwrap().all;
        let count = |class| all.iter().filter(|one| one.class == class).count();
        assert_eq!((count(Class::Ls), count(Class::Ld)), (5, 5));
    }

    /// Table II, cell by cell, in the order of the text.
    #[test]
    fn the_built_in_table_is_that_of_the_text() {
        let printed = [
            (0.125, 7.20, Class::Ls),
            (0.220, 4.09, Class::Ls),
            (0.400, 2.25, Class::Ls),
            (0.160, 5.63, Class::Ls),
            (0.300, 3.00, Class::Ls),
            (13.100, 0.07, Class::Ld),
            (0.003, 300.0, Class::Ld),
            (1.450, 0.62, Class::Ld),
            (0.450, 2.00, Class::Ld),
            (8.750, 0.10, Class::Ld),
        ];
        let mix = Applications::built_in(1.0).unwrap();
        let found: Vec<_> = mix
            .all
            .iter()
            .map(|one| (one.mean_us / 1e6, one.rate, one.class))
            .collect();
        assert_eq!(found, printed);
        for one in &mix.all {
            assert_eq!(one.spread, Spread::Exponential);
            // "The product of the service time and arrival rate is set to 0.9"
            let product = one.mean_us / 1e6 * one.rate;
            assert!((product - 0.9).abs() < 0.03, "{}: {product}", one.name);
        }
        // 92 % of the invocations are the image resizer's; 9.0 CPUs are busy.
        assert!((300.0 / mix.total_rate() - 0.923).abs() < 0.001);
        assert!((mix.own_load(16).unwrap() - 0.562).abs() < 0.001);
        // The same workload at another pace offers the same load.
        let slower = Applications::built_in(4.0).unwrap();
        assert!((slower.own_load(16).unwrap() - mix.own_load(16).unwrap()).abs() < 1e-12);
    }

    #[test]
    fn exponential_service_times_have_the_deviation_of_their_mean() {
        let table = b"application,class,service_ms,cv,rate\na,LS,10,exponential,1\n";
        let mix = Applications::parse("t", table, 1.0).unwrap();
        let made = Workload::new(&mix).make(amount(100_000)).unwrap();
        let all: Vec<f64> = made.iter().map(|one| one.service_us() as f64).collect();
        let mean = all.iter().sum::<f64>() / 1e5;
        let variance = all.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / 1e5;
        // Three standard errors of the mean: 3 / sqrt(100,000) = 0.0095
        assert!((mean / 10e3 - 1.0).abs() < 0.0095, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
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
