//! The configuration file as delivered: all keys with their meaning and their defaults, each
//! commented out, so that a new version may have other defaults.

use clap::builder::StyledStr;
use clap::Arg;

use super::keys;

/// Width of the comments, in characters.
const WIDTH: usize = 78;

const HEAD: &str = "\
# Configuration of scx_sfs. Each key is an option of the same name (scx_sfs --help);
# options on the command line win. Unknown keys are errors, unless
# --ignore-unknown is given. Takes effect with: systemctl reload scx_sfs, which
# tells the keys that need a restart.
# What is in force, and where each value comes from: scx_sfs config
#
# Keys without a value here have no default.
";

/// Returns the text of the file.
pub fn text() -> String {
    let command = keys::command();
    keys::keys(&command).fold(HEAD.to_owned(), |text, arg| text + &entry(arg))
}

/// Returns the comment of a key and the key with its default.
fn entry(arg: &Arg) -> String {
    let mut text = String::from("\n");
    let help = arg.get_help().map(StyledStr::to_string);
    let long = arg.get_long_help().map(StyledStr::to_string);
    let words = long.or(help).unwrap_or_default();
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &format!("{line}\n");
            line = String::from("#");
        }
        line += &format!(" {word}");
    }
    text += &format!("{line}\n");
    let values = arg.get_possible_values();
    if !values.is_empty() && !keys::is_flag(arg) {
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        text += &format!("# One of: {}\n", names.join(", "));
    }
    text + &format!(
        "#{} ={}\n",
        arg.get_long().unwrap_or_default(),
        default_of(arg)
    )
}

/// Returns a blank and the default as TOML, or nothing without one.
fn default_of(arg: &Arg) -> String {
    let defaults = arg.get_default_values();
    let texts = defaults.iter().map(|value| value.to_string_lossy());
    let values: Vec<String> = match arg.get_value_delimiter() {
        Some(delimiter) if keys::is_list(arg) => texts
            .flat_map(|text| text.split(delimiter).map(toml_of).collect::<Vec<_>>())
            .collect(),
        _ => texts.map(|text| toml_of(&text)).collect(),
    };
    match values.as_slice() {
        [] => String::new(),
        [value] if !keys::is_list(arg) => format!(" {value}"),
        values => format!(" [{}]", values.join(", ")),
    }
}

/// Returns a value as TOML: a number, true, false, or a string. A mode such as 0600 is a string.
fn toml_of(text: &str) -> String {
    let is_plain = serde_json::from_str::<serde_json::Value>(text)
        .is_ok_and(|value| value.is_number() || value.is_boolean());
    if is_plain {
        text.to_owned()
    } else {
        format!("\"{text}\"")
    }
}
