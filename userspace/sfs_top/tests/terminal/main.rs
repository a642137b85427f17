//! The real `scx_sfs top` in a real terminal, tmux's, beside a server that answers as a scheduler
//! does. `cargo test --workspace` builds scx_sfs before it runs this; with `-p sfs_top` alone
//! the scx_sfs of the last build is tried.

mod server;
mod tmux;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use server::Server;
use sfs_skip::skip;
use tmux::Tmux;

/// What the shell says when the program has ended.
const ENDED: &str = "status 0";

/// The program, if it has been built.
fn program() -> Option<PathBuf> {
    let this = std::env::current_exe().unwrap();
    let folder = this.parent().unwrap().parent().unwrap();
    let program = folder.join("scx_sfs");
    program.is_file().then_some(program)
}

/// A terminal in which the program shows the server, in a folder of their own.
struct Bench {
    tmux: Tmux,
    server: Server,
    folder: tempfile::TempDir,
}

impl Bench {
    /// Starts both; `before` goes before the command, such as a variable. None: this machine
    /// lacks a program.
    fn start(before: &str) -> Option<Self> {
        let (program, folder) = (program()?, tempfile::tempdir().unwrap());
        let socket = folder.path().join("stats");
        let server = Server::start(&socket);
        let tmux = Tmux::start(folder.path())?;
        tmux.line("echo before");
        let (program, socket) = (program.display(), socket.display());
        tmux.line(&format!(
            "{before} {program} top --interval 0.2 --socket {socket}; echo status $?"
        ));
        let bench = Self {
            tmux,
            server,
            folder,
        };
        bench.tmux.wait_for("functions/f01");
        Some(bench)
    }

    /// The terminal is as it was before, and takes commands.
    fn check_restored(&self) {
        let text = self.tmux.wait_for(ENDED);
        assert!(text.contains("before"), "{text}");
        assert!(!text.contains("functions/f01"), "{text}");
        self.tmux.line("echo after: $((40 + 2))");
        self.tmux.wait_for("after: 42");
        assert_eq!(self.tmux.ask("#{alternate_on}#{mouse_any_flag}"), "00");
    }
}

/// Starts a bench, or skips the test.
macro_rules! bench {
    ($before:expr) => {{
        if program().is_none() {
            skip!("scx_sfs is not built here");
        }
        match Bench::start($before) {
            Some(bench) => bench,
            None => skip!("no tmux here"),
        }
    }};
}

#[test]
fn keys_and_mouse_work_and_the_terminal_is_restored() {
    let bench = bench!("");
    let tmux = &bench.tmux;
    let text = tmux.wait_for("arrivals");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("scx_sfs 0.1.0  policy learned"),
        "{text}"
    );
    assert!(lines.len() <= 24, "{text}");
    assert_eq!(tmux.ask("#{alternate_on}#{mouse_any_flag}"), "11");

    tmux.keys(&["2"]);
    let text = tmux.wait_for("functions/f19");
    let first = |text: &str| text.lines().nth(4).unwrap_or_default().to_owned();
    assert!(first(&text).starts_with("functions/f01"), "{text}");
    // The title of the column DONE, in the fourth line.
    let column = text.lines().nth(3).unwrap().find("DONE").unwrap() + 1;
    tmux.literal(&format!("\x1b[<0;{column};4M\x1b[<0;{column};4m"));
    tmux.wait_until(|text| first(text).starts_with("functions/f30"));
    tmux.keys(&["r", "End"]);
    tmux.wait_until(|text| {
        text.lines()
            .nth(22)
            .unwrap_or_default()
            .starts_with("functions/f30")
    });
    tmux.literal("\x1b[<64;5;9M");
    tmux.wait_until(|text| first(text).starts_with("functions/f09"));
    tmux.keys(&["?"]);
    tmux.wait_for("watch for wasted CPU time");
    tmux.keys(&["x", "p"]);
    tmux.wait_for("PAUSED");
    tmux.keys(&["q"]);
    bench.check_restored();
}

#[test]
fn signals_restore_the_terminal() {
    let bench = bench!("");
    for signal in ["TERM", "INT", "HUP"] {
        let children = format!(
            "pkill -{signal} -P {} scx_sfs",
            bench.tmux.ask("#{pane_pid}")
        );
        let killed = Command::new("sh").args(["-c", &children]).status().unwrap();
        assert!(killed.success());
        bench.check_restored();
        bench.tmux.keys(&["Up", "Up", "Enter"]);
        bench.tmux.wait_for("functions/f01");
    }
    bench.tmux.keys(&["C-c"]);
    bench.check_restored();
}

#[test]
fn it_ends_with_its_terminal() {
    let bench = bench!("");
    let shell = bench.tmux.ask("#{pane_pid}");
    let children = Command::new("pgrep").args(["-P", &shell]).output().unwrap();
    let child = String::from_utf8(children.stdout).unwrap();
    let folder = format!("/proc/{}", child.trim());
    assert!(
        std::path::Path::new(&folder).join("exe").exists(),
        "{child:?}"
    );
    drop(bench);
    let start = std::time::Instant::now();
    while std::path::Path::new(&folder).exists() {
        assert!(start.elapsed() < tmux::LIMIT, "process {child} runs on");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn it_can_be_suspended_and_continued() {
    let bench = bench!("");
    bench.tmux.keys(&["C-z"]);
    bench.tmux.wait_for("Stopped");
    assert_eq!(bench.tmux.ask("#{alternate_on}#{mouse_any_flag}"), "00");
    bench.tmux.line("fg");
    bench.tmux.wait_for("functions/f01");
    assert_eq!(bench.tmux.ask("#{alternate_on}#{mouse_any_flag}"), "11");
    bench.tmux.keys(&["q"]);
    bench.tmux.wait_for("before");
}

#[test]
fn a_scheduler_that_goes_and_returns_is_noticed() {
    let bench = bench!("");
    bench.server.stop();
    let text = bench.tmux.wait_for("waiting for one");
    assert!(text.starts_with("no scx_sfs is running"), "{text}");
    assert!(!text.contains("functions/f01"), "{text}");
    let _server = Server::start(&bench.folder.path().join("stats"));
    let text = bench.tmux.wait_for("functions/f01");
    assert!(text.starts_with("scx_sfs 0.1.0"), "{text}");
}

/// Whether a screen has colours, as tmux writes them.
fn is_coloured(screen: &str) -> bool {
    let is_colour = |codes: &str| {
        let mut numbers = codes.split(';').filter_map(|code| code.parse().ok());
        numbers.any(|code: u32| (30..39).contains(&code) || (40..49).contains(&code))
    };
    let sequences = screen.split("\x1b[").skip(1);
    sequences
        .filter_map(|rest| rest.split_once('m'))
        .any(|(codes, _)| is_colour(codes))
}

#[test]
fn colours_are_used_unless_refused() {
    let coloured = bench!("");
    coloured.tmux.wait_for("arrivals");
    assert!(is_coloured(&coloured.tmux.coloured()));
    let plain = bench!("NO_COLOR=1");
    let text = plain.tmux.coloured();
    assert!(text.contains("functions/f01"), "{text:?}");
    assert!(!is_coloured(&text), "{text:?}");
}

#[test]
fn without_a_terminal_it_names_the_alternative() {
    let Some(program) = program() else {
        skip!("scx_sfs is not built here");
    };
    let output = Command::new(program)
        .arg("top")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("needs a terminal") && said.contains("top --once"),
        "{said}"
    );
}

#[test]
fn one_screen_and_its_data_are_printed() {
    let Some(program) = program() else {
        skip!("scx_sfs is not built here");
    };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("stats");
    let ask = |options: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["top", "--once", "--interval", "0.1", "--socket"]);
        let output = command.arg(&socket).args(options).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), out, errors)
    };
    let (status, _, errors) = ask(&[]);
    assert_eq!(status, Some(1));
    assert_eq!(errors, "scx_sfs: no scx_sfs is running\n");
    let server = Server::start(&socket);
    let (status, text, errors) = ask(&[]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        text.contains("functions/f20") && text.contains("and 10 more"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text:?}");
    let (status, text, _) = ask(&["--json"]);
    assert_eq!(status, Some(0));
    assert_eq!(text.lines().count(), 1);
    let data: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(data["scheduler"]["metrics"]["slice_us"], 12_345);
    assert_eq!(
        data["scheduler"]["functions"][29]["function"],
        "functions/f30"
    );
    assert!(data["machine"]["cpus"].as_u64() > Some(0));
    server.stop();
}
