//! The command `scx_sfs top`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use clap::Args;
use sfs_statistics::Unanswered;

use crate::draw::Theme;
use crate::plain;
use crate::sample::Sample;
use crate::sampler::{Order, Sampler};
use crate::source::Source;
use crate::state::State;
use crate::terminal;

/// Show a running scx_sfs on the terminal: load, mode, queues, delays, functions, sandboxes.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Keys: q quits, ? explains all keys. The mouse works on tabs, on titles of
columns, and scrolls. While no scx_sfs runs, top says so and waits for one.
Colours are used on a terminal only, and never with NO_COLOR.

Examples, as root:
  scx_sfs top
  scx_sfs top --interval 0.2 --waste
  scx_sfs top --once                       # one screen as text, for logs
  scx_sfs top --json | jq .machine.load    # a line of JSON a second

Exit status: 0 done, or ended by a signal; 1 no scx_sfs answers (--once), this
user may not ask it, or there is no terminal; 2 wrong options.")]
pub struct TopCommand {
    /// Time between two looks, in seconds [0.1..=3600].
    #[arg(long, short, value_name = "SEC", default_value = "1", value_parser = interval)]
    pub interval: Duration,

    /// Print one screen as text, after one interval, and exit.
    #[arg(long, visible_alias = "batch")]
    pub once: bool,

    /// Print JSON: an object on a line for each look; with --once, one.
    #[arg(long)]
    pub json: bool,

    /// Watch for wasted CPU time: CPUs that idle while a task waits. This costs
    /// a little at each switch and wake-up, and needs root.
    #[arg(long)]
    pub waste: bool,

    /// Leave the mouse to the terminal.
    #[arg(long)]
    pub no_mouse: bool,

    /// The socket of the scheduler's statistics; default: /run/scx/root/stats.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("want seconds, from 0.1 to 3600".to_owned()),
    }
}

impl TopCommand {
    /// Shows or prints it. `is_coloured`: the terminal has colours, and its user wants them.
    ///
    /// # Errors
    ///
    /// There is no terminal, this user may not ask the scheduler or, with `--once`, there is
    /// none.
    pub fn run(&self, is_coloured: bool) -> Result<()> {
        if self.once {
            return self.print_once();
        }
        if self.json {
            return self.print_lines();
        }
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            bail!(
                "top needs a terminal; into a file or a pipe, print one screen \
                 (scx_sfs top --once) or the data (scx_sfs top --json)"
            );
        }
        if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            bail!("this terminal cannot be drawn on (TERM): print one screen (scx_sfs top --once)");
        }
        self.check_access()?;
        let is_unicode = Theme::is_unicode(|name| std::env::var(name).ok());
        let mut state = State::new(self.interval);
        state.uses_mouse = !self.no_mouse;
        state.watches_waste = self.waste;
        let sampler = Sampler::start(self.socket.clone(), self.interval)?;
        if self.waste {
            sampler.order(Order::Waste(true))?;
        }
        terminal::show(&sampler, &mut state, Theme::new(is_coloured, is_unicode))
    }

    /// Refuses a user who may not ask, before the terminal is entered.
    fn check_access(&self) -> Result<()> {
        match sfs_statistics::Connection::open(self.socket.as_deref()) {
            Err(why @ Unanswered::Denied) => Err(why.into()),
            _ => Ok(()),
        }
    }

    fn source(&self) -> Result<Source> {
        let mut source = Source::new(self.socket.clone());
        if self.waste {
            source.watch_waste(true).map_err(anyhow::Error::msg)?;
        }
        Ok(source)
    }

    /// Looks twice, since most figures are of the time between two looks.
    fn print_once(&self) -> Result<()> {
        let mut source = self.source()?;
        let mut state = State::new(self.interval);
        for is_last in [false, true] {
            let (sample, why) = source.look();
            if let Some(why) = why {
                return Err(why.into());
            }
            state.take(sample);
            if !is_last {
                thread::sleep(self.interval);
            }
        }
        if self.json {
            return print(&line(state.sample.as_ref())?).map(drop);
        }
        let columns = ratatui::crossterm::terminal::size();
        let columns = columns.ok().filter(|_| io::stdout().is_terminal());
        print(&plain::text(&state, columns.map(|(width, _)| width))).map(drop)
    }

    /// Prints a line at each look until the reader has gone.
    fn print_lines(&self) -> Result<()> {
        let mut source = self.source()?;
        let mut due = Instant::now();
        loop {
            let (sample, why) = source.look();
            if let Some(why @ Unanswered::Denied) = why {
                return Err(why.into());
            }
            if !print(&line(Some(&sample))?)? {
                return Ok(());
            }
            due += self.interval;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

fn line(sample: Option<&Sample>) -> Result<String> {
    Ok(serde_json::to_string(&sample)? + "\n")
}

/// Prints; returns false if the reader has gone.
fn print(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).context("cannot print"),
    }
}
