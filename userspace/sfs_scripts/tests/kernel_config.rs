//! `kernel-config/check`, on configurations that lack something.

use sfs_scripts::{run, top, Place, Said};
use std::process::Command;

fn check(arguments: &[&str]) -> Said {
    run(Command::new(top().join("kernel-config/check")).args(arguments))
}

/// A file with the options that the project asks for, and what `edit` makes of them.
fn config(edit: impl Fn(&str) -> Option<String>) -> Place {
    let place = Place::new();
    let all = std::fs::read_to_string(top().join("kernel-config/scx_sfs.config")).unwrap();
    let options = all.lines().filter(|line| line.starts_with("CONFIG_"));
    let lines: Vec<String> = options.filter_map(edit).collect();
    place.write("config", &(lines.join("\n") + "\n"));
    place
}

#[test]
fn a_complete_configuration_passes_compressed_as_well() {
    let place = config(|line| Some(line.to_owned()));
    check(&[&place.text("config")]).succeeded();
    run(Command::new("gzip").arg(place.path("config"))).succeeded();
    check(&[&place.text("config.gz")]).succeeded();
}

#[test]
fn a_required_option_fails_if_it_is_missing_or_a_module() {
    let place = config(|line| (!line.contains("SCHED_CLASS_EXT")).then(|| line.to_owned()));
    check(&[&place.text("config")]).ended(1, "required: CONFIG_SCHED_CLASS_EXT=y");
    let place = config(|line| Some(line.replace("CONFIG_BPF_SYSCALL=y", "CONFIG_BPF_SYSCALL=m")));
    check(&[&place.text("config")]).ended(1, "(it is m)");
}

#[test]
fn a_recommended_option_is_named() {
    let place =
        config(|line| Some(line.replace("CONFIG_KPROBES=y", "# CONFIG_KPROBES is not set")));
    check(&[&place.text("config")]).ended(0, "recommended: CONFIG_KPROBES=y");
}

#[test]
fn what_is_no_configuration_is_refused() {
    let init = top().join("vm/init").display().to_string();
    check(&[&init]).ended(2, "has no CONFIG_ lines");
    check(&["/nonexistent"]).ended(2, "cannot read");
    check(&["--run"]).ended(2, "unknown option '--run'");
}
