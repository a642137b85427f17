//! Pictures of programs at work: `scx_sfs top` and the charts of a report, from one live run.
//!
//! The run is in a VM in virtual time: functions of Table I in cgroups under scx_sfs, with
//! `scx_sfs top` in a terminal of tmux beside them, then the same under EEVDF.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstyle_svg::Term;
use anyhow::{ensure, Context, Result};

/// Programs that the guest needs, from the build.
const BUILT: [&str; 3] = ["scx_sfs", "faasbench", "sfs_waste"];
/// And from this machine.
const TOOLS: [&str; 2] = ["tmux", "bash"];
/// The locale of the guest, which tmux needs: glibc's folder of it.
const LOCALE: &str = "/usr/lib/locale/C.utf8";
/// The chart of the report that is kept.
const CHART: &str = "cdf-turnaround.svg";

/// What the guest does. The screen is taken while invocations wait.
const GUEST: &str = r#"
set -eE
export LC_ALL=C.UTF-8 TERM=xterm-256color SHELL=/bin/bash
faasbench gen table1-artefact --invocations 900 --load 1.0 --cpus 4 --seed 5 --functions 12 -o /t.csv
run() { faasbench run --trace /t.csv --sandbox cgroup --cpus 4 --out /out "$@"; }
tmux -u -f /dev/null new-session -d -x 100 -y 30 'scx_sfs top --waste'
run --scheduler scx_sfs --scheduler-args '--cgroup faasbench/*' >/out/log 2>&1 &
trap 'cat /out/log' ERR
until grep -q enabled /sys/kernel/sched_ext/state; do sleep 0.2; done
sleep 9
tmux capture-pane -p -e >/out/top.ansi
tmux kill-server
wait
run --scheduler eevdf >>/out/log 2>&1
"#;

/// Runs the programs in a VM of the repository at `top`, and writes `top.svg` and `report.svg`
/// into `folder`.
///
/// # Errors
///
/// A program is not built or not there, the guest fails, or a file cannot be written.
pub fn take(top: &Path, folder: &Path) -> Result<()> {
    let built = top.join("userspace/target/release");
    let out = tempfile::tempdir().context("cannot make a folder for the results")?;
    run_guest(top, &built, out.path())?;
    let screen = out.path().join("top.ansi");
    let text = fs::read_to_string(&screen)
        .with_context(|| format!("the guest has left no {}", screen.display()))?;
    ensure!(
        text.contains("FUNCTION"),
        "scx_sfs top shows no functions in the guest:\n{text}"
    );
    write(&folder.join("top.svg"), &picture(&text))?;
    let summaries = ["eevdf.json", "scx_sfs.json"].map(|name| out.path().join(name));
    let charts = out.path().join("charts");
    let mut report = Command::new(built.join("faasbench"));
    report.arg("report").args(summaries);
    report.arg("--out").arg(&charts).arg("--svg").arg(&charts);
    let said = report.output().context("cannot run faasbench report")?;
    let error = String::from_utf8_lossy(&said.stderr);
    ensure!(said.status.success(), "faasbench report: {error}");
    let chart = charts.join(CHART);
    let chart = fs::read_to_string(&chart)
        .with_context(|| format!("the report has no chart {}", chart.display()))?;
    write(&folder.join("report.svg"), &chart)
}

/// Runs the guest; what it leaves is in `out` then.
fn run_guest(top: &Path, built: &Path, out: &Path) -> Result<()> {
    let mut command = Command::new(top.join("vm/run"));
    command.args(["--quiet", "--cpus", "4", "--timeout", "1800"]);
    for name in BUILT {
        let program = built.join(name);
        ensure!(
            program.is_file(),
            "{} is not there: run make first",
            program.display()
        );
        command.arg("--in").arg(program);
    }
    for name in TOOLS {
        let program = find(name).with_context(|| format!("{name} is not there: install it"))?;
        command.arg("--in").arg(program);
    }
    command.arg("--in").arg(format!("{LOCALE}:{LOCALE}"));
    let mut to = OsString::from("/out:");
    to.push(out);
    command.arg("--out").arg(to);
    command.args(["--", "bash", "-c", GUEST]);
    let status = command.status().context("cannot run vm/run")?;
    ensure!(status.success(), "the guest has failed: {status}");
    Ok(())
}

/// The program `name` of this machine.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns text of a terminal with its colours as a picture (SVG) on a dark ground, which reads
/// well on light and dark pages. Blanks at the ends of lines are left out.
#[must_use]
pub fn picture(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    let picture = Term::new().render_svg(&lines.join("\n"));
    // With a viewBox a page can make it smaller.
    let size = |name: &str| {
        let (_, rest) = picture.split_once(name)?;
        rest.split_once("px\"").map(|(number, _)| number.to_owned())
    };
    match (size("width=\""), size("height=\"")) {
        (Some(width), Some(height)) => {
            let with = format!("<svg viewBox=\"0 0 {width} {height}\" ");
            picture.replacen("<svg ", &with, 1)
        }
        _ => picture,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_keeps_its_words_and_colours() {
        let picture = picture("plain \u{1b}[31mred & <b>\u{1b}[0m   \n\u{2581}\u{2588}\n\n");
        for part in [
            "<svg ",
            "plain ",
            "red &amp; &lt;b&gt;",
            "fg-red",
            "\u{2581}\u{2588}",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        assert!(!picture.contains('\u{1b}'), "{picture}");
    }

    #[test]
    fn what_is_not_built_is_named() {
        let top = tempfile::tempdir().unwrap();
        let error = take(top.path(), top.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("scx_sfs is not there: run make first"),
            "{error}"
        );
    }
}
