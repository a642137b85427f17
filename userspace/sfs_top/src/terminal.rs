//! The terminal: entered, left again however the program ends, and the loop that draws and reads
//! keys.

use std::io;
use std::os::fd::AsFd;
use std::panic;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::TryRecvError;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{raise, Signal};
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::{execute, terminal};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals as Arrived;

use crate::draw::{draw, Theme};
use crate::keys::{self, Action};
use crate::sampler::{News, Sampler};
use crate::state::State;

/// Longest wait for a key before the sampler's news are looked at, and so the longest delay of a
/// sample and of the end by a signal.
const POLL_MS: u16 = 200;

/// Time that the loop has to end after a signal.
const GRACE: Duration = Duration::from_secs(1);

/// Signals that have arrived.
#[derive(Default)]
struct Signals {
    ends: AtomicBool,
    stops: AtomicBool,
}

impl Signals {
    fn watch() -> Result<Arc<Self>> {
        let signals = Arc::new(Self::default());
        let mut arrived =
            Arrived::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP]).context("cannot watch for signals")?;
        let noted = Arc::clone(&signals);
        thread::Builder::new()
            .name("sfs_top_signals".into())
            .spawn(move || {
                for signal in arrived.forever() {
                    match signal {
                        SIGTSTP => noted.stops.store(true, Ordering::SeqCst),
                        _ => noted.end(),
                    }
                }
            })
            .context("cannot start a thread that waits for signals")?;
        Ok(signals)
    }

    /// Has the loop end the program. If it cannot, because writing to a stopped terminal blocks
    /// it, or reading from one that has gone, ends the program without it.
    fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        thread::sleep(GRACE);
        let _ = terminal::disable_raw_mode();
        process::exit(0);
    }
}

/// Waits for keys, for a while. Returns whether the terminal has gone: asked for keys, the
/// library for terminals would then read again and again.
fn has_gone() -> Result<bool> {
    let input = io::stdin();
    let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from(POLL_MS)) {
        Err(Errno::EINTR) => return Ok(false),
        polled => polled.context("cannot wait for keys")?,
    };
    let ready = fds[0].revents().unwrap_or(PollFlags::POLLERR);
    Ok(ready.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL))
}

/// The terminal, while this program has all of it.
struct Screen {
    terminal: DefaultTerminal,
    theme: Theme,
}

impl Screen {
    fn enter(theme: Theme, uses_mouse: bool) -> Result<Self> {
        // This also has a panic restore the terminal before it says anything.
        let terminal = ratatui::try_init().context("cannot prepare the terminal")?;
        let screen = Self { terminal, theme };
        screen.use_mouse(uses_mouse)?;
        Ok(screen)
    }

    fn use_mouse(&self, on: bool) -> Result<()> {
        let done = match on {
            true => execute!(io::stdout(), EnableMouseCapture),
            false => execute!(io::stdout(), DisableMouseCapture),
        };
        done.context("cannot write to the terminal")
    }

    fn draw(&mut self, state: &mut State) -> Result<()> {
        let theme = self.theme;
        self.terminal
            .draw(|frame| draw(frame, state, theme))
            .context("cannot write to the terminal")?;
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        self.terminal
            .clear()
            .context("cannot write to the terminal")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs no care.
        let _ = execute!(io::stdout(), DisableMouseCapture);
        let _ = ratatui::try_restore();
    }
}

/// Shows what the sampler sees until the user or a signal ends it.
///
/// # Errors
///
/// The terminal cannot be used, or the sampler has died.
pub fn show(sampler: &Sampler, state: &mut State, theme: Theme) -> Result<()> {
    let signals = Signals::watch()?;
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |why| {
        let _ = execute!(io::stdout(), DisableMouseCapture);
        before(why);
    }));
    let mut screen = Screen::enter(theme, state.uses_mouse)?;
    screen.draw(state)?;
    loop {
        let mut is_new = false;
        loop {
            match sampler.news.try_recv() {
                Ok(News::Sample(sample)) => state.take(*sample),
                Ok(News::NoWaste(sentence)) => {
                    state.watches_waste = false;
                    state.note = Some(sentence);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => bail!("the thread that takes samples has died"),
            }
            is_new = true;
        }
        if signals.ends.load(Ordering::SeqCst) {
            return Ok(());
        }
        if signals.stops.swap(false, Ordering::SeqCst) {
            screen = suspend(screen, state)?;
            is_new = true;
        }
        if is_new {
            screen.draw(state)?;
        }
        if has_gone()? {
            return Ok(());
        }
        if !event::poll(Duration::ZERO).context("cannot read from the terminal")? {
            continue;
        }
        let event = event::read().context("cannot read from the terminal")?;
        match keys::take(state, &event) {
            Action::Quit => return Ok(()),
            Action::Suspend => screen = suspend(screen, state)?,
            Action::Redraw => screen.clear()?,
            Action::Order(order) => sampler.order(order)?,
            Action::Mouse(on) => screen.use_mouse(on)?,
            Action::Nothing => {}
        }
        screen.draw(state)?;
    }
}

/// Leaves the terminal, stops until somebody continues this process, and enters it again.
fn suspend(screen: Screen, state: &State) -> Result<Screen> {
    let theme = screen.theme;
    drop(screen);
    raise(Signal::SIGSTOP).context("cannot stop")?;
    Screen::enter(theme, state.uses_mouse)
}
