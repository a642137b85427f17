//! What a package brings with the program, made from the definition of the options: man pages,
//! completions, and configuration files. `scx_sfs generate` writes them, and `make install` and
//! `make deb` install them.

#![forbid(unsafe_code)]

pub mod markdown;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use sfs_check::{Platform, PLATFORMS};

/// The program, as it describes itself.
#[derive(Debug, Clone)]
pub struct Program {
    /// The definition of its options and commands, with its name.
    pub command: Command,
    /// Its version.
    pub version: &'static str,
    /// A configuration file with all keys.
    pub configuration: String,
}

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

/// What compares the page of all options with the repository's.
const TEST: &str = "userspace/sfs_generate/tests/files.rs";

/// The beginning of the page of all options.
const OPTIONS: &str = "\
Every command of `scx_sfs` with every option, its default and its range. An option that says how to
schedule is a key of the configuration file as well, by the same name without the dashes. The help
(`--help`), the man pages and this page are made of one definition. [Tuning](tuning.md) has those
that matter.";

/// Writes all of it into a folder, at the places that they have below `share`.
///
/// # Errors
///
/// A file cannot be written.
pub fn into(folder: &Path, program: &Program) -> Result<()> {
    let name = program.command.get_name();
    let write = |place: String, text: Vec<u8>| -> Result<()> {
        let path = folder.join(place);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    };
    for (page, text) in man_pages(program)? {
        write(format!("man/man{SECTION}/{page}.{SECTION}"), text)?;
    }
    for (shell, place) in COMPLETIONS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut program.command.clone(), name, &mut script);
        write(place.to_owned(), script)?;
    }
    write(format!("doc/{name}/options.md"), options(program).into())?;
    let examples = format!("doc/{name}/examples");
    write(
        format!("{examples}/config.toml"),
        program.configuration.clone().into(),
    )?;
    for platform in PLATFORMS {
        write(
            format!("{examples}/{}", platform.example),
            example(&platform).into(),
        )?;
    }
    Ok(())
}

/// Returns the page of all options, which is `docs/options.md` in the repository.
#[must_use]
pub fn options(program: &Program) -> String {
    markdown::page(&program.command, "Options", OPTIONS, TEST)
}

/// Returns the man pages: that of the program, and one of each command.
fn man_pages(program: &Program) -> Result<Vec<(String, Vec<u8>)>> {
    let command = &program.command;
    let name = command.get_name();
    let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
    let mut pages = vec![(name.to_owned(), page(command, name, program)?)];
    for one in commands.filter(|one| one.get_name() != "help") {
        let name = format!("{name}-{}", one.get_name());
        pages.push((name.clone(), page(one, &name, program)?));
    }
    Ok(pages)
}

fn page(command: &Command, name: &str, program: &Program) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section(SECTION)
        .source(format!(
            "{} {}",
            program.command.get_name(),
            program.version
        ))
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
