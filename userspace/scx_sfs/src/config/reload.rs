//! `scx_sfs reload`, which is `systemctl reload scx_sfs`: the files are read again, and the keys
//! that can change at run time take effect.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use sfs_statistics::ask;

use super::layers::{self, Given};
use super::{commands, keys, one_line, resolve, Configuration, Refusal, Request};

/// What a reload comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// `KEY = VALUE (SOURCE)` of each key that has another value now.
    pub changed: Vec<String>,
    /// The same of each key that will have another value after a restart.
    pub waiting: Vec<String>,
}

impl Configuration {
    /// Reads the files again, as a start with this command line would, and takes over the keys
    /// that can change while the scheduler is loaded. `scx_sfs set` still wins over them.
    ///
    /// # Errors
    ///
    /// A sentence: a file is wrong. Nothing has changed.
    pub fn reload<T>(
        &mut self,
        arguments: impl IntoIterator<Item = T>,
        usual: &Path,
    ) -> Result<Reloaded, String>
    where
        T: Into<OsString> + Clone,
    {
        let fresh = match Request::read(arguments, usual) {
            Ok(Request::Schedule(fresh)) => *fresh,
            Ok(Request::Other(_)) => return Err("this command line does not schedule".to_owned()),
            Err(Refusal::File(sentence)) => return Err(sentence),
            Err(Refusal::Options(error)) => return Err(one_line(&error)),
        };
        let can_change = |one: &&Given| keys::is_changeable(&one.id);
        let new = fresh.files.iter().filter(can_change);
        let old = self.files.iter().filter(|one| !can_change(one));
        let files: Vec<Given> = new.chain(old).cloned().collect();
        let layers = [&files[..], &self.environment, &self.given, &self.set];
        let next = resolve(&self.command, &layers).map_err(|why| {
            let sentence = one_line(&why.error);
            format!("{sentence}, until a restart: systemctl restart scx_sfs")
        })?;
        let before = std::mem::replace(&mut self.in_force, next);
        self.files = files;
        self.between_files.clone_from(&fresh.between_files);
        let values = |matches, arg| layers::raw(matches, &keys::id(arg));
        let now = &self.in_force.matches;
        let mut reloaded = Reloaded::default();
        for arg in keys::keys(&self.command) {
            let key = keys::key_of(&keys::id(arg));
            if values(now, arg) != values(&before.matches, arg) {
                reloaded.changed.push(self.sentence(&key));
            } else if !keys::is_changeable(&keys::id(arg))
                && values(now, arg) != values(&fresh.in_force.matches, arg)
            {
                reloaded.waiting.push(fresh.sentence(&key));
            }
        }
        Ok(reloaded)
    }
}

/// Read the configuration files again, and apply the keys that can change at run time.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
It prints the keys that have changed, and those that need a restart. If a file
is wrong, nothing changes. Only root and the user that runs scx_sfs may do this.

Examples:
  scx_sfs reload
  systemctl reload scx_sfs    # the same; it prints into the journal")]
pub struct ReloadCommand {}

impl ReloadCommand {
    /// Does it, and prints what has changed.
    ///
    /// # Errors
    ///
    /// No scx_sfs runs, this user may not change it, or a file is wrong.
    pub fn run(&self) -> Result<()> {
        let answer = serde_json::from_value(ask("reload", &[])?);
        let reloaded: Reloaded = answer.context(commands::ANOTHER_VERSION)?;
        let changed = reloaded.changed.iter().map(|one| format!("{one}\n"));
        let waiting = reloaded.waiting.iter();
        let waiting = waiting.map(|one| format!("needs systemctl restart scx_sfs: {one}\n"));
        let text: String = changed.chain(waiting).collect();
        commands::print(if text.is_empty() {
            "nothing has changed\n"
        } else {
            &text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const START: &str = "policy = \"sfs\"\nslice-min-us = 2000\n";

    /// A start with this file, options, and the next texts of the file: each with what a reload
    /// then says, as `KEY = VALUE` of what has changed and, behind `|`, of what waits.
    fn reloads(options: &str, texts: &[(&str, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let arguments = || std::iter::once("scx_sfs").chain(options.split_whitespace());
        fs::write(&file, START).unwrap();
        let Ok(Request::Schedule(mut configuration)) = Request::read(arguments(), &file) else {
            panic!("the start is refused");
        };
        let place = format!("{}", file.display());
        for (text, want) in texts {
            fs::write(&file, text).unwrap();
            let before = configuration.report(None);
            let said = match configuration.reload(arguments(), &file) {
                Ok(Reloaded { changed, waiting }) => {
                    format!("{} | {}", changed.join(", "), waiting.join(", "))
                }
                Err(sentence) => {
                    assert_eq!(configuration.report(None), before, "{text}");
                    sentence
                }
            };
            assert_eq!(said.replace(&place, "file"), *want, "{text}");
        }
    }

    #[test]
    fn what_can_change_does_and_the_rest_waits() {
        let with_slice = "policy = \"fair\"\nslice-us = 7000\n";
        let fixed = "policy = \"sfs\"\nslice-us = 8000\niat-window = 50\n";
        reloads(
            "--log-slice",
            &[
                (START, " | "),
                (
                    "policy = \"sfs\"\nslice-min-us = 3000\nlog-slice = false\n",
                    "slice-min-us = 3000 (file:2) | ",
                ),
                (
                    with_slice,
                    "slice-us = 7000 (file:2), slice-min-us = 1000 (default) | policy = fair (file:1)",
                ),
                (
                    "slice-uss = 5\n",
                    "file:1: there is no key slice-uss; is slice-us meant? (--ignore-unknown leaves \
                     out the keys of other versions)",
                ),
                ("slice-us = 0\n", "file:1: slice-us: 0 is not in 1..=60000000"),
                (with_slice, " | policy = fair (file:1)"),
                (
                    "policy = \"sfs\"\n",
                    "slice-us = - (default) | ",
                ),
                (fixed, "the argument '--slice-us <US>' cannot be used with '--iat-window <N>' \
                    (slice-us is in file:2, iat-window is in file:3)"),
            ],
        );
    }

    #[test]
    fn a_key_that_needs_another_one_waits_for_a_restart() {
        let both = "policy = \"sfs\"\nhint-listen = \"/run/a\"\nhint-rate = 5\n";
        let said = "the following required arguments were not provided: --hint-listen <ADDR>, \
            until a restart: systemctl restart scx_sfs";
        reloads("", &[(both, said)]);
    }
}
