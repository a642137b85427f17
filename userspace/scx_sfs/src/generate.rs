//! What a package brings with the program, made from the definition of the options: man pages,
//! completions, and configuration files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use sfs_bpf::NAME;
use sfs_check::{Platform, PLATFORMS};

use crate::config::{keys, template};

/// The section of the manual for commands of an administrator.
const SECTION: &str = "8";

/// Where each shell looks for the completions of a program, below `share`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/scx_sfs"),
    (Shell::Zsh, "zsh/site-functions/_scx_sfs"),
    (Shell::Fish, "fish/vendor_completions.d/scx_sfs.fish"),
];

/// The end of each man page.
const SEE_ALSO: &str = "\
.SH FILES
.TP
\\fI/etc/scx_sfs/config.toml\\fR
Configuration; each key is an option of the same name. \\fBscx_sfs config \\-\\-example\\fR prints all
keys.
.TP
\\fI/run/scx/root/stats\\fR
Socket for statistics and \\fBscx_sfs set\\fR.
.SH SEE ALSO
\\fBsystemctl\\fR(1), \\fBsched\\fR(7), \\fBcgroups\\fR(7)
";

/// Writes all of it into a folder, at the places that they have below `share`.
///
/// # Errors
///
/// A file cannot be written.
pub fn into(folder: &Path) -> Result<()> {
    let write = |place: String, text: Vec<u8>| -> Result<()> {
        let path = folder.join(place);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    };
    for (name, text) in man_pages()? {
        write(format!("man/man{SECTION}/{name}.{SECTION}"), text)?;
    }
    for (shell, place) in COMPLETIONS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut keys::command(), NAME, &mut script);
        write(place.to_owned(), script)?;
    }
    let examples = format!("doc/{NAME}/examples");
    write(format!("{examples}/config.toml"), template::text().into())?;
    for platform in PLATFORMS {
        write(
            format!("{examples}/{}", platform.example),
            example(&platform).into(),
        )?;
    }
    Ok(())
}

/// Returns the man pages: that of the program, and one of each command.
fn man_pages() -> Result<Vec<(String, Vec<u8>)>> {
    let command = keys::command();
    let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
    let pages = std::iter::once(&command).chain(commands.filter(|one| one.get_name() != "help"));
    pages.map(|one| Ok((name_of(one), page(one)?))).collect()
}

/// Returns the name of a command's page: `scx_sfs`, or `scx_sfs-check`.
fn name_of(command: &Command) -> String {
    match command.get_name() {
        NAME => NAME.to_owned(),
        name => format!("{NAME}-{name}"),
    }
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let name = name_of(command);
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section(SECTION)
        .source(format!("{NAME} {}", env!("CARGO_PKG_VERSION")))
        .manual("System Administration");
    man.render(&mut text).context("cannot make a man page")?;
    text.extend(SEE_ALSO.as_bytes());
    Ok(text)
}

/// Returns the example configuration of a platform.
fn example(platform: &Platform) -> String {
    let mut text = format!(
        "# scx_sfs on a machine with {}: functions are the sandboxes in these cgroups.\n\
         # A copy of it is /etc/scx_sfs/config.toml; scx_sfs check says whether it fits.\n",
        platform.name
    );
    for line in platform.lines() {
        text += &line;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Request;

    #[test]
    fn each_command_has_a_page_and_each_option_is_on_one() {
        let pages = man_pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in [
            "scx_sfs",
            "scx_sfs-check",
            "scx_sfs-config",
            "scx_sfs-set",
            "scx_sfs-hint",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"scx_sfs-generate"), "{names:?}");
        let (_, text) = &pages[0];
        let text = String::from_utf8_lossy(text).replace("\\-", "-");
        for arg in keys::keys(&keys::command()) {
            let option = format!("--{}", arg.get_long().unwrap());
            assert!(text.contains(&option), "{option}");
        }
        assert!(
            text.contains("another sched_ext scheduler is loaded"),
            "{text}"
        );
    }

    #[test]
    fn everything_is_at_its_place() {
        let folder = tempfile::tempdir().unwrap();
        into(folder.path()).unwrap();
        for place in [
            "man/man8/scx_sfs.8",
            "man/man8/scx_sfs-check.8",
            "bash-completion/completions/scx_sfs",
            "zsh/site-functions/_scx_sfs",
            "fish/vendor_completions.d/scx_sfs.fish",
            "doc/scx_sfs/examples/config.toml",
        ] {
            let text = fs::read_to_string(folder.path().join(place)).unwrap();
            let text = text.replace("\\-", "-");
            assert!(
                text.contains("slice-us") || place.contains("check"),
                "{place}"
            );
        }
        let said = into(&folder.path().join("man/man8/scx_sfs.8")).unwrap_err();
        assert!(said.to_string().starts_with("cannot write "), "{said}");
    }

    /// An example is a valid configuration on its own.
    #[test]
    fn examples_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        for platform in PLATFORMS {
            let file = folder.path().join(platform.example);
            fs::write(&file, example(&platform)).unwrap();
            let request = Request::read([NAME], &file);
            let Ok(Request::Schedule(configuration)) = request else {
                panic!("{}: {request:?}", platform.name);
            };
            let patterns = configuration.options().cgroup.len();
            assert_eq!(patterns, platform.cgroups.len(), "{}", platform.name);
        }
    }
}
