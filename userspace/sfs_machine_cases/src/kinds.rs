//! Kinds of work that mostly wake up, switch, start and end, in counted steps,
//! like those stressors of stress-ng that depend most on the scheduler.

use std::io::{pipe, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::yield_now;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sched::{clone, CloneFlags};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag};
use nix::unistd::pause;

use sfs_testbed::clock::{ms, now, since, sleep};
use sfs_testbed::process::{pin_self, Process};
use sfs_testbed::report::Report;
use sfs_testbed::words::{Semaphore, Word};

/// Run time of each process.
pub const MEASURED: Duration = ms(250);

/// The byte of the last message.
const LAST: u8 = 1;

/// Repeats `step` for [`MEASURED`], and counts the repetitions.
fn repeat(report: &Report, mut step: impl FnMut()) {
    let start = now();
    while since(start) < MEASURED {
        step();
        report.value.fetch_add(1, Relaxed);
    }
}

/// Starts `count` processes that repeat `step`, which gets the process's number.
fn repeaters(count: usize, step: impl Fn(usize)) -> Result<Vec<Process>> {
    let spawn = |i| Process::spawn(|report| repeat(report, || step(i)));
    (0..count).map(spawn).collect()
}

/// Starts `count` processes that yield.
pub fn yielders(count: usize) -> Result<Vec<Process>> {
    repeaters(count, |_| yield_now())
}

/// Starts `count` processes that yield, with the nice values 0 to 19 in turn.
pub fn nice_yielders(count: usize) -> Result<Vec<Process>> {
    let spawn = |i: i32| {
        Process::spawn(|report| {
            // SAFETY: takes a number, and changes only this process.
            unsafe { libc::nice(i % 20) };
            repeat(report, yield_now);
        })
    };
    (0..i32::try_from(count)?).map(spawn).collect()
}

/// Starts `count` processes that sleep for 50 us.
pub fn nappers(count: usize) -> Result<Vec<Process>> {
    repeaters(count, |_| sleep(Duration::from_micros(50)))
}

/// Starts `count` processes that move from one of `cpus` CPUs to the next.
pub fn wanderers(count: usize, cpus: usize) -> Result<Vec<Process>> {
    let spawn = |i| {
        Process::spawn(|report| {
            let mut cpu = i;
            repeat(report, || {
                cpu += 1;
                pin_self(cpu % cpus);
            });
        })
    };
    (0..count).map(spawn).collect()
}

/// Starts `count` processes that start a thread and wait for its end.
pub fn joiners(count: usize) -> Result<Vec<Process>> {
    repeaters(count, |_| {
        let thread = std::thread::spawn(|| {});
        thread.join().expect("the thread has failed");
    })
}

/// Starts `count` processes that start another one in their own memory, like vfork(2), and
/// wait for its end.
pub fn vforkers(count: usize) -> Result<Vec<Process>> {
    repeaters(count, |_| {
        let mut stack = [0; 16 << 10];
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: the child only returns, and this process continues after that.
        let child = unsafe { clone(Box::new(|| 0), &mut stack, flags, Some(libc::SIGCHLD)) };
        waitpid(child.expect("cannot fork"), None).expect("the child has vanished");
    })
}

/// Starts `count` processes that stop and continue a child, and wait for each change.
pub fn stoppers(count: usize) -> Result<Vec<Process>> {
    let spawn = || {
        Process::spawn(|report| {
            let child = Process::spawn(|_| loop {
                pause();
            })
            .expect("cannot fork");
            repeat(report, || {
                for (signal, flag) in [
                    (Signal::SIGSTOP, WaitPidFlag::WUNTRACED),
                    (Signal::SIGCONT, WaitPidFlag::WCONTINUED),
                ] {
                    kill(child.pid(), signal).expect("cannot send a signal");
                    waitpid(child.pid(), Some(flag)).expect("the child has vanished");
                }
            });
        })
    };
    (0..count).map(|_| spawn()).collect()
}

/// Starts `count` processes that take a semaphore in turns, and yield.
pub fn posters(count: usize) -> Result<Vec<Process>> {
    let semaphore = Semaphore::new(1)?;
    repeaters(count, |_| {
        semaphore.wait();
        semaphore.post();
        yield_now();
    })
}

/// Starts `count` pairs of processes that wake each other up through a futex.
pub fn futex_pairs(count: usize) -> Result<Vec<Process>> {
    const ASKED: u32 = 1;
    const ANSWERED: u32 = 0;
    const OVER: u32 = 2;
    let mut processes = Vec::new();
    for _ in 0..count {
        let word = Word::new()?;
        processes.push(Process::spawn(|_| loop {
            word.wait_while(ANSWERED);
            if word.get() == OVER {
                return;
            }
            word.set_and_wake(ANSWERED);
        })?);
        processes.push(Process::spawn(|report| {
            repeat(report, || {
                word.set_and_wake(ASKED);
                word.wait_while(ASKED);
            });
            word.set_and_wake(OVER);
        })?);
    }
    Ok(processes)
}

/// Starts `count` processes that wake up one process on each of `cpus` CPUs, and wait until
/// all of them have run.
pub fn pinned_wakers(count: usize, cpus: usize) -> Result<Vec<Process>> {
    const OVER: u32 = u32::MAX;
    let mut processes = Vec::new();
    for _ in 0..count {
        let (round, left) = (Word::new()?, Word::new()?);
        for cpu in 0..cpus {
            processes.push(Process::spawn(|_| {
                pin_self(cpu);
                let mut seen = 0;
                while seen != OVER {
                    round.wait_while(seen);
                    seen = round.get();
                    left.count_down();
                }
            })?);
        }
        processes.push(Process::spawn(|report| {
            let mut next = 0;
            let go = |word| {
                left.set(u32::try_from(cpus).expect("there are fewer CPUs"));
                round.set_and_wake(word);
                left.wait_for_zero();
            };
            repeat(report, || {
                next += 1;
                go(next);
            });
            go(OVER);
        })?);
    }
    Ok(processes)
}

/// Starts `count` pairs of processes, each a client and its server, with a pair of sockets.
pub fn socket_pairs(count: usize) -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for _ in 0..count {
        let (server, client) = UnixStream::pair().context("cannot make a pair of sockets")?;
        processes.push(Process::spawn(|_| answer(&server))?);
        processes.push(Process::spawn(|report| {
            repeat(report, || ask(&client));
            (&client).write_all(&[LAST]).expect("cannot ask");
        })?);
    }
    Ok(processes)
}

fn ask(mut client: &UnixStream) {
    client.write_all(&[0]).expect("cannot ask");
    client.read_exact(&mut [0]).expect("no answer");
}

fn answer(mut server: &UnixStream) {
    let mut byte = [0];
    loop {
        server.read_exact(&mut byte).expect("the client is gone");
        if byte == [LAST] {
            return;
        }
        server.write_all(&byte).expect("cannot answer");
    }
}

/// Starts `count` groups of ten senders and ten receivers, like hackbench. Each sender has
/// `messages` messages for each receiver.
pub fn message_groups(count: usize, messages: usize) -> Result<Vec<Process>> {
    const PAIRS: usize = 10;
    let mut processes = Vec::new();
    for _ in 0..count {
        let mut outputs = Vec::new();
        for _ in 0..PAIRS {
            let (input, output) = UnixStream::pair().context("cannot make a pair of sockets")?;
            processes.push(Process::spawn(|_| hear(&input, PAIRS * messages))?);
            outputs.push(output);
        }
        for _ in 0..PAIRS {
            let told = || (0..messages).for_each(|_| outputs.iter().for_each(tell));
            processes.push(Process::spawn(|_| told())?);
        }
    }
    Ok(processes)
}

fn tell(mut receiver: &UnixStream) {
    receiver.write_all(&[0; 100]).expect("cannot send");
}

fn hear(mut input: &UnixStream, messages: usize) {
    for _ in 0..messages {
        input
            .read_exact(&mut [0; 100])
            .expect("the senders are gone");
    }
}

/// Starts `count` pairs of processes that wake each other up through eventfds: one waits with
/// poll(2), the other with epoll(7).
pub fn eventfd_pairs(count: usize) -> Result<Vec<Process>> {
    const OVER: u64 = 2;
    let mut processes = Vec::new();
    for _ in 0..count {
        let (asked, answered) = (EventFd::new()?, EventFd::new()?);
        processes.push(Process::spawn(|_| {
            let epoll = epoll_of(&asked).expect("cannot make an epoll");
            loop {
                let mut events = [EpollEvent::empty()];
                let ready = epoll.wait(&mut events, EpollTimeout::NONE);
                ready.expect("cannot wait");
                if asked.read().expect("the client is gone") >= OVER {
                    return;
                }
                answered.write(1).expect("cannot answer");
            }
        })?);
        processes.push(Process::spawn(|report| {
            repeat(report, || {
                asked.write(1).expect("cannot ask");
                let mut fds = [PollFd::new(answered.as_fd(), PollFlags::POLLIN)];
                poll(&mut fds, PollTimeout::NONE).expect("cannot wait");
                answered.read().expect("no answer");
            });
            asked.write(OVER).expect("cannot ask");
        })?);
    }
    Ok(processes)
}

fn epoll_of(eventfd: &EventFd) -> Result<Epoll> {
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    epoll.add(eventfd, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    Ok(epoll)
}

/// Bytes of a message, and of one that fills a pipe, for copied streams.
const MESSAGE: usize = 8;
const PIPE: usize = 64 << 10;

fn send(mut to: &PipeWriter, length: usize, byte: u8) {
    to.write_all(&[byte; PIPE][..length]).expect("cannot send");
}

fn receive(mut from: &PipeReader, message: &mut [u8]) {
    from.read_exact(message).expect("cannot receive");
}

/// Starts `count` writers into pipes, each with four readers that all wake up for a message.
pub fn streams(count: usize) -> Result<Vec<Process>> {
    const READERS: usize = 4;
    let mut processes = Vec::new();
    for _ in 0..count {
        let (from, to) = pipe()?;
        fcntl(&from, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        for _ in 0..READERS {
            processes.push(Process::spawn(|_| read_all(&from))?);
        }
        processes.push(Process::spawn(|report| {
            repeat(report, || send(&to, MESSAGE, 0));
            (0..READERS).for_each(|_| send(&to, MESSAGE, LAST));
        })?);
    }
    Ok(processes)
}

/// Reads messages that no other reader has taken, until the last.
fn read_all(mut from: &PipeReader) {
    let mut message = [0; MESSAGE];
    while message[0] != LAST {
        let mut fds = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::NONE).expect("cannot wait");
        match from.read(&mut message) {
            Ok(MESSAGE) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => panic!("cannot read: {other:?}"),
        }
    }
}

/// Starts `count` writers that fill a pipe. A second process copies it with tee(2) into another
/// pipe, which a third process reads.
pub fn copied_streams(count: usize) -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for _ in 0..count {
        let ((from, to), (copy, copied)) = (pipe()?, pipe()?);
        processes.push(Process::spawn(|_| {
            let mut message = [0; PIPE];
            while message[0] != LAST {
                receive(&copy, &mut message);
            }
        })?);
        processes.push(Process::spawn(|_| copy_all(&from, &copied))?);
        processes.push(Process::spawn(|report| {
            repeat(report, || send(&to, PIPE, 0));
            send(&to, PIPE, LAST);
        })?);
    }
    Ok(processes)
}

/// Copies available bytes and then removes them from the first pipe, until the whole last
/// message has passed.
fn copy_all(from: &PipeReader, copied: &PipeWriter) {
    let mut buffer = [0; PIPE];
    let mut left = PIPE;
    while left > 0 {
        // SAFETY: takes plain numbers only.
        let length = unsafe { libc::tee(from.as_raw_fd(), copied.as_raw_fd(), PIPE, 0) };
        let part = &mut buffer[..usize::try_from(length).expect("cannot copy")];
        receive(from, part);
        if part.last() == Some(&LAST) {
            left -= part.iter().filter(|byte| **byte == LAST).count();
        }
    }
}
