//! Measures what hints cost the loader: the CPU time of the receiving side
//! while a thread sends 100,000 a second over a real socket, with a kernel half
//! that only counts.
//!
//! ```text
//! cargo run --release -p sfs_listener --example hint_flood -- [HINTS_A_SECOND [SECONDS]]
//! ```
//!
//! A Unix socket holds net.unix.max_dgram_qlen datagrams (10, or the 512 that
//! systemd sets). Datagrams that do not fit are dropped by the sender, and
//! shown.

use std::io::{stdout, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::time::{clock_gettime, ClockId};
use sfs_bpf::kernel::{KernelHint, Verdicts};
use sfs_hint::{Address, Client, Delivery, Form, Hint};
use sfs_listener::{Clock, HintCounters, HintListener, HintOptions};

/// How long the receiver waits before it checks whether all has been sent.
const IDLE_MS: u16 = 20;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |n| n.parse());
    let rate: u32 = number(100_000).context("want hints a second")?;
    let seconds: u32 = number(3).context("want seconds")?;
    ensure!(rate > 0 && seconds > 0, "want numbers from 1");

    println!(
        "socket form    hints/datagram  hints/s  received  not sent   dropped     CPU   us/hint"
    );
    for over_udp in [false, true] {
        for form in [Form::Text, Form::Binary] {
            for together in [1, 20] {
                let load = Load {
                    over_udp,
                    form,
                    together,
                    rate,
                    time: Duration::from_secs(seconds.into()),
                };
                load.measure()?.print(&load)?;
            }
        }
    }
    Ok(())
}

/// The load.
struct Load {
    over_udp: bool,
    form: Form,
    /// Hints per datagram.
    together: usize,
    /// Hints per second.
    rate: u32,
    time: Duration,
}

/// The result.
struct Outcome {
    counters: HintCounters,
    /// Hints for which the sender's socket had no room.
    not_sent: usize,
    elapsed: Duration,
    cpu: Duration,
}

impl Load {
    fn measure(&self) -> Result<Outcome> {
        let dir = tempfile::tempdir()?;
        let address = if self.over_udp {
            "udp:127.0.0.1:0".parse()?
        } else {
            Address::Unix(dir.path().join("hint.sock"))
        };
        let options = HintOptions {
            hint_allow_udp: true,
            hint_rate: 10_000_000,
            ..HintOptions::default()
        };
        let mut listener = HintListener::listen(&address, &options)?;
        let client = Client::connect(listener.address(), self.form)?;
        let done = AtomicBool::new(false);
        let (report, reported) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = report.send(self.send(client));
                done.store(true, Ordering::Release);
            });
            let begun = Instant::now();
            let cpu = receive(&mut listener, &done)?;
            Ok(Outcome {
                counters: listener.counters(),
                not_sent: reported.recv()??,
                elapsed: begun.elapsed(),
                cpu,
            })
        })
    }

    /// Returns the number of hints for which the socket had no room.
    fn send(&self, mut client: Client) -> Result<usize> {
        let begun = Instant::now();
        let names: Vec<String> = (0..50).map(|i| format!("function-{i}")).collect();
        let (mut made, mut not_sent) = (0, 0);
        while begun.elapsed() < self.time {
            let due = begun.elapsed().as_secs_f64() * f64::from(self.rate);
            while (made as f64) < due {
                let hints = self.hints(made, &names)?;
                not_sent += match &hints[..] {
                    [hint] => usize::from(client.send(hint)? == Delivery::Dropped),
                    hints => hints.len() - client.send_all(hints)?,
                };
                made += hints.len();
            }
            thread::sleep(Duration::from_micros(50));
        }
        Ok(not_sent)
    }

    fn hints(&self, made: usize, names: &[String]) -> Result<Vec<Hint>> {
        let now_ns = Clock::read()?.now_ns;
        let hint = |i: usize| Hint {
            arrived_at_ns: Some(now_ns),
            function: Some(names[i % names.len()].clone()),
            ..Hint::of(1000 + (i % 30_000) as i32)
        };
        Ok((made..made + self.together).map(hint).collect())
    }
}

/// Receives like the control loop. Returns the CPU time used.
fn receive(listener: &mut HintListener, done: &AtomicBool) -> Result<Duration> {
    let mut apply = |batch: &[KernelHint]| {
        Ok(Verdicts {
            applied: std::hint::black_box(batch).len() as u64,
            ..Verdicts::default()
        })
    };
    let before = cpu_time()?;
    loop {
        let last = done.load(Ordering::Acquire);
        let fd: BorrowedFd<'_> = listener.poll_fd().context("the listener has failed")?;
        let ready = poll(
            &mut [PollFd::new(fd, PollFlags::POLLIN)],
            PollTimeout::from(IDLE_MS),
        )?;
        if ready > 0 {
            listener.drain(Clock::read()?, &mut apply)?;
        } else if last {
            return Ok(cpu_time()? - before);
        }
    }
}

/// CPU time of this thread, in user space and in the kernel.
fn cpu_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

impl Outcome {
    fn print(&self, load: &Load) -> Result<()> {
        let received = self.counters.received;
        writeln!(
            stdout(),
            "{:<6} {:<7} {:>14} {:>8.0} {:>9} {:>9} {:>9} {:>6.1}% {:>9.3}",
            if load.over_udp { "udp" } else { "unix" },
            if load.form == Form::Text {
                "text"
            } else {
                "binary"
            },
            load.together,
            received as f64 / self.elapsed.as_secs_f64(),
            received,
            self.not_sent,
            self.counters.dropped,
            100.0 * self.cpu.as_secs_f64() / self.elapsed.as_secs_f64(),
            1e6 * self.cpu.as_secs_f64() / received.max(1) as f64,
        )?;
        Ok(())
    }
}
