//! The format of summary files: indented JSON, with arrays of numbers and inner
//! objects on one line, and fields in the order of their declaration.

use super::{Summary, SCHEMA};
use crate::input;
use anyhow::{bail, Context, Result};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};
use std::path::Path;

/// The text of a summary, or of a list of them.
///
/// # Errors
/// None in practice: JSON can represent everything in a summary.
pub fn to_text<T: Serialize>(value: &T) -> Result<String> {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Compact::default());
    value.serialize(&mut serializer)?;
    bytes.push(b'\n');
    Ok(String::from_utf8(bytes)?)
}

/// Reads a summary.
///
/// # Errors
/// If the file cannot be read or is not a summary of our format.
pub fn read(path: &Path) -> Result<Summary> {
    let bytes = input::read(path)?;
    let file = path.display();
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).with_context(|| format!("{file} is not JSON"))?;
    let schema = value.get("schema").and_then(|schema| schema.as_str());
    if schema != Some(SCHEMA) {
        bail!("{file} is not a summary: its schema is not {SCHEMA}");
    }
    // Parsed again from the text, for a message with the line.
    serde_json::from_slice(&bytes).with_context(|| format!("{file} is not a summary"))
}

/// Depth to which objects are indented; deeper ones are on one line: one
/// function, one set of percentiles.
const INDENTED: usize = 2;

/// Indents like [`PrettyFormatter`], except within arrays and inner objects.
#[derive(Default)]
struct Compact<'a> {
    pretty: PrettyFormatter<'a>,
    depth: usize,
}

impl Compact<'_> {
    fn is_inner(&self) -> bool {
        self.depth > INDENTED
    }
}

impl Formatter for Compact<'_> {
    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        w.write_all(if first { b"" } else { b", " })
    }

    fn begin_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_inner() {
            return w.write_all(b"{");
        }
        self.pretty.begin_object(w)
    }

    fn end_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        let inner = self.is_inner();
        self.depth -= 1;
        if inner {
            return w.write_all(b"}");
        }
        self.pretty.end_object(w)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if self.is_inner() {
            return w.write_all(if first { b"" } else { b", " });
        }
        self.pretty.begin_object_key(w, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(w)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        if self.is_inner() {
            return Ok(());
        }
        self.pretty.end_object_value(w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_inner_objects_are_on_one_line() {
        let value =
            serde_json::json!({"a": [1.5, 2], "b": {"c": {"d": 1, "e": {"f": []}}, "g": 2}});
        let want =
            "{\n  \"a\": [1.5, 2],\n  \"b\": {\n    \"c\": {\"d\": 1, \"e\": {\"f\": []}},\n    \
                    \"g\": 2\n  }\n}\n";
        assert_eq!(to_text(&value).unwrap(), want);
        let list = serde_json::json!([{"a": 1}, {"a": 2}]);
        assert_eq!(
            to_text(&list).unwrap(),
            "[{\n  \"a\": 1\n}, {\n  \"a\": 2\n}]\n"
        );
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        for text in ["", "{", "[]", "{\"schema\": \"other/1\"}"] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", read(&path).unwrap_err());
            assert!(error.contains("x.json is not"), "{error}");
        }
        std::fs::write(&path, format!("{{\"schema\": \"{SCHEMA}\"}}")).unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("missing field"));
    }
}
