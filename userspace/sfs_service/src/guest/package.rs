//! The Debian package on a fresh machine, from its installation to its purge: what a new operator
//! types, and what the machine answers. The transcript is kept.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};

use super::checks::Check;
use super::seeing;
use super::service::{await_active, expect_active, is_enabled, number, output};
use super::session::types;
use super::wait::{pause, within};
use crate::part::{PACKAGES, PLACE, VERSIONS};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "the package is installed, and starts nothing",
        run: installs,
    },
    Check {
        name: "faasbench compares it with the kernel's own scheduler",
        run: measures,
    },
    Check {
        name: "scx_sfs check finds nothing wrong, and the service starts",
        run: starts,
    },
    Check {
        name: "a workload runs, and its functions are learned",
        run: learns,
    },
    Check {
        name: "top shows a load",
        run: seeing::tops,
    },
    Check {
        name: "metrics are served, and brought to the host for the dashboard's queries",
        run: seeing::exports,
    },
    Check {
        name: "explain tells why the slowest request was slow",
        run: seeing::explains,
    },
    Check {
        name: "a reload refuses a wrong file, and applies it once it is mended",
        run: reloads,
    },
    Check {
        name: "an upgrade keeps configuration and learning, and tells its gap",
        run: upgrades,
    },
    Check {
        name: "an upgrade beside a wrong file leaves the old program running",
        run: upgrades_later,
    },
    Check {
        name: "a start with a wrong file is refused, and says what to mend",
        run: refuses,
    },
    Check {
        name: "scx.service starts it by its name",
        run: starts_generically,
    },
    Check {
        name: "a removal stops the service, and keeps configuration and learning",
        run: removes,
    },
    Check {
        name: "a purge leaves nothing",
        run: purges,
    },
];

/// The file that the operator edits.
pub const CONFIGURATION: &str = "/etc/scx_sfs/config.toml";
const LEARNED: &str = "/var/lib/scx_sfs/learned";
const GENERIC: &str = "/etc/systemd/system/scx.service";

/// Files of the package, one of each kind.
const FILES: [&str; 10] = [
    "/usr/bin/scx_sfs",
    "/usr/bin/sfs_advise",
    "/usr/bin/faasbench",
    "/usr/bin/sfs_waste",
    "/usr/lib/systemd/system/scx_sfs.service",
    CONFIGURATION,
    "/etc/default/scx_sfs",
    "/usr/share/man/man8/scx_sfs.8.gz",
    "/usr/share/bash-completion/completions/scx_sfs",
    "/usr/share/doc/scx_sfs/examples/kubernetes-systemd.toml",
];

/// Sixty invocations of three functions, which are programs that differ in their CPU time.
const WORKLOAD: &str = "head -c 200000 /usr/bin/faasbench >data; \
    for i in $(seq 20); do sha256sum data; gzip -c data | wc -c; od data | tail -n 1; done >work; wc -l <work";

/// Installs a version of the package, and returns what apt prints.
fn install(version: &str) -> Result<super::session::Said> {
    let folder = format!("{PLACE}/{PACKAGES}");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {folder}"))?;
    let names = entries.flatten().map(|entry| entry.path());
    let mut packages = names.filter(|path| path.to_string_lossy().contains(version));
    let package = packages.next().context("there is no package")?;
    types(&format!("apt-get install -qq {}", package.display()))
}

fn state_is(state: &str) -> Result<()> {
    types("cat /sys/kernel/sched_ext/state")?.well(&[state])
}

fn installs() -> Result<()> {
    types("grep PRETTY_NAME /etc/os-release; uname -r")?.well(&["Debian GNU/Linux 13"])?;
    install(VERSIONS[0])?.well(&[
        "scx_sfs is installed, and not started, since it replaces this machine's CPU scheduler",
        "scx_sfs check && systemctl enable --now scx_sfs",
    ])?;
    for file in FILES {
        ensure!(Path::new(file).exists(), "{file} is missing");
    }
    state_is("disabled")?;
    let enabled = types("systemctl is-enabled scx_sfs; systemctl is-active scx_sfs")?;
    enabled.in_vain(&["disabled\ninactive"])?;
    let verified = types("dpkg --verify scx-sfs")?;
    verified.well(&[])?;
    ensure!(verified.text().is_empty(), "files differ: {verified:?}");
    types("scx_sfs --version")?.well(&["scx_sfs "])
}

fn measures() -> Result<()> {
    types("faasbench gen table1 --invocations 60 --mean-ms 40 --load 0.9 --cpus 1 -o trace.csv")?
        .well(&[])?;
    for scheduler in ["eevdf", "scx_sfs"] {
        let run = "faasbench run --trace trace.csv --cpus 1 --out results --scheduler";
        types(&format!("{run} {scheduler}"))?.well(&[])?;
    }
    types("faasbench report results/*.json")?.well(&["eevdf", "scx_sfs"])?;
    state_is("disabled")
}

fn starts() -> Result<()> {
    types("scx_sfs check")?.well(&[" 0 fail"])?;
    types("systemctl enable --now scx_sfs")?.well(&[])?;
    types("systemctl is-active scx_sfs")?.well(&["active"])?;
    types("cat /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops")?
        .well(&["enabled\nsfs_"])?;
    expect_active()
}

fn learns() -> Result<()> {
    types(WORKLOAD)?.well(&["60"])?;
    pause(2);
    types("scx_sfs functions -n 10")?.well(&["completions"])?;
    completions().map(drop)
}

fn reloads() -> Result<()> {
    let process = number("MainPID")?;
    let wrong = "CONF:1: there is no key slice-mx-us; is slice-max-us meant?";
    let wrong = wrong.replace("CONF", CONFIGURATION);
    types(&format!("echo 'slice-mx-us = 50000' >{CONFIGURATION}"))?.well(&[])?;
    types("systemctl reload scx_sfs")?.in_vain(&["Job for scx_sfs.service failed"])?;
    types("journalctl --no-pager -o cat -u scx_sfs -n 3")?.well(&[&wrong])?;
    types("scx_sfs check")?.in_vain(&[&wrong])?;
    expect_active()?;
    types(&format!("sed -i s/mx/max/ {CONFIGURATION}"))?.well(&[])?;
    types(&format!("echo 'iat-window = 50' >>{CONFIGURATION}"))?.well(&[])?;
    types("systemctl reload scx_sfs")?.well(&[])?;
    types("journalctl --no-pager -o cat -u scx_sfs -n 4")?.well(&[
        &format!("slice-max-us = 50000 ({CONFIGURATION}:1)"),
        &format!("needs systemctl restart scx_sfs: iat-window = 50 ({CONFIGURATION}:2)"),
    ])?;
    types("scx_sfs config | grep -E '^(slice-max-us|iat-window)'")?.well(&["50000", "100"])?;
    ensure!(number("MainPID")? == process, "it was started again");
    expect_active()
}

/// The number of completions of each function that has as many as those of the workload. Their
/// names are checksums: no cgroup tells one.
fn completions() -> Result<Vec<(String, u64)>> {
    let mut ask = Command::new("scx_sfs");
    let said = output(ask.args(["functions", "--json"]))?;
    let listed: Vec<serde_json::Value> = serde_json::from_str(&said)?;
    let counts = listed.iter().filter_map(|one| {
        let name = one["function"].as_str()?.to_owned();
        Some((name, one["completions"].as_u64()?))
    });
    let counts: Vec<_> = counts.filter(|(_, count)| *count >= 20).collect();
    ensure!(
        counts.len() >= 3,
        "the functions are not among them: {said}"
    );
    Ok(counts)
}

fn upgrades() -> Result<()> {
    let (process, learned) = (number("MainPID")?, completions()?);
    let said = install(VERSIONS[1])?;
    said.well(&["scx_sfs: scheduling, after "])?;
    await_active(60)?;
    ensure!(number("MainPID")? != process, "the old program still runs");
    types("dpkg-query -W scx-sfs")?.well(&[VERSIONS[1]])?;
    types("journalctl --no-pager -o cat -u scx_sfs | grep 'back after'")?
        .well(&[" s on the kernel's own scheduler"])?;
    let gap = said.text().rsplit("scheduling, after ").next();
    let gap = gap.and_then(|rest| rest.split(' ').next());
    let gap: f64 = gap.context("no time is told")?.parse()?;
    ensure!(gap > 0.0 && gap < 20.0, "it was away for {gap} s");
    types(&format!("cat {CONFIGURATION}"))?.well(&["slice-max-us = 50000\niat-window = 50"])?;
    types("scx_sfs config | grep -E '^(slice-max-us|iat-window)'")?.well(&["50000", "50 "])?;
    types("scx_sfs functions -n 10")?.well(&[])?;
    let kept = completions()?;
    for (name, count) in &learned {
        let now = kept.iter().find(|(other, _)| other == name);
        let now = now.map_or(0, |(_, count)| *count);
        ensure!(
            now >= *count,
            "{name} had {count} completions, and has {now}"
        );
    }
    Ok(())
}

fn upgrades_later() -> Result<()> {
    let process = number("MainPID")?;
    types(&format!("echo 'polcy = \"learned\"' >>{CONFIGURATION}"))?.well(&[])?;
    install(VERSIONS[2])?.well(&[
        "scx_sfs: the old program keeps running, since the new one refuses the configuration:",
        "config.toml:3: there is no key polcy; is policy meant?",
        "then: systemctl restart scx_sfs",
    ])?;
    ensure!(number("MainPID")? == process, "the old program was stopped");
    expect_active()
}

fn refuses() -> Result<()> {
    types("systemctl stop scx_sfs")?.well(&[])?;
    types("systemctl start scx_sfs")?.in_vain(&["Job for scx_sfs.service failed"])?;
    types("systemctl show -p ExecMainStatus scx_sfs")?.well(&["ExecMainStatus=9"])?;
    types("journalctl --no-pager -o cat -u scx_sfs | grep 'no key'")?
        .well(&["config.toml:3: there is no key polcy; is policy meant?"])?;
    state_is("disabled")?;
    types(&format!("sed -i s/polcy/policy/ {CONFIGURATION}"))?.well(&[])?;
    types("systemctl reset-failed scx_sfs; systemctl start scx_sfs")?.well(&[])?;
    expect_active()
}

/// The unit that distributions have for all sched_ext schedulers, and its file with the name.
fn starts_generically() -> Result<()> {
    let unit = "[Service]\nEnvironmentFile=/etc/default/scx\n\
        ExecStart=/bin/bash -c 'exec ${SCX_SCHEDULER_OVERRIDE:-$SCX_SCHEDULER} ${SCX_FLAGS_OVERRIDE:-$SCX_FLAGS}'\n";
    fs::write(GENERIC, unit).context("cannot write scx.service")?;
    types(&format!(
        "systemctl stop scx_sfs; systemctl daemon-reload; cat {GENERIC}"
    ))?
    .well(&[])?;
    let options = "SCX_SCHEDULER=scx_sfs\\nSCX_FLAGS=\"--slice-us 6000\"\\n";
    types(&format!(
        "printf '{options}' >/etc/default/scx; systemctl start scx"
    ))?
    .well(&[])?;
    within(60, "scx.service has loaded it", is_enabled)?;
    types("scx_sfs config | grep '^slice-us'")?.well(&["6000"])?;
    // Its own service takes over.
    types("systemctl start scx_sfs")?.well(&[])?;
    expect_active()?;
    types("systemctl is-active scx")?.in_vain(&["inactive"])?;
    types(&format!(
        "rm {GENERIC} /etc/default/scx; systemctl daemon-reload"
    ))?
    .well(&[])
}

fn removes() -> Result<()> {
    types("apt-get remove -qq scx-sfs")?.well(&[])?;
    state_is("disabled")?;
    ensure!(
        !Path::new("/usr/bin/scx_sfs").exists(),
        "the program is still there"
    );
    types(&format!("ls {CONFIGURATION} {LEARNED}"))?.well(&[])?;
    types("systemctl is-active scx_sfs")?.in_vain(&["inactive"])
}

/// The operator's own results stay, in /root.
fn purges() -> Result<()> {
    types("apt-get purge -qq scx-sfs")?.well(&[])?;
    let left = types(
        "find / -xdev \\( -name '*scx_sfs*' -o -name '*scx-sfs*' -o -name 'sfs_*' \\) \
         -not -path '/vm-run/*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/root/*'",
    )?;
    left.well(&[])?;
    ensure!(left.text().is_empty(), "these are left: {}", left.text());
    types("dpkg-query -W scx-sfs")?.in_vain(&["no packages found matching scx-sfs"])
}
