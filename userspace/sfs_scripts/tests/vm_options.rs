//! The command lines of `vm/run` and `vm/fetch-kernel` that are refused before a guest boots.

use sfs_scripts::{run, top};
use std::process::Command;

#[track_caller]
fn refused(script: &str, arguments: &[&str], text: &str) {
    run(Command::new(top().join(script)).args(arguments)).ended(2, text);
}

#[test]
fn options_with_bad_values() {
    for (option, value, text) in [
        ("--cpus", "many", "not 'many'"),
        ("--accel", "warp", "'warp' is none of them"),
        ("--shift", "11", "not '11'"),
        ("--timeout", "0", "not '0'"),
        ("--perturb", "1O", "not '1O'"),
        ("--env", "1A=b", "not '1A=b'"),
        ("--out", "out", "not 'out'"),
        ("--in", "/nonexistent", "cannot read '/nonexistent'"),
        ("--kernel", "./nonexistent", "'./nonexistent'"),
    ] {
        refused("vm/run", &[option, value, "--", "true"], text);
    }
    let text = top().join("vm/run").display().to_string();
    let arguments = ["--kernel", &text, "--", "true"];
    refused("vm/run", &arguments, "is no x86 kernel image");
}

#[test]
fn command_lines_without_sense() {
    refused("vm/run", &[], "no command given");
    refused(
        "vm/run",
        &["--cpu", "4", "--", "true"],
        "unknown option '--cpu'",
    );
    refused("vm/run", &["--cpus", "--", "true"], "--cpus needs a value");
    refused(
        "vm/run",
        &["--accel", "tcg", "--shift", "1", "--", "true"],
        "--shift needs virtual time",
    );
    refused("vm/run", &["true"], "before the command 'true'");
    refused("vm/fetch-kernel", &["-x"], "unknown option '-x'");
}
