//! Colours: on a terminal only, and never with NO_COLOR. The real program prints into both.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use nix::pty::openpty;

/// What `scx_sfs check` says of an empty machine, on a terminal with this `NO_COLOR`.
fn on_a_terminal(no_colour: Option<&str>) -> String {
    let root = tempfile::tempdir().unwrap();
    let pair = openpty(None, None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_sfs"));
    command.arg("check").arg("--root").arg(root.path());
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    if let Some(value) = no_colour {
        command.env("NO_COLOR", value);
    }
    let mut child = command
        .stdout(Stdio::from(pair.slave))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The terminal's other end must be closed here too, or reading does not end.
    drop(command);
    let mut bytes = Vec::new();
    // The end of a terminal is an error.
    let _ = File::from(pair.master).read_to_end(&mut bytes);
    assert_eq!(child.wait().unwrap().code(), Some(1), "nothing is ready");
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_terminal_gets_colours_unless_no_color_is_set() {
    assert!(on_a_terminal(None).contains("\u{1b}[31mfail"));
    assert!(on_a_terminal(Some("")).contains("\u{1b}[31mfail"));
    let plain = on_a_terminal(Some("1"));
    assert!(
        plain.contains("fail") && !plain.contains('\u{1b}'),
        "{plain}"
    );
}

#[test]
fn a_pipe_gets_none() {
    let root = tempfile::tempdir().unwrap();
    for arguments in [&["check", "--root"][..], &["check", "--json", "--root"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_scx_sfs"))
            .args(arguments)
            .arg(root.path())
            .env("TERM", "xterm")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("fail") && !text.contains('\u{1b}'), "{text}");
    }
}
