//! What `scx_sfs config` prints: each key, its value, and where that comes from.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Arg;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sfs_text::{line, LINE_CHARS};

use super::keys;
use super::layers::{self, Source};
use super::Configuration;

/// Width of the column of keys: that of the longest key and a star.
const KEY_CHARS: usize = 20;

/// Width of the column of values, which long ones exceed.
const VALUE_CHARS: usize = 24;

/// A configuration, as it is printed and sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The process that schedules with it; None: none does.
    pub pid: Option<u32>,
    /// Version of the program.
    pub version: String,
    /// The keys, in the order of the help.
    pub keys: Vec<KeyReport>,
}

/// A key of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyReport {
    /// Its name, which is that of the option.
    pub key: String,
    /// Its value; null: none, which has a meaning of its own for each key (see the help).
    pub value: Value,
    /// Where the value comes from.
    pub from: Source,
    /// Whether `scx_sfs set` can change it.
    pub at_run_time: bool,
    /// Values that have given way to this one, or to a key that contradicts theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ReplacedReport>,
}

/// A value that has given way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplacedReport {
    /// The value.
    pub value: String,
    /// Where it comes from.
    pub from: Source,
    /// The key that it has given way to.
    pub by: String,
}

impl Configuration {
    /// Returns what is in force in process `pid`, or would be; None: in no process.
    pub fn report(&self, pid: Option<u32>) -> Report {
        Report {
            pid,
            version: sfs_bpf::version(),
            keys: keys::keys(&self.command)
                .map(|arg| self.report_key(arg))
                .collect(),
        }
    }

    fn report_key(&self, arg: &Arg) -> KeyReport {
        let id = keys::id(arg);
        let in_force = &self.in_force;
        let given = in_force.kept.iter().find(|one| one.id == id);
        let values = match given {
            Some(given) => given.values.clone(),
            None => layers::raw(&in_force.matches, &id),
        };
        let all = in_force.replaced.iter().chain(&self.between_files);
        let of_key = all.filter(|one| one.given.id == id);
        let replaced = of_key.map(|one| ReplacedReport {
            value: one.given.text(),
            from: one.given.source.clone(),
            by: keys::key_of(&one.by.id),
        });
        KeyReport {
            key: keys::key_of(&id),
            value: value_of(arg, &values),
            from: given.map_or(Source::Default, |given| given.source.clone()),
            at_run_time: keys::is_changeable(&id),
            replaced: replaced.collect(),
        }
    }

    /// Returns `KEY = VALUE (SOURCE)` for a key that exists.
    pub fn sentence(&self, key: &str) -> String {
        let report = self.report(None);
        let found = report.keys.iter().find(|one| one.key == key);
        found.map_or_else(String::new, KeyReport::sentence)
    }
}

/// Returns the values of a key as JSON: a number where they are one.
fn value_of(arg: &Arg, values: &[OsString]) -> Value {
    let scalar = |value: &OsString| {
        let text = value.to_string_lossy();
        let parsed = serde_json::from_str(&text).ok();
        let plain = parsed.filter(|value: &Value| value.is_number() || value.is_boolean());
        plain.unwrap_or_else(|| text.into_owned().into())
    };
    if keys::is_list(arg) {
        return values.iter().map(scalar).collect();
    }
    values.first().map_or(Value::Null, scalar)
}

impl KeyReport {
    /// Returns the value as a person would write it.
    pub fn text(&self) -> String {
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = match &self.value {
            Value::Null => "-".to_owned(),
            Value::Array(values) if values.is_empty() => "-".to_owned(),
            Value::Array(values) => values.iter().map(word).collect::<Vec<_>>().join(","),
            value => word(value),
        };
        line(text, LINE_CHARS)
    }

    /// Returns `KEY = VALUE (SOURCE)`.
    pub fn sentence(&self) -> String {
        format!("{} = {} ({})", self.key, self.text(), self.from)
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let star = if self.at_run_time { "*" } else { "" };
        let name = format!("{}{star}", self.key);
        let text = self.text();
        writeln!(out, "{name:KEY_CHARS$} {text:VALUE_CHARS$} {}", self.from)?;
        for one in &self.replaced {
            let value = line(&one.value, LINE_CHARS);
            let from = &one.from;
            writeln!(
                out,
                "{:KEY_CHARS$}   not {value} ({from}): {} wins",
                "", one.by
            )?;
        }
        Ok(())
    }
}

impl Report {
    /// Prints a line for each key.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        match self.pid {
            Some(pid) => writeln!(out, "# in force in process {pid}, scx_sfs {}", self.version)?,
            None => writeln!(out, "# of the next start, scx_sfs {}", self.version)?,
        }
        writeln!(
            out,
            "# *: scx_sfs set changes it without a reload; -: no value"
        )?;
        self.keys.iter().try_for_each(|one| one.print(out))
    }
}
