//! The configuration: the file, its precedence, changes at run time, and the check of a machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde_json::Value;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::ms;
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::{enable_seq, output_of, state, Scheduler};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "configuration_file_is_read",
        about: "/etc/scx_sfs/config.toml counts, and an option wins over it",
        run: configuration_file_is_read,
    },
    Case {
        name: "wrong_configuration_loads_nothing",
        about: "a broken file or an unknown key ends with status 9 before anything is loaded",
        run: wrong_configuration_loads_nothing,
    },
    Case {
        name: "set_is_in_force_without_a_reload",
        about: "after scx_sfs set slice-us the next invocation has that slice, and nothing is loaded anew",
        run: set_is_in_force_without_a_reload,
    },
    Case {
        name: "reload_applies_the_file",
        about: "scx_sfs reload applies what can change, names the rest, and refuses a wrong file",
        run: reload_applies_the_file,
    },
    Case {
        name: "set_is_for_root_only",
        about: "another user may not change a key, even one who may read statistics",
        run: set_is_for_root_only,
    },
    Case {
        name: "check_describes_the_machine",
        about: "scx_sfs check finds nothing wrong in the guest, and another user's lack of rights",
        run: check_describes_the_machine,
    },
];

const FOLDER: &str = "/etc/scx_sfs";
const FILE: &str = "/etc/scx_sfs/config.toml";
const SOCKET: &str = "/var/run/scx/root/stats";

/// A user who is not root.
const OTHER: u32 = 65534;

/// The file, until this is dropped.
struct Configured;

impl Configured {
    fn with(text: &str) -> Result<Self> {
        fs::create_dir_all(FOLDER).with_context(|| format!("cannot make {FOLDER}"))?;
        fs::write(FILE, text).with_context(|| format!("cannot write {FILE}"))?;
        Ok(Self)
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        let _ = fs::remove_file(FILE);
    }
}

/// Runs the program to its end as `user`; returns its exit code and its output.
fn run_as(bench: &Bench, user: u32, arguments: &str) -> Result<(Option<i32>, String)> {
    let mut command = Command::new(bench.program());
    let output = output_of(command.args(arguments.split_whitespace()).uid(user))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    bench.say(format_args!(
        "{arguments}: {:?} {}",
        output.status.code(),
        said.lines().next().unwrap_or_default()
    ));
    Ok((output.status.code(), said))
}

/// Checks the exit code and that the output has `words`.
fn expect(bench: &Bench, user: u32, arguments: &str, code: i32, words: &str) -> Result<String> {
    let (status, said) = run_as(bench, user, arguments)?;
    ensure!(status == Some(code), "{arguments}: {status:?}, {said}");
    ensure!(said.contains(words), "{arguments}: {said}");
    Ok(said)
}

/// Returns a key as `scx_sfs config --json` prints it.
fn key(bench: &Bench, name: &str) -> Result<Value> {
    let mut command = Command::new(bench.program());
    let output = output_of(command.args(["config", "--json"]))?;
    let report: Value = serde_json::from_slice(&output.stdout).context("config is no JSON")?;
    let keys = report["keys"].as_array().context("there are no keys")?;
    let found = keys.iter().find(|one| one["key"] == name);
    Ok(found
        .with_context(|| format!("there is no key {name}"))?
        .clone())
}

fn configuration_file_is_read(bench: &Bench) -> Result<()> {
    let _file = Configured::with("# for this case\nslice-us = 7000\nfair-slice-us = 5000\n")?;
    let scheduler = Scheduler::start(bench.program(), &["--fair-slice-us", "6000"])?;
    let stats = scheduler.stats()?;
    ensure!(stats.slice_us == 7000, "S is {} us", stats.slice_us);
    let slice = key(bench, "slice-us")?;
    ensure!(slice["value"] == 7000, "{slice}");
    ensure!(
        slice["from"]["path"] == FILE && slice["from"]["line"] == 2,
        "{slice}"
    );
    let fair = key(bench, "fair-slice-us")?;
    ensure!(
        fair["value"] == 6000 && fair["from"]["kind"] == "option",
        "{fair}"
    );
    ensure!(fair["replaced"][0]["value"] == "5000", "{fair}");
    scheduler.finish()
}

fn wrong_configuration_loads_nothing(bench: &Bench) -> Result<()> {
    let before = enable_seq();
    for (text, words) in [
        ("slice-us = \n", "/etc/scx_sfs/config.toml:1 is no TOML"),
        (
            "\nslice-uss = 7000\n",
            "/etc/scx_sfs/config.toml:2: there is no key slice-uss; is slice-us meant?",
        ),
        (
            "slice-us = 0\n",
            "/etc/scx_sfs/config.toml:1: slice-us: 0 is not in",
        ),
    ] {
        let _file = Configured::with(text)?;
        expect(bench, 0, "", 9, words)?;
    }
    expect(
        bench,
        0,
        "--config /etc/scx_sfs/none.toml",
        9,
        "cannot read the configuration",
    )?;
    ensure!(
        state() == "disabled" && enable_seq() == before,
        "something was loaded"
    );
    let _file = Configured::with("of-another-version = 1\nslice-us = 8000\n")?;
    let scheduler = Scheduler::start(bench.program(), &["--ignore-unknown"])?;
    ensure!(scheduler.stats()?.slice_us == 8000, "the other key is lost");
    let log = scheduler.log();
    ensure!(log.contains("left out of the configuration: "), "{log}");
    scheduler.finish()
}

fn set_is_in_force_without_a_reload(bench: &Bench) -> Result<()> {
    // 50 ms are within the first slice and beyond the second one.
    let scheduler = Scheduler::start(bench.program(), &["--slice-us", "200000"])?;
    Process::burner(ms(50))?.wait()?;
    let before = scheduler.wait_for("the first end", |stats| stats.completions > 0)?;
    let loaded = enable_seq(); // the kernel counts a load a little later than it reports it
    ensure!(
        before.demotions == 0,
        "{} demotions with the first slice",
        before.demotions
    );
    expect(bench, 0, "set slice-us 5000", 0, "slice-us = 5000 (set)")?;
    Process::burner(ms(50))?.wait()?;
    let after = scheduler.wait_for("a demotion", |stats| stats.demotions > 0)?;
    ensure!(after.slice_us == 5000, "S is {} us", after.slice_us);
    let slice = key(bench, "slice-us")?;
    ensure!(
        slice["value"] == 5000 && slice["from"]["kind"] == "set",
        "{slice}"
    );
    ensure!(slice["replaced"][0]["value"] == "200000", "{slice}");
    for (arguments, words) in [
        (
            "set policy fair",
            "policy cannot change while scx_sfs is loaded",
        ),
        ("set slice-us 0", "slice-us: 0 is not in"),
        ("set slice-uss 7", "is slice-us meant?"),
        ("set hint-rate 5", "--hint-listen"),
    ] {
        expect(bench, 0, arguments, 1, words)?;
    }
    expect(
        bench,
        0,
        "set --undo slice-us",
        0,
        "slice-us = 200000 (option)",
    )?;
    ensure!(
        scheduler.stats()?.slice_us == 200_000,
        "S has not come back"
    );
    ensure!(enable_seq() == loaded, "the scheduler was loaded again");
    let log = scheduler.log();
    ensure!(log.contains("set: slice-us = 5000 (set)"), "{log}");
    scheduler.finish()?;
    expect(bench, 0, "set slice-us 5000", 1, "no scx_sfs is running")?;
    Ok(())
}

fn reload_applies_the_file(bench: &Bench) -> Result<()> {
    let _file = Configured::with("slice-us = 200000\n")?;
    let scheduler = Scheduler::start(bench.program(), &[])?;
    let loaded = enable_seq();
    expect(bench, 0, "reload", 0, "nothing has changed")?;
    fs::write(FILE, "slice-us = 5000\npolicy = \"fair\"\n")?;
    let said = expect(bench, 0, "reload", 0, "slice-us = 5000 (")?;
    let waits = format!("needs systemctl restart scx_sfs: policy = fair ({FILE}:2)");
    ensure!(said.contains(&waits), "{said}");
    let stats = scheduler.stats()?;
    ensure!(
        stats.slice_us == 5000 && stats.policy == "learned",
        "S is {} us, with {}",
        stats.slice_us,
        stats.policy
    );
    fs::write(FILE, "slice-us = 7000\npolcy = \"fair\"\n")?;
    expect(
        bench,
        0,
        "reload",
        1,
        "config.toml:2: there is no key polcy",
    )?;
    ensure!(scheduler.stats()?.slice_us == 5000, "a wrong file counts");
    let denied = "only root and the user that runs scx_sfs may";
    expect(bench, OTHER, "reload", 1, denied)?;
    ensure!(enable_seq() == loaded, "the scheduler was loaded again");
    let log = scheduler.log();
    ensure!(log.contains("reloaded: slice-us = 5000 ("), "{log}");
    scheduler.finish()?;
    expect(bench, 0, "reload", 1, "no scx_sfs is running").map(drop)
}

fn set_is_for_root_only(bench: &Bench) -> Result<()> {
    let scheduler = Scheduler::start(bench.program(), &["--slice-us", "200000"])?;
    let denied = "only root and the user that runs scx_sfs may";
    expect(bench, OTHER, "set slice-us 5000", 1, denied)?;
    expect(bench, OTHER, "config", 1, denied)?;
    // An administrator lets others read statistics. They still may not change anything.
    fs::set_permissions(SOCKET, Permissions::from_mode(0o666))?;
    expect(bench, OTHER, "config", 0, "slice-us*            200000")?;
    expect(
        bench,
        OTHER,
        "set slice-us 5000",
        1,
        "user 65534 may read but not change",
    )?;
    ensure!(scheduler.stats()?.slice_us == 200_000, "S has changed");
    scheduler.finish()
}

fn check_describes_the_machine(bench: &Bench) -> Result<()> {
    let said = expect(bench, 0, "check", 0, " 0 fail")?;
    for words in [
        "ok    kernel ",
        "ok    BTF ",
        "ok    privileges ",
        "no sched_ext scheduler is loaded",
    ] {
        ensure!(said.contains(words), "{words} is missing: {said}");
    }
    expect(bench, OTHER, "check", 1, "fail  privileges ")?;
    let scheduler = bench.load("")?;
    let words = "scx_sfs is loaded (sfs_";
    expect(bench, 0, "check --json", 0, words)?;
    scheduler.finish()?;
    let _file = Configured::with("cgroups = 5\n")?;
    expect(bench, 0, "check", 1, "fail  configuration ")?;
    Ok(())
}
