//! The configuration: defaults, files, environment, options, and what `scx_sfs set` has changed
//! since. Later ones win. Each value keeps where it comes from.
//!
//! | module | purpose |
//! |---|---|
//! | [`keys`] | the keys, which are the names of the options |
//! | [`file`] | files |
//! | [`layers`] | values from several sources |
//! | [`report`] | what `scx_sfs config` prints |
//! | [`template`] | the file as delivered, with all keys |
//! | [`commands`] | `scx_sfs config` and `scx_sfs set` |
//! | [`reload`] | `scx_sfs reload` |
//! | [`check`] | `scx_sfs check` |

pub mod check;
pub mod commands;
pub mod file;
pub mod keys;
pub mod layers;
pub mod reload;
pub mod report;
pub mod template;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches};

use crate::options::{effects, Options};
use crate::settings::Settings;
use layers::{Given, Replaced, Source};

/// Why there is no configuration.
#[derive(Debug)]
pub enum Refusal {
    /// The command line is wrong, or contradicts the files.
    Options(clap::Error),
    /// A file is: a sentence that names it.
    File(String),
}

/// A configuration, with the source of each value.
#[derive(Debug, Clone)]
pub struct Configuration {
    command: Command,
    files: Vec<Given>,
    /// Keys of the first file that the second one has replaced.
    between_files: Vec<Replaced>,
    environment: Vec<Given>,
    given: Vec<Given>,
    set: Vec<Given>,
    in_force: InForce,
}

/// What the layers come to.
#[derive(Debug, Clone)]
struct InForce {
    options: Options,
    settings: Settings,
    matches: ArgMatches,
    kept: Vec<Given>,
    replaced: Vec<Replaced>,
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Request {
    /// To schedule, with this configuration.
    Schedule(Box<Configuration>),
    /// Something else, for which no configuration is read.
    Other(Box<Options>),
}

impl Request {
    /// Reads a command line, whose first argument is the program's name. Reads the files if it
    /// asks for scheduling: `usual`, if it exists, then that of `--config`.
    ///
    /// # Errors
    ///
    /// The command line or a file is wrong.
    pub fn read<T>(arguments: impl IntoIterator<Item = T>, usual: &Path) -> Result<Self, Refusal>
    where
        T: Into<OsString> + Clone,
    {
        let folders = std::env::var("STATE_DIRECTORY").unwrap_or_default();
        let command = keys::command_with_state(&folders);
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let matches = lenient(&command, &arguments).map_err(Refusal::Options)?;
        if !is_about_scheduling(&matches) {
            let options = Options::from_arguments(arguments).map_err(Refusal::Options)?;
            return Ok(Self::Other(Box::new(options)));
        }
        let named = matches.get_one::<PathBuf>("config");
        let ignore_unknown = matches.get_flag("ignore_unknown");
        let optional = std::iter::once((usual, true));
        let paths = optional.chain(named.map(|path| (path.as_path(), false)));
        let mut files = Vec::new();
        for (path, is_optional) in paths {
            let layer = file::read(&command, path, is_optional, ignore_unknown);
            files.push(layer.map_err(Refusal::File)?);
        }
        // A key of the second file replaces those of the first.
        let layers: Vec<&[Given]> = files.iter().map(Vec::as_slice).collect();
        let (files, between_files) = layers::merge(&command, &layers);
        let [environment, given] = layers::of_matches(&command, &matches);
        let mut configuration = Configuration::new(command, files, environment, given)?;
        configuration.between_files = between_files;
        Ok(Self::Schedule(Box::new(configuration)))
    }
}

/// Parses a command line that may need a key of a file: what an option requires may be there.
fn lenient(command: &Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    match command.clone().try_get_matches_from(arguments) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let lenient = command.clone().ignore_errors(true);
            let matches = lenient.try_get_matches_from(arguments)?;
            if matches.subcommand_name().is_some() {
                return Err(error);
            }
            Ok(matches)
        }
        result => result,
    }
}

fn is_about_scheduling(matches: &ArgMatches) -> bool {
    let is_flag = |id| matches.get_flag(id);
    let informs = is_flag("version") || is_flag("help_stats");
    let others = ["monitor", "completions"];
    let other = others.iter().any(|id| matches.contains_id(id));
    !informs && !other && matches.subcommand_name().is_none()
}

impl Configuration {
    fn new(
        command: Command,
        files: Vec<Given>,
        environment: Vec<Given>,
        given: Vec<Given>,
    ) -> Result<Self, Refusal> {
        let layers = [&files[..], &environment, &given];
        let in_force = match resolve(&command, &layers) {
            Ok(in_force) => in_force,
            Err(why) => return Err(blame(&command, &files, why)),
        };
        Ok(Self {
            command,
            files,
            between_files: Vec::new(),
            environment,
            given,
            set: Vec::new(),
            in_force,
        })
    }

    /// Returns the options in force.
    pub fn options(&self) -> &Options {
        &self.in_force.options
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> &Settings {
        &self.in_force.settings
    }

    /// Returns `KEY = VALUE (FILE:LINE)` for each key of a file that counts.
    pub fn from_files(&self) -> Vec<String> {
        let kept = self.in_force.kept.iter();
        let of_files = kept.filter(|one| matches!(one.source, Source::File { .. }));
        of_files
            .map(|one| self.sentence(&keys::key_of(&one.id)))
            .collect()
    }

    /// Returns the values of a list as they were given.
    pub fn values(&self, key: &str) -> Vec<String> {
        let arg = keys::option_of(&self.command, key).map(keys::id);
        let raw = arg.map(|id| layers::raw(&self.in_force.matches, &id));
        let texts = raw.unwrap_or_default().into_iter();
        texts
            .map(|value| value.to_string_lossy().into_owned())
            .collect()
    }

    /// Gives a key another value while the scheduler is loaded; a list is separated by commas.
    /// Without a value, the key gets back the one that it had at the start.
    ///
    /// # Errors
    ///
    /// A sentence: there is no such key, it cannot change, or the value is wrong. Nothing has
    /// changed.
    pub fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        let command = &self.command;
        let arg = keys::option_of(command, key).ok_or_else(|| keys::unknown(command, key))?;
        let id = keys::id(arg);
        if !keys::is_changeable(&id) {
            return Err(only_at_start(key));
        }
        let mut set = self.set.clone();
        set.retain(|other| other.id != id);
        if let Some(value) = value {
            let values = match keys::is_list(arg) {
                true => value.split(',').map(OsString::from).collect(),
                false => vec![OsString::from(value)],
            };
            keys::check(command, arg, &values).map_err(|why| format!("{key}: {why}"))?;
            let source = Source::Set;
            let given = Given { id, values, source };
            // The last one wins here as well.
            let (mut kept, _) = layers::merge(command, &[&set, std::slice::from_ref(&given)]);
            std::mem::swap(&mut set, &mut kept);
        }
        let layers = [&self.files[..], &self.environment, &self.given, &set];
        let next = resolve(command, &layers).map_err(|why| not_now(key, &why.error))?;
        if let Some(fixed) = self.fixed_change(&next) {
            return Err(format!(
                "{key} contradicts {fixed}; {}",
                only_at_start(&fixed)
            ));
        }
        self.in_force = next;
        self.set = set;
        Ok(())
    }

    /// Returns a key that would change and cannot.
    fn fixed_change(&self, next: &InForce) -> Option<String> {
        let changes =
            |id: &&str| layers::raw(&self.in_force.matches, id) != layers::raw(&next.matches, id);
        let ids = keys::keys(&self.command).map(|arg| arg.get_id().as_str());
        let mut fixed = ids.filter(|id| !keys::is_changeable(id));
        fixed.find(changes).map(keys::key_of)
    }
}

/// Returns the sentence for a key that cannot change while the scheduler is loaded.
fn only_at_start(key: &str) -> String {
    format!(
        "{key} cannot change while scx_sfs is loaded: write it to {}, or give it as an option, \
         and restart scx_sfs (systemctl restart scx_sfs)",
        file::USUAL
    )
}

/// Returns the sentence for a change that contradicts another key, or needs one.
fn not_now(key: &str, error: &clap::Error) -> String {
    let sentence = one_line(error);
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return format!(
            "{key} has no effect without what scx_sfs was not started with: {sentence}"
        );
    }
    sentence
}

/// Why layers come to nothing.
struct Contradiction {
    error: clap::Error,
    /// The keys that were kept.
    kept: Vec<Given>,
}

/// Parses what the layers come to.
fn resolve(command: &Command, layers: &[&[Given]]) -> Result<InForce, Box<Contradiction>> {
    let (kept, replaced) = layers::merge(command, layers);
    match parse(command, layers, &kept) {
        Ok((matches, options, settings)) => Ok(InForce {
            options,
            settings,
            matches,
            kept,
            replaced,
        }),
        Err(error) => Err(Box::new(Contradiction { error, kept })),
    }
}

fn parse(
    command: &Command,
    layers: &[&[Given]],
    kept: &[Given],
) -> Result<(ArgMatches, Options, Settings), clap::Error> {
    let mut command = command.clone();
    let arguments = layers::arguments(&command, kept);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let options = Options::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
    for one in kept {
        // A key of a file may lose its effect by an option: that is how options win.
        let excused = matches!(one.source, Source::File { .. })
            && has_effect_in_files(&command, layers[0], &one.id);
        let off = one.values == ["false"];
        if let (false, false, Some(why)) = (off, excused, effects::no_effect(&options, &one.id)) {
            let sentence = format!("--{} has no effect {why}", keys::key_of(&one.id));
            return Err(command.error(ErrorKind::ArgumentConflict, sentence));
        }
    }
    let settings = options
        .settings()
        .map_err(|error| command.error(ErrorKind::ArgumentConflict, format!("{error:#}")))?;
    Ok((matches, options, settings))
}

fn has_effect_in_files(command: &Command, files: &[Given], id: &str) -> bool {
    let arguments = layers::arguments(command, files);
    let matches = command.clone().try_get_matches_from(arguments);
    let options = matches.and_then(|matches| Options::from_arg_matches(&matches));
    options.is_ok_and(|options| effects::no_effect(&options, id).is_none())
}

/// Says whether the files contradict themselves, or the options them.
fn blame(command: &Command, files: &[Given], why: Box<Contradiction>) -> Refusal {
    if !files.is_empty() && resolve(command, &[files]).is_err() {
        let of_files = resolve(command, &[files]).err();
        let why = of_files.unwrap_or(why);
        let sentence = one_line(&why.error);
        return Refusal::File(format!("{sentence}{}", places(&why.kept, &sentence)));
    }
    let sentence = one_line(&why.error);
    let places = places(&why.kept, &sentence);
    if places.is_empty() {
        return Refusal::Options(why.error);
    }
    let mut command = command.clone();
    Refusal::Options(command.error(why.error.kind(), format!("{sentence}{places}")))
}

/// Returns in parentheses where the keys are that a sentence names, if they are in files.
fn places(kept: &[Given], sentence: &str) -> String {
    let is_named = |one: &&Given| {
        let name = format!("--{}", keys::key_of(&one.id));
        let mut words = sentence.split([' ', '\'', '=', '\u{a0}']);
        words.any(|word| word == name)
    };
    let from_files = kept
        .iter()
        .filter(|one| matches!(one.source, Source::File { .. }));
    let places = from_files.filter(is_named).map(|one| {
        let key = keys::key_of(&one.id);
        format!("{key} is in {}", one.source)
    });
    let places: Vec<String> = places.collect();
    if places.is_empty() {
        return String::new();
    }
    format!(" ({})", places.join(", "))
}

/// Returns clap's message as one line without its usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty());
    let words: Vec<&str> = lines.map(str::trim).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
