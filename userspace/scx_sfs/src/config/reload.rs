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
  scx_sfs reload --json | jq -r '.waiting[]'
  systemctl reload scx_sfs    # the same; it prints into the journal")]
pub struct ReloadCommand {
    /// Print JSON: the keys that have changed, and those that wait for a
    /// restart.
    #[arg(long)]
    json: bool,
}

impl ReloadCommand {
    /// Does it, and prints what has changed.
    ///
    /// # Errors
    ///
    /// No scx_sfs runs, this user may not change it, or a file is wrong.
    pub fn run(&self) -> Result<()> {
        let answer = serde_json::from_value(ask("reload", &[])?);
        let reloaded: Reloaded = answer.context(commands::ANOTHER_VERSION)?;
        if self.json {
            return commands::print(&format!("{}\n", serde_json::to_string(&reloaded)?));
        }
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

    /// A start, and the next texts of its file: each with what a reload then says, as what has
    /// changed and, behind `|`, what waits.
    #[test]
    fn what_can_change_does_and_the_rest_waits() {
        let start = "policy = \"sfs\"\nslice-min-us = 2000\n";
        let texts = [
            (start, " | "),
            (
                "policy = \"sfs\"\nslice-min-us = 3000\nlog-slice = false\n",
                "slice-min-us = 3000 (file:2) | ",
            ),
            (
                "policy = \"fair\"\nslice-us = 7000\n",
                "slice-us = 7000 (file:2), slice-min-us = 1000 (default) | policy = fair (file:1)",
            ),
            ("slice-us = 0\n", "file:1: slice-us: 0 is not in 1..=60000000"),
            ("policy = \"sfs\"\n", "slice-us = - (default) | "),
            (
                "slice-us = 8000\niat-window = 50\n",
                "the argument '--slice-us <US>' cannot be used with '--iat-window <N>' (slice-us is \
                 in file:1, iat-window is in file:2)",
            ),
            (
                "hint-listen = \"/run/a\"\nhint-rate = 5\n",
                "the following required arguments were not provided: --hint-listen <ADDR>, until a \
                 restart: systemctl restart scx_sfs",
            ),
        ];
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let arguments = ["scx_sfs", "--log-slice"];
        fs::write(&file, start).unwrap();
        let Ok(Request::Schedule(mut configuration)) = Request::read(arguments, &file) else {
            panic!("the start is refused");
        };
        for (text, want) in texts {
            fs::write(&file, text).unwrap();
            let before = configuration.report(None);
            let said = configuration.reload(arguments, &file).map_or_else(
                |sentence| {
                    assert_eq!(configuration.report(None), before, "{text}");
                    sentence
                },
                |done| format!("{} | {}", done.changed.join(", "), done.waiting.join(", ")),
            );
            let said = said.replace(&file.display().to_string(), "file");
            assert_eq!(said, want, "{text}");
        }
    }
}
