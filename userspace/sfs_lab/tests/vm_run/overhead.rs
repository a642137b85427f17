//! The guests of `overhead`: they leave figures that depend on what they are called for. The
//! options for a measurement and the command of `sfs_guest overhead` go to `calls`.

use crate::{note, Call};
use std::fs;

/// The options that are noted; of `--in`, only traces are.
const NOTED: [&str; 3] = ["--cpus", "--mem", "--timeout"];

/// The exit status of a guest whose number of tasks is [`FAILS`].
const FAILED: i32 = 7;
const FAILS: &str = "666";

/// Returns the exit status.
pub fn run(call: &Call) -> i32 {
    let own = call.command.iter().skip_while(|word| *word != "overhead");
    let words: Vec<&str> = own.skip(1).map(String::as_str).collect();
    note("calls", &format!("{}: {}", options(call), words.join(" ")));
    let words = match words[0] {
        "--one-cpu" => &words[1..],
        _ => &words[..],
    };
    let guest = Guest { out: call.out() };
    match (words[0], words) {
        ("cpus", _) => guest.cpus(),
        ("queue", [_, _, lengths @ ..]) => guest.queue(lengths),
        ("tasks" | "sandboxes", [_, _, FAILS, ..]) => return FAILED,
        ("tasks" | "sandboxes", [name, _, count, ..]) => guest.objects(name, count),
        ("loaders", _) => guest.loaders(),
        ("trace", _) => guest.trace(),
        _ => panic!("no such measurement: {words:?}"),
    }
    0
}

/// The options of vm/run for this measurement.
fn options(call: &Call) -> String {
    let pairs = call.options.windows(2);
    let own = pairs.filter(|pair| {
        NOTED.contains(&pair[0].as_str()) || (pair[0] == "--in" && pair[1].contains("trace.csv"))
    });
    let own: Vec<String> = own.map(|pair| pair.join(" ")).collect();
    own.join(" ")
}

/// What some programs cost, more with `n`.
fn costs(n: u32) -> String {
    let dispatch = 1000 + 10 * n;
    let mut text = format!(
        "sfs_init_task 100 900 800\nsfs_dispatch 150 2000 {dispatch}\nsfs_enable 2 100 100\nsfs_tick 3 9999 555\n"
    );
    if n >= 4 {
        text += "sfs_enqueue 60 1500 1400\n";
    }
    text + "sfs_running 300 400 390\n"
}

struct Guest<'a> {
    /// The folder for results.
    out: &'a str,
}

impl Guest<'_> {
    fn leave(&self, name: &str, text: &str) {
        fs::write(format!("{}/{name}", self.out), text).unwrap();
    }

    fn cpus(&self) {
        let (_, n) = self.out.rsplit_once('.').unwrap();
        let n: u32 = n.parse().unwrap();
        self.leave(&format!("few.{n}"), &costs(n));
        if n <= 8 {
            self.leave(&format!("cpus.{n}"), &costs(n + 10));
        }
    }

    fn queue(&self, lengths: &[&str]) {
        for length in lengths {
            for queue in ["FILTER", "FAIR", "rank"] {
                let costs = costs(length.parse().unwrap());
                self.leave(&format!("{queue}.{length}"), &costs);
            }
        }
    }

    /// The kernel's objects and the times with none and with `count`.
    fn objects(&self, name: &str, count: &str) {
        const BEFORE: &str = "version\n# head\nother 1 10 100 1\n";
        for (n, loaded) in [("0", "12.50"), (count, "13.50")] {
            let name = format!("{name}.{n}");
            let after = format!("{BEFORE}map 1 2 512 1\ntask 1 {n} 1000 1\n");
            self.leave(&format!("{name}.before"), BEFORE);
            self.leave(&format!("{name}.after"), &after);
            self.leave(
                &format!("{name}.maps"),
                "1: array  name a  memlock 4096B\n2: hash  name b  memlock 8192B\n",
            );
            self.leave(&name, &format!("10.00\n{loaded}\n20.00\n20.50\n"));
        }
    }

    fn loaders(&self) {
        for name in ["sfs", "learned", "learned100"] {
            self.leave(name, "1000000\n10.00\n20.00\n31000000\n");
            self.leave(&format!("{name}.said"), "50000 arrivals\n");
        }
    }

    fn trace(&self) {
        self.leave(
            "progs",
            "7: struct_ops  name sfs_tick  tag ab  gpl run_time_ns 1000000 run_cnt 100\n\
             8: struct_ops  name sfs_init  tag ab  gpl\n\
             9: tracing  name other  tag ab  gpl run_time_ns 1000000 run_cnt 1\n\
             10: struct_ops  name sfs_dispatch  tag ab  gpl run_time_ns 4000000 run_cnt 2000\n",
        );
        for (name, text) in [
            ("uptime.0", "10.00\n"),
            ("uptime", "12.00\n"),
            ("loader.0", "5000000\n"),
            ("loader", "25000000\n"),
        ] {
            self.leave(name, text);
        }
    }
}
