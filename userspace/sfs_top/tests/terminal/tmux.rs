//! A terminal of 80x24 with a shell in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything takes, on any machine.
pub const LIMIT: Duration = Duration::from_secs(60);

pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Starts it with a server of its own in `folder`. None: there is no tmux, or no shell for
    /// it.
    pub fn start(folder: &Path) -> Option<Self> {
        for program in ["tmux", "bash"] {
            let option = if program == "tmux" { "-V" } else { "--version" };
            Command::new(program).arg(option).output().ok()?;
        }
        let tmux = Self {
            socket: folder.join("tmux"),
        };
        let options = ["new-session", "-d", "-x", "80", "-y", "24"];
        let shell = ["env", "PS1=$ ", "LC_ALL=C.UTF-8", "bash", "--norc", "-i"];
        let mut command = tmux.command();
        // What this test was started with must not reach the program.
        command.env_remove("NO_COLOR").env_remove("TMUX");
        let output = command.args(options).args(shell).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        tmux.wait_for("$");
        Some(tmux)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(&self.socket);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.run(arguments).stdout).unwrap()
    }

    /// Presses keys, by their names.
    pub fn keys(&self, names: &[&str]) {
        self.run(&[&["send-keys"], names].concat());
    }

    /// Types characters.
    pub fn literal(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Types a line for the shell.
    pub fn line(&self, text: &str) {
        self.literal(text);
        self.keys(&["Enter"]);
    }

    /// Returns what tmux knows about the terminal.
    pub fn ask(&self, format: &str) -> String {
        self.text(&["display-message", "-p", format])
            .trim()
            .to_owned()
    }

    /// Returns the screen with its colours.
    pub fn coloured(&self) -> String {
        self.text(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the screen contains `word`; returns the screen.
    pub fn wait_for(&self, word: &str) -> String {
        self.wait_until(|text| text.contains(word))
    }

    /// Waits until the screen is as wanted; returns it.
    pub fn wait_until(&self, is_it: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let text = self.text(&["capture-pane", "-p"]);
            if is_it(&text) {
                return text;
            }
            assert!(start.elapsed() < LIMIT, "the screen stays\n{text}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}
