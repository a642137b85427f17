//! The guests of `bench`: the simulation measures in their place, and the row's name says what
//! becomes of the machine. The guest's command goes to `calls`, the files to `brought`.

use crate::{note, Call};
use std::fs;
use std::path::Path;
use std::process::{id, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const RELEASE: &str = "userspace/target/release";

/// A row to measure.
struct Row<'a> {
    name: &'a str,
    /// The folder for results.
    out: &'a str,
    trace: &'a str,
}

impl<'a> Row<'a> {
    fn new(call: &'a Call) -> Self {
        let mut words = call.command.iter().skip_while(|word| *word != "--name");
        let files = call.values("--in").filter_map(|file| file.rsplit_once(':'));
        let mut traces = files.filter(|(host, _)| host.ends_with(".trace.csv"));
        Self {
            name: words.nth(1).expect("a name"),
            out: call.out(),
            trace: traces.next().expect("a trace").0,
        }
    }

    /// A file of its results.
    fn file(&self, kind: &str) -> String {
        format!("{}/{}.{kind}", self.out, self.name)
    }

    /// Summarises with these words more; returns the exit status.
    fn summarize(&self, more: &[&str]) -> i32 {
        status(
            Command::new(format!("{RELEASE}/faasbench"))
                .args(["summarize", "--trace", self.trace, "--cpus", "4"])
                .args(["--scheduler", self.name, "--scheduler-version", "1"])
                .args(["--kernel", "6.18", "--accel", "icount"])
                .args(["--output", &self.file("json")])
                .args(more),
        )
    }

    /// Measures; returns the exit status.
    fn measure(&self) -> i32 {
        let mut sim = Command::new(format!("{RELEASE}/sfs_sim"));
        sim.args(["run", "--trace", self.trace, "--policy", "ps"])
            .args(["--name", self.name, "--cpus", "4", "--out", self.out]);
        status(sim.stdout(Stdio::null()));
        if self.name.ends_with("learned") {
            fs::write(self.file("state"), "learned\n").unwrap();
        }
        self.summarize(&[&self.file("csv")])
    }

    /// Leaves a summary of a scheduler that did not load.
    fn break_off(&self) {
        self.summarize(&["--lost", "it ended"]);
        let summary = fs::read_to_string(self.file("json")).unwrap();
        let summary = summary.replacen("\"lost\"", "\"not-loaded\"", 1);
        fs::write(self.file("json"), summary).unwrap();
    }
}

fn status(command: &mut Command) -> i32 {
    command.status().unwrap().code().unwrap()
}

/// Returns the exit status.
pub fn run(call: &Call) -> i32 {
    call.values("--in").for_each(|file| note("brought", file));
    note("calls", &call.command.join(" "));
    let row = Row::new(call);
    let kernel = call.values("--kernel").next().unwrap_or("default");
    note("kernels", &format!("{} {kernel}", row.name));
    let is = |what| row.name.contains(what);
    if is("lost") {
        eprintln!("run: the guest panicked");
        return 125;
    }
    if is("broken") {
        row.break_off();
        return 3;
    }
    if is("half") {
        fs::write(row.file("csv"), "half\n").unwrap();
        return 1;
    }
    if is("slow") && !Path::new("fast").exists() {
        fs::write("slow.new", format!("{}\n", id())).unwrap();
        fs::rename("slow.new", "slow").unwrap();
        sleep(Duration::from_secs(60));
        return 0;
    }
    row.measure()
}
