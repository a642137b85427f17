//! The page of all commands and options for the documentation, in Markdown.

use std::path::Path;
use std::{env, fs};

use anyhow::{ensure, Context, Result};
use clap::{Arg, Command};

/// Returns the page with the title `title`, the sentences `before` below it, and each command of
/// `command` that is not hidden. A comment in it names `test`, which compares and writes it.
#[must_use]
pub fn page(command: &Command, title: &str, before: &str, test: &str) -> String {
    let mut command = command.clone();
    command.build();
    let mut text = format!(
        "# {title}\n\n<!-- Made of the definition of the options; do not edit. With WRITE=1 the test\n\
         {test} writes this page. -->\n\n{before}\n"
    );
    describe(&command, command.get_name(), &mut text);
    text
}

/// Checks that the file `page` is `made`; with the variable WRITE set it becomes so. `command` is
/// what writes it, from the folder `userspace`.
///
/// # Errors
///
/// It is stale, or cannot be read or written.
pub fn keep(page: &Path, made: &str, command: &str) -> Result<()> {
    let name = page.display();
    if env::var_os("WRITE").is_some() {
        fs::write(page, made).with_context(|| format!("cannot write {name}"))?;
    }
    let found = fs::read_to_string(page).with_context(|| format!("cannot read {name}"))?;
    let mut lines = found.lines().zip(made.lines());
    let differ = lines.find(|(old, new)| old != new);
    ensure!(
        found == made,
        "{name} is stale ({differ:?}): in userspace, WRITE=1 {command}"
    );
    Ok(())
}

/// Describes `command`, which is called as `name`, and the commands below it.
fn describe(command: &Command, name: &str, text: &mut String) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(str::trim);
    let usage = usage.collect::<Vec<_>>().join("\n");
    *text += &format!(
        "\n## {name}\n\n{}\n\n```\n{usage}\n```\n",
        paragraphs(&about)
    );
    tables(command, name, text);
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        *text += &format!("\n```\n{}\n```\n", after.to_string().trim());
    }
    let below = command.get_subcommands();
    for one in below.filter(|one| !one.is_hide_set() && one.get_name() != "help") {
        describe(one, &format!("{name} {}", one.get_name()), text);
    }
}

/// Adds a table for each heading below which the help of `command` has options.
fn tables(command: &Command, name: &str, text: &mut String) {
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|one| !one.is_hide_set() && one.get_id() != "help")
        .collect();
    let mut headings: Vec<&str> = Vec::new();
    for argument in &arguments {
        let title = heading(argument);
        if !headings.contains(&title) {
            headings.push(title);
        }
    }
    for title in headings {
        *text +=
            &format!("\n### {title} of {name}\n\n| option | default | meaning |\n|---|---|---|\n");
        let of_it = arguments.iter().filter(|one| heading(one) == title);
        text.extend(of_it.map(|one| row(one)));
    }
}

/// The heading below which the help has an option.
fn heading(argument: &Arg) -> &str {
    argument
        .get_help_heading()
        .unwrap_or(if argument.is_positional() {
            "Arguments"
        } else {
            "Options"
        })
}

/// The row of an option: its names, its default, and what it means.
fn row(argument: &Arg) -> String {
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let names: Vec<String> = [short, long].into_iter().flatten().collect();
    let takes_value = argument.get_action().takes_values();
    let values = argument.get_value_names().filter(|_| takes_value);
    let values = values.map(|names| names.join(" ")).unwrap_or_default();
    let may_be_left_out = argument.get_num_args().is_some_and(|n| n.min_values() == 0);
    let values = match (values.as_str(), may_be_left_out) {
        ("", _) => values,
        (_, true) => format!("[={values}]"),
        (_, false) => format!(" {values}"),
    };
    let call = format!("{}{values}", names.join(", "));
    let defaults = argument.get_default_values().iter();
    let defaults: Vec<String> = defaults
        .filter(|_| takes_value && !argument.is_hide_default_value_set())
        .filter(|value| !value.is_empty())
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut meaning = escaped(&words(&help));
    meaning += &possible(argument);
    if let Some(variable) = argument.get_env() {
        meaning += &format!("; environment: `{}`", variable.to_string_lossy());
    }
    format!(
        "| `{}` | {} | {meaning} |\n",
        call.trim(),
        defaults.join(", ")
    )
}

/// The values that an option takes, if they are a list, with what they mean.
fn possible(argument: &Arg) -> String {
    if argument.is_hide_possible_values_set() || !argument.get_action().takes_values() {
        return String::new();
    }
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let shown: Vec<String> = shown
        .map(|value| match value.get_help() {
            Some(help) => {
                let help = escaped(&words(&help.to_string()));
                format!("<br>`{}`: {help}", value.get_name())
            }
            None => format!("<br>`{}`", value.get_name()),
        })
        .collect();
    shown.concat()
}

/// Returns the paragraphs of a text, each in one line.
fn paragraphs(text: &str) -> String {
    let lines: Vec<String> = text.split("\n\n").map(|one| escaped(&words(one))).collect();
    lines.join("\n\n")
}

/// Returns the words of a text, without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns text in which nothing means anything to Markdown, but for what is in backticks.
fn escaped(text: &str) -> String {
    let mut in_code = false;
    let mut result = String::new();
    for char in text.chars() {
        in_code ^= char == '`';
        if char == '|' || !in_code && "\\*_<>[]".contains(char) {
            result.push('\\');
        }
        result.push(char);
    }
    result
}
