//! The program: loads the kernel half, tunes its slice from the reported arrivals, switches
//! fair-only mode, and serves statistics. The decisions themselves are in `sfs_policy`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, Context, Result};
use tracing::{debug, error, info, warn};

use crate::config::{file, keys, Configuration, Refusal, Request};
use crate::control::Control;
use crate::options::{Command, Options};
use crate::signals::Signals;
use crate::{generate, predecessor, service, terminal};
use sfs_bpf::exit::{End, Failure, Status};
use sfs_bpf::{boundary, preflight, version, NAME};
use sfs_listener::HintListener;
use sfs_state::history::{self, History};
use sfs_statistics::Form;
use sfs_text::note;

/// Executes the command line. Returns the exit code of the program.
pub fn run() -> ExitCode {
    // Files may be asked to be left out with a warning, so logging comes first.
    let is_coloured = terminal::paint_errors() == terminal::Paint::Coloured;
    sfs_log::init(sfs_log::is_verbose(std::env::args_os()), is_coloured);
    let request = match Request::read(std::env::args_os(), Path::new(file::USUAL)) {
        Ok(request) => request,
        Err(Refusal::Options(error)) => error.exit(),
        Err(Refusal::File(sentence)) => {
            note(&format!("{NAME}: {sentence}"));
            return ExitCode::from(Status::Misconfigured as u8);
        }
    };
    let result = match request {
        Request::Schedule(configuration) => {
            sfs_log::use_form(configuration.options().log_format);
            Signals::block()
                .map_err(Failure::from)
                .and_then(|signals| schedule(*configuration, &signals))
        }
        Request::Other(options) => execute(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { status, error }) => {
            if let Some(error) = error {
                sfs_log::last_words(NAME, &format!("{error:#}"));
            }
            ExitCode::from(status as u8)
        }
    }
}

fn form(json: bool) -> Form {
    if json {
        Form::Json
    } else {
        Form::Text {
            columns: terminal::columns(),
        }
    }
}

/// Does what is not scheduling.
fn execute(options: &Options) -> Result<(), Failure> {
    match &options.command {
        Some(Command::Check(check)) => return check.run(),
        Some(Command::Config(config)) => return config.run(),
        Some(Command::Set(set)) => return Ok(set.run()?),
        Some(Command::Reload(reload)) => return Ok(reload.run()?),
        Some(Command::Hint(hint)) => return Ok(hint.run()?),
        Some(Command::Advise(advise)) => return Ok(advise.run()?),
        Some(Command::Trace(trace)) => return Ok(trace.run()?),
        Some(Command::Explain(explain)) => return Ok(explain.run()?),
        Some(Command::Functions { count, json }) => {
            return Ok(sfs_statistics::print_functions(
                (*count).into(),
                form(*json),
            )?);
        }
        Some(Command::Top(top)) => {
            return Ok(top.run(terminal::paint() == terminal::Paint::Coloured)?);
        }
        Some(Command::Generate { folder }) => {
            return Ok(sfs_generate::into(folder, &generate::program())?)
        }
        None => {}
    }
    if options.version {
        writeln!(io::stdout(), "{NAME} {}", version()).context("cannot print the version")?;
        return Ok(());
    }
    if options.help_stats {
        return Ok(sfs_statistics::describe(
            &mut io::stdout(),
            form(options.json),
        )?);
    }
    if let Some(shell) = options.completions {
        return Ok(print_completions(shell)?);
    }

    if let Some(interval) = options.monitor {
        return Ok(monitor_until_signalled(
            interval,
            form(options.json),
            &Signals::block()?,
        )?);
    }
    Ok(())
}

/// Prints through a buffer, because clap_complete panics when a write fails.
fn print_completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut keys::command(), NAME, &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print the completion script"),
    }
}

/// Loads the scheduler and runs until a signal or the kernel ends it. Loads it again when the
/// kernel requests a restart (CPU hotplug).
fn schedule(mut configuration: Configuration, signals: &Signals) -> Result<(), Failure> {
    let options = configuration.options();
    preflight::check()?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let arguments = arguments.join(OsStr::new(" "));
    info!("{NAME} {} {}", version(), arguments.display());
    let from_files = configuration.from_files();
    if !from_files.is_empty() {
        info!("configuration: {}", from_files.join(", "));
    }
    preflight::warn_of_limits(options.partial);
    boundary::warn_of_contradictions(options.unit, &options.boundary);
    if let Some(interval) = options.stats {
        let form = form(options.json);
        std::thread::spawn(move || {
            if let Err(error) = sfs_statistics::monitor(interval, form, |why| debug!("{why}")) {
                warn!("statistics are no longer printed: {error:#}");
            }
        });
    }
    if !predecessor::wait_until_gone(signals)? {
        return Ok(());
    }
    let mut history = History::open();
    if !wait_after_ejections(&history, signals)? {
        return Ok(());
    }
    let mut hints = configuration.options().hints.listen()?;
    loop {
        let (end, left, result) =
            load_and_serve(&mut configuration, &mut history, signals, &mut hints);
        let now = history::now();
        history.end(now, end, left);
        if end == End::Hotplug && result.is_ok() {
            info!("the kernel asks for a restart (CPU hotplug)");
            service::reloading();
            continue;
        }
        return conclude(end, result, history.ejections(now));
    }
}

/// Loads the scheduler once and runs until it ends. Returns how and when it ended, with the
/// error if that was a failure.
fn load_and_serve(
    configuration: &mut Configuration,
    history: &mut History,
    signals: &Signals,
    hints: &mut Option<HintListener>,
) -> (End, Option<u64>, Result<()>) {
    let last_end = history.last_end();
    let past = history.begin(history::now(), service::is_supervised());
    let mut object = MaybeUninit::uninit();
    let mut control = match Control::start(configuration, &past, &mut object) {
        Ok(control) => control,
        Err(error) => return (End::Failed, None, Err(error)),
    };
    let now = history::now();
    control.remember(last_end, history.ejections(now));
    service::ready(&history.tell_away(now));
    control.run(signals, hints)
}

/// Maps the end of the last scheduler to the end of the program. `ejections` is the number of
/// recent ejections, including this one.
fn conclude(end: End, result: Result<()>, ejections: usize) -> Result<(), Failure> {
    let failure = |status, error| Err(Failure { status, error });
    if end.is_ejection() && ejections >= history::MOST_EJECTIONS {
        if let Err(why) = result {
            sfs_log::last_words(NAME, &format!("{why:#}"));
        }
        error!(
            "the kernel has ejected scx_sfs {ejections} times within an hour: the service \
             stays stopped; find the cause (docs/runbook.md) before you start it again"
        );
        return failure(Status::GivenUp, None);
    }
    match (result, end.status()) {
        (Ok(()), Status::Stopped) => Ok(()),
        (Ok(()), Status::Unloaded) => failure(
            Status::Unloaded,
            Some(anyhow!("another program has unloaded the scheduler")),
        ),
        (result, status) => failure(status, result.err()),
    }
}

/// Pauses before loading if this is a service that was ejected. A program started by hand does
/// not pause. Returns false if a stop was requested meanwhile.
fn wait_after_ejections(history: &History, signals: &Signals) -> Result<bool> {
    let now = history::now();
    let pause = history.pause(now);
    if pause.is_zero() || !service::is_supervised() {
        return Ok(true);
    }
    warn!(
        "the kernel has ejected scx_sfs {} times within the hour: waiting {} s before loading",
        history.ejections(now),
        pause.as_secs()
    );
    service::starting("waiting after an ejection", pause);
    Ok(!signals.wait(pause)?)
}

fn monitor_until_signalled(interval: Duration, form: Form, signals: &Signals) -> Result<()> {
    let say = |why: &str| note(&format!("{NAME}: {why}"));
    let monitor = std::thread::spawn(move || sfs_statistics::monitor(interval, form, say));
    while !signals.wait(Duration::from_millis(200))? {
        if monitor.is_finished() {
            return monitor
                .join()
                .unwrap_or_else(|_| anyhow::bail!("the monitor has died"));
        }
    }
    Ok(())
}
