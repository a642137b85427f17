//! The learned policy.

use std::fs::File;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::libc::c_void;
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use nix::unistd::Pid;
use sfs_hint::{Client, Delivery, Form, Hint};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::Cgroup;
use sfs_testbed::clock::{ms, now, since, sleep, wait_until, PATIENCE};
use sfs_testbed::process::{as_real_time, chain, confine, fork_every, wait_for_all, Process};
use sfs_testbed::scheduler::{output_of, Scheduler, Stats};
use sfs_testbed::surroundings::freeze_map;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "learned_ranks_without_history",
        about:
            "before any invocation has ended, one that has had no CPU time yet runs before hogs, though they have credit",
        run: learned_ranks_without_history,
    },
    Case {
        name: "learned_puts_short_before_long",
        about:
            "with known functions, a short process runs at once beside hogs queued before it",
        run: learned_puts_short_before_long,
    },
    Case {
        name: "hints_name_functions_to_learn",
        about: "processes that differ only in their hints are separate functions, and quick ones run first",
        run: hints_name_functions_to_learn,
    },
    Case {
        name: "those_that_soon_block_begin_early",
        about: "a function that uses the CPU for 0.5 ms, sleeps, and then needs 60 ms, gets these 0.5 ms before others that need 20 ms",
        run: those_that_soon_block_begin_early,
    },
    Case {
        name: "learned_starves_nobody",
        about: "hogs with ranks share the machine in turns, far from the watchdog",
        run: learned_starves_nobody,
    },
    Case {
        name: "crowd_of_short_ones_starves_no_long_one",
        about: "a process that waits by rank gets turns although better ranks keep arriving",
        run: crowd_of_short_ones_starves_no_long_one,
    },
    Case {
        name: "short_ones_wait_for_no_overdue_one",
        about: "where each CPU runs work past its deadline, a few short processes are served at once, and many do not hold that work up",
        run: short_ones_wait_for_no_overdue_one,
    },
    Case {
        name: "arrivals_go_before_what_their_starter_interrupts",
        about: "on one CPU, a short process goes before a long one that the process that forks it has just interrupted, be that real-time or not",
        run: arrivals_go_before_what_their_starter_interrupts,
    },
    Case {
        name: "no_fork_waits_for_a_preempted_system_call",
        about: "a process that is preempted in a system call, and holds the lock of a mapped file, holds up no fork that needs the same lock",
        run: no_fork_waits_for_a_preempted_system_call,
    },
    Case {
        name: "refused_tables_end_the_ranks",
        about:
            "if the kernel refuses a rank table, --policy sfs applies from then on, and no waiting task is lost",
        run: refused_tables_end_the_ranks,
    },
    Case {
        name: "fair_gives_no_credit",
        about: "--policy fair: nothing runs in FILTER",
        run: fair_gives_no_credit,
    },
];

fn learned_ranks_without_history(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    // The hogs would go first under --policy sfs.
    let scheduler = bench.load("--policy learned --slice-us 1000000 --no-overload")?;
    let hogs = (0..2 * bench.cpus()).map(|_| Process::hog());
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    sleep(ms(300));
    let stats = scheduler.stats()?;
    bench.say(format_args!(
        "{} functions, {} rank tables, {} demotions",
        stats.functions, stats.rank_tables, stats.demotions
    ));
    ensure!((stats.functions, stats.rank_tables) == (0, 1), "{stats:?}");
    ensure!(stats.demotions == 0, "the hogs have used up their credit");
    // Real-time, as the case itself has no rank.
    let mut short = as_real_time(|| Process::burner(ms(5)))?;
    short.wait()?;
    bench.at_most("the first to end", short.turnaround(), ms(25))?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    drop(hogs);
    scheduler.finish()
}

fn learned_puts_short_before_long(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let scheduler = bench.load("--policy learned --slice-us 20000 --no-overload")?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    // Two for each CPU, which need far more than any known function.
    let hogs = (0..2 * bench.cpus()).map(|_| Process::hog());
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    sleep(ms(300));
    let mut longest = Duration::ZERO;
    // Enough for each way to lose a claim of a CPU.
    for _ in 0..60 {
        // The case runs in FAIR, which has 4 ms of every 50 here. If these end
        // during the fork, the fork continues 50 ms later, and the short
        // process has not arrived yet.
        let mut short = as_real_time(|| Process::burner(ms(5)))?;
        short.wait()?;
        longest = longest.max(short.turnaround());
    }
    bench.at_most("the longest turnaround of 60", longest, ms(25))?;
    let listed = output_of(std::process::Command::new(bench.program()).arg("functions"))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    ensure!(
        listed.lines().count() >= 2,
        "no function is listed: {listed}"
    );
    drop(hogs);
    scheduler.finish()
}

fn hints_name_functions_to_learn(bench: &Bench) -> Result<()> {
    const SOCKET: &str = "/tmp/hint.sock";
    let options = "--policy learned --slice-us 60000 --no-overload --hint-listen";
    let scheduler = bench.load(&format!("{options} {SOCKET}"))?;
    let mut client = Client::connect(&SOCKET.parse()?, Form::Binary)?;
    let mut serve = |name: &str, demand| hinted(&mut client, Some(name), None, demand);
    for _ in 0..10 {
        let mut both = [serve("quick", ms(2))?, serve("slow", ms(40))?];
        wait_for_all(&mut both)?;
    }
    scheduler.wait_for("ranks", |stats| stats.rank_tables > 1)?;
    let listed = output_of(std::process::Command::new(bench.program()).arg("functions"))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    for name in ["quick", "slow"] {
        let line = listed.lines().find(|line| line.contains(name));
        bench.say(line.unwrap_or("not listed"));
    }
    let place = |name| listed.find(name).context("a function is not listed");
    // Functions with most work come first.
    ensure!(place("slow")? < place("quick")?, "{listed}");

    // All need less than S: SFS would serve them first in, first out.
    let count = 8 * bench.cpus();
    let slow = (0..count).map(|_| serve("slow", ms(40)));
    let mut slow = slow.collect::<Result<Vec<_>>>()?;
    // As above; also, the hint must arrive within the 50 ms.
    let mut quick = as_real_time(|| serve("quick", ms(2)))?;
    quick.wait()?;
    wait_for_all(&mut slow)?;
    let longest = slow.iter().map(Process::turnaround).max();
    bench.say(format_args!("the longest of {count} took {longest:?}"));
    bench.at_most("the quick one behind them", quick.turnaround(), ms(150))?;
    scheduler.finish()
}

fn those_that_soon_block_begin_early(bench: &Bench) -> Result<()> {
    let [asking, working] = ["soon/asks", "soon/works"].map(Cgroup::new);
    let (asking, working) = (asking?, working?);
    let scheduler = bench.load("--policy learned --cgroup soon/*")?;
    let asks = || {
        Process::spawn_in(&asking, |report| {
            report.burn(Duration::from_micros(500));
            report.value.store(now().as_nanos() as u64, Relaxed);
            sleep(ms(20));
            report.burn(ms(60));
        })
    };
    let works = || Process::spawn_in(&working, |report| report.burn(ms(20)));
    for _ in 0..10 {
        wait_for_all(&mut [asks()?, works()?])?;
    }
    scheduler.wait_for("ranks", |stats| stats.rank_tables > 1)?;

    // Forked as a real-time task, so that no child delays the next.
    let count = 8 * bench.cpus();
    let (mut others, mut one) = as_real_time(|| {
        let others = (0..count).map(|_| works());
        Ok((others.collect::<Result<Vec<_>>>()?, asks()?))
    })?;
    one.wait()?;
    wait_for_all(&mut others)?;
    let longest = others.iter().map(Process::turnaround).max();
    bench.say(format_args!(
        "the others took up to {longest:?}, and the one that asks {:?}",
        one.turnaround()
    ));
    let asked = Duration::from_nanos(one.value.load(Relaxed)) + one.turnaround();
    let ended = one.ended().context("it has not ended")?;
    bench.at_most("time until it asks", asked.saturating_sub(ended), ms(25))?;
    scheduler.finish()
}

/// Forks a process that sleeps for 50 ms, during which a hint tells its function and its CPU time,
/// and then burns `demand`.
fn hinted(
    client: &mut Client,
    function: Option<&str>,
    service: Option<Duration>,
    demand: Duration,
) -> Result<Process> {
    let process = Process::spawn(move |report| {
        sleep(ms(50));
        report.burn(demand);
    })?;
    let hint = Hint {
        function: function.map(str::to_owned),
        service_ns: service.map(|time| time.as_nanos() as u64),
        ..Hint::of(process.pid().as_raw())
    };
    let delivery = client.send(&hint)?;
    ensure!(delivery == Delivery::Sent, "the hint was not accepted");
    Ok(process)
}

fn learned_starves_nobody(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy learned --slice-us 20000 --no-overload")?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    let hogs = (0..4 * bench.cpus()).map(|_| Process::hog());
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    sleep(ms(12_000));
    let longest = hogs.iter().map(|hog| hog.longest_gap()).max();
    bench.at_most("longest wait", longest.unwrap_or_default(), ms(10_000))?;
    let least = hogs.iter().map(|hog| hog.cpu()).min().unwrap_or_default();
    bench.say(format_args!(
        "the least CPU time of a hog is {least:?} in 12 s"
    ));
    ensure!(least > ms(300), "a hog had only {least:?}");
    drop(hogs);
    scheduler.finish()
}

/// An attack: a long process is queued under little load, and so with an early
/// expected end; then short processes keep arriving, each of which ranks before
/// it.
fn crowd_of_short_ones_starves_no_long_one(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy learned --slice-us 20000 --no-overload")?;
    fork_every(ms(8), 150)?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    let hogs = bench.each_cpu(|_| Process::hog())?;
    let mut long = Process::burner(ms(400))?;
    sleep(ms(300));
    let crowd = (0..16 * bench.cpus()).map(|_| chain(ms(8)));
    let crowd = crowd.collect::<Result<Vec<_>>>()?;
    let mut all: Vec<&Process> = hogs.iter().collect();
    all.push(&long);
    all.iter().for_each(|one| one.forget_gap());
    let before: Vec<_> = all.iter().map(|one| one.cpu()).collect();
    sleep(ms(12_000));
    let longest = all.iter().map(|one| one.longest_gap()).max();
    let left_out = all.iter().zip(&before);
    let left_out = left_out.filter(|(one, before)| one.ended().is_none() && one.cpu() == **before);
    let left_out = left_out.count();
    let guarded = scheduler.stats()?.guarded;
    bench.say(format_args!(
        "{left_out} of {} did not run in 12 s, {guarded} turns given by the guard",
        all.len()
    ));
    ensure!(left_out == 0, "{left_out} did not run in 12 s");
    bench.at_most("longest wait", longest.unwrap_or_default(), ms(10_000))?;
    drop((hogs, crowd));
    long.wait()?;
    scheduler.finish()
}

fn short_ones_wait_for_no_overdue_one(bench: &Bench) -> Result<()> {
    const SOCKET: &str = "/tmp/hint.sock";
    const WHOLE: Duration = ms(2000);
    let options = "--ageing 1 --no-overload --hint-service-time --hint-listen";
    let scheduler = bench.load(&format!("{options} {SOCKET}"))?;
    let mut client = Client::connect(&SOCKET.parse()?, Form::Binary)?;
    // With an ageing of 1, one that is alone on its CPU is overdue when half of its time is left.
    let longs = as_real_time(|| bench.each_cpu(|_| hinted(&mut client, None, Some(WHOLE), WHOLE)))?;
    let are_overdue = || longs.iter().all(|long| long.cpu() > ms(1150));
    ensure!(wait_until(PATIENCE, are_overdue), "they do not run");

    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let mut short = as_real_time(|| Process::burner(ms(3)))?;
        short.wait()?;
        longest = longest.max(short.turnaround());
        sleep(ms(64)); // the least turn is an eighth of one CPU
    }
    bench.at_most("the longest turnaround of 5 short ones", longest, ms(60))?;

    let left = longs
        .iter()
        .map(|long| WHOLE.saturating_sub(long.cpu()))
        .max();
    let left = left.unwrap_or_default();
    ensure!(left > ms(200), "the long ones have only {left:?} left");
    let begin = now();
    let crowd = as_real_time(|| {
        (0..8 * bench.cpus())
            .map(|_| chain(ms(3)))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut longs = longs;
    wait_for_all(&mut longs)?;
    let took = since(begin);
    drop(crowd);
    // An eighth of the CPUs, 25 ms of each CPU in advance, and the start of the crowd.
    bench.at_most(
        "the rest of the long ones in a crowd",
        took,
        left * 8 / 7 + ms(100),
    )?;
    scheduler.finish()
}

fn refused_tables_end_the_ranks(bench: &Bench) -> Result<()> {
    const STATE: &str = "/tmp/refused.state";
    let _ = std::fs::remove_file(STATE);
    let options = format!("--policy learned --slice-us 20000 --no-overload --learn-state {STATE}");
    let scheduler = bench.load(&options)?;
    fork_every(ms(2), 150)?;
    let ranked = |stats: &Stats| stats.functions > 0 && stats.rank_tables > 0;
    let stats = scheduler.wait_for("ranks", ranked)?;
    ensure!(stats.policy == "learned", "{stats:?}");
    // More than CPUs, so that some always wait by rank.
    let hogs = (0..4 * bench.cpus()).map(|_| Process::hog());
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    sleep(ms(300));

    // The hogs need more than known functions do, which changes ranks, and so tables.
    freeze_map("rank_tables")?;
    let crowd = bench.saturate_filter()?;
    let stats = scheduler.wait_for("the end of the ranks", |stats| stats.policy == "sfs")?;
    ensure!(!ranked(&stats), "{stats:?}");
    let log = scheduler.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    told.iter().for_each(|line| bench.say(line));
    let is_clear = told.len() == 1 && told[0].contains("as with --policy sfs");
    ensure!(is_clear, "{told:?}");
    // FILTER is full from here on: tasks that wait by rank run before it, or never.
    let used = hogs.iter().map(|hog| hog.cpu()).collect::<Vec<_>>();
    let start = now();
    let all_go_on = wait_until(PATIENCE, || {
        let mut both = hogs.iter().zip(&used);
        both.all(|(hog, used)| hog.cpu() >= *used + ms(30))
    });
    bench.say(format_args!("all hogs had 30 ms within {:?}", since(start)));
    ensure!(all_go_on, "a hog is lost");
    let listed = output_of(std::process::Command::new(bench.program()).arg("functions"))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let rank = listed
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().nth(5));
    ensure!(rank == Some("-"), "a rank is listed: {listed}");
    drop((hogs, crowd));
    let stats = scheduler.wait_for("learning", |now| now.functions > 0)?;
    ensure!(stats.policy == "sfs" && !ranked(&stats), "{stats:?}");
    scheduler.finish()?;

    // Learned tables are kept and used after the next load.
    let scheduler = bench.load(&options)?;
    let stats = scheduler.wait_for("ranks", ranked)?;
    ensure!(stats.policy == "learned", "{stats:?}");
    scheduler.finish()
}

fn fair_gives_no_credit(bench: &Bench) -> Result<()> {
    // Not bench.load(): options of `tests/run --with` may be about FILTER, which is unused.
    let scheduler = Scheduler::start(bench.program(), &["--policy", "fair"])?;
    let burners = (0..2 * bench.cpus()).map(|_| Process::burner(ms(30)));
    let mut burners = burners.collect::<Result<Vec<_>>>()?;
    wait_for_all(&mut burners)?;
    let stats = scheduler.stats()?;
    ensure!(stats.filter_starts == 0, "{stats:?}");
    scheduler.finish()
}

/// Forks processes that burn 2 ms each, 5 to 8 ms after one another, pinned to CPU 0 like the
/// caller. Returns the longest time from a fork to the end of such a process.
fn longest_of_short_ones(count: u64) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    for number in 0..count {
        let mut short = Process::burner(ms(2))?;
        short.wait()?;
        longest = longest.max(short.turnaround());
        sleep(ms(5 + number % 4));
    }
    Ok(longest)
}

fn arrivals_go_before_what_their_starter_interrupts(bench: &Bench) -> Result<()> {
    const SOCKET: &str = "/tmp/hint.sock";
    const WHOLE: Duration = ms(4000);
    let options = "--no-overload --hint-service-time --hint-listen";
    let scheduler = bench.load(&format!("{options} {SOCKET}"))?;
    let mut client = Client::connect(&SOCKET.parse()?, Form::Binary)?;
    // All that follows is on one CPU, where the starter always displaces the long one.
    confine(Pid::from_raw(0), &[0])?;
    let long = hinted(&mut client, None, Some(WHOLE), WHOLE)?;
    ensure!(
        wait_until(PATIENCE, || long.cpu() > ms(100)),
        "it does not run"
    );

    let promptly = longest_of_short_ones(40)?;
    let real_time = as_real_time(|| longest_of_short_ones(40))?;
    let left = WHOLE.saturating_sub(long.cpu());
    ensure!(left > ms(500), "the long one has only {left:?} left");
    drop(long);
    bench.at_most("the longest turnaround, of a process", promptly, ms(16))?;
    bench.at_most("the same, of a real-time process", real_time, ms(16))?;
    scheduler.finish()
}

/// Maps the file's first page.
fn map_once(file: &File) -> Result<NonNull<c_void>> {
    let length = NonZeroUsize::MIN.saturating_add(4095);
    let (read, private) = (ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE);
    // SAFETY: a new mapping at a place that is free; nothing reads it.
    Ok(unsafe { mmap(None, length, read, private, file, 0) }?)
}

/// Maps and unmaps it again and again, and so takes and gives back the lock of its mappings.
fn map_forever(file: &File) {
    while let Ok(place) = map_once(file) {
        // SAFETY: nothing refers to it.
        let _ = unsafe { munmap(place, 4096) };
    }
}

fn no_fork_waits_for_a_preempted_system_call(bench: &Bench) -> Result<()> {
    const FILE: &str = "/tmp/mapped";
    std::fs::write(FILE, [0; 4096])?;
    let file = File::open(FILE)?;
    // From now on each fork of this process needs the lock of the file's mappings.
    map_once(&file)?;
    let scheduler = bench.load("--no-overload")?;
    // All on one CPU, so that nobody else fetches the preempted process.
    confine(Pid::from_raw(0), &[0])?;
    let (mapper, hog) = (Process::spawn(|_| map_forever(&file))?, Process::hog()?);
    sleep(ms(300));
    let mut longest = Duration::ZERO;
    as_real_time(|| {
        for number in 0..300 {
            let begin = now();
            let mut short = Process::burner(ms(1))?;
            longest = longest.max(since(begin));
            sleep(ms(4 + number % 5));
            short.wait()?;
        }
        Ok(())
    })?;
    drop((mapper, hog));
    bench.at_most("the longest fork", longest, ms(10))?;
    scheduler.finish()
}
