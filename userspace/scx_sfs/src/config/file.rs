//! Configuration files: TOML, in which each key is the name of an option.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Arg, Command};
use toml::de::{DeTable, DeValue};
use tracing::warn;

use super::keys;
use super::layers::{Given, Source};

/// The file that is read if it exists.
pub const USUAL: &str = "/etc/scx_sfs/config.toml";

/// A longer file is not read: all keys with their comments take a tenth of it.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file. `is_optional`: it need not exist. `ignore_unknown`: keys of other versions are
/// logged and left out.
///
/// # Errors
///
/// A sentence with the file and the line: the file cannot be read or is not TOML, or a key is
/// unknown or has a wrong value.
pub fn read(
    command: &Command,
    path: &Path,
    is_optional: bool,
    ignore_unknown: bool,
) -> Result<Vec<Given>, String> {
    let text = match text_of(path) {
        Ok(text) => text,
        Err(error) if is_optional && error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let file = path.display();
            return Err(format!("cannot read the configuration {file}: {error}"));
        }
    };
    let (given, unknown) = parse(command, path, &text)?;
    if let [first, ..] = unknown.as_slice() {
        if !ignore_unknown {
            return Err(format!(
                "{first} (--ignore-unknown leaves out the keys of other versions)"
            ));
        }
        for sentence in &unknown {
            warn!("left out of the configuration: {sentence}");
        }
    }
    Ok(given)
}

fn text_of(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    fs::read_to_string(path)
}

/// Returns the keys of a file, in its order, and a sentence for each key that is unknown.
fn parse(command: &Command, path: &Path, text: &str) -> Result<(Vec<Given>, Vec<String>), String> {
    let place = |at: usize| format!("{}:{}", path.display(), line_of(text, at));
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message = error.message().replace('\n', "; ");
        format!("{} is no TOML: {message}", place(at))
    })?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let (mut given, mut unknown) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        let at = key.span().start;
        let name = key.get_ref().as_ref();
        let Some(arg) = keys::option_of(command, name) else {
            unknown.push(format!("{}: {}", place(at), keys::unknown(command, name)));
            continue;
        };
        let values = values_of(arg, value.get_ref())
            .and_then(|values| keys::check(command, arg, &values).map(|()| values))
            .map_err(|why| format!("{}: {name}: {why}", place(at)))?;
        given.push(Given {
            id: keys::id(arg),
            values,
            source: Source::File {
                path: PathBuf::from(path),
                line: line_of(text, at),
            },
        });
    }
    Ok((given, unknown))
}

/// Returns the number of the line with this byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Returns the values of a key as those of its option.
fn values_of(arg: &Arg, value: &DeValue<'_>) -> Result<Vec<OsString>, String> {
    match value {
        DeValue::Array(items) if keys::is_list(arg) => {
            items.iter().map(|item| scalar(item.get_ref())).collect()
        }
        DeValue::Array(_) => Err("want one value, not a list".to_owned()),
        DeValue::Boolean(_) if !takes_booleans(arg) => {
            Err("want a value other than true or false".to_owned())
        }
        value => Ok(vec![scalar(value)?]),
    }
}

/// Returns whether true and false are values of the option.
fn takes_booleans(arg: &Arg) -> bool {
    let values = arg.get_possible_values();
    keys::is_flag(arg) || values.iter().any(|value| value.get_name() == "true")
}

fn scalar(value: &DeValue<'_>) -> Result<OsString, String> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Boolean(flag) => Ok(flag.to_string().into()),
        // As it is written, without the separators of digits.
        DeValue::Integer(number) if number.radix() == 10 => {
            Ok(number.as_str().replace('_', "").into())
        }
        DeValue::Integer(_) => Err("want a decimal number; a mode is a string, as \"0660\"".into()),
        DeValue::Float(number) => Ok(number.as_str().replace('_', "").into()),
        other => Err(format!(
            "want a number, a string or a list, not a {}",
            other.type_str()
        )),
    }
}
