//! CPU time of the programs and the loader over a whole run.

use super::guest::Lab;
use super::table::{after, header, number, row};
use anyhow::Result;

/// The table of the loader's CPU time, by policy.
pub fn loader(lab: &Lab) -> Result<String> {
    let columns = [
        "arrivals a second",
        "s",
        "ms of CPU time",
        "of one CPU",
        "us for each",
    ];
    let mut text = header("policy", columns.map(str::to_string).into_iter());
    for (name, title) in [
        ("sfs", "`sfs`"),
        ("learned", "`learned`, one function"),
        ("learned100", "`learned`, 100 functions"),
    ] {
        let said = lab.left("loader", &format!("{name}.said"))?;
        text += &loader_row(title, &lab.left("loader", name)?, first(&said));
    }
    Ok(text)
}

/// From the loader's CPU time in ns and the time in s before, and after, these arrivals.
fn loader_row(title: &str, values: &str, arrivals: f64) -> String {
    let values: Vec<f64> = values.lines().map(first).collect();
    let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
    let (time, cpu) = (at(2) - at(1), (at(3) - at(0)) / 1e9);
    row(&[
        title.into(),
        format!("{:.0}", arrivals / time),
        format!("{time:.1}"),
        format!("{:.0}", cpu * 1000.0),
        format!("{:.2} %", 100.0 * cpu / time),
        format!("{:.2}", cpu * 1e6 / arrivals),
    ])
}

/// The first number of a text.
fn first(text: &str) -> f64 {
    number(text.split_whitespace().next())
}

/// A BPF program, as bpftool counts it.
#[derive(Debug, Clone, PartialEq)]
struct Program<'a> {
    name: &'a str,
    calls: f64,
    ns: f64,
}

/// The programs of scx_sfs that have been called, those first that took most.
fn programs(shown: &str) -> Vec<Program<'_>> {
    let lines = shown.lines().filter(|line| line.contains(" name sfs_"));
    let read = |line| {
        let last = |name| after(line, name).last();
        let (name, calls) = (last("name")?, number(last("run_cnt")));
        let ns = number(last("run_time_ns"));
        (calls > 0.0).then_some(Program { name, calls, ns })
    };
    let mut programs: Vec<Program> = lines.filter_map(read).collect();
    programs.sort_by(|one, other| other.ns.total_cmp(&one.ns));
    programs
}

/// The table of the programs while a trace was replayed, and what they and the loader come
/// to.
pub fn trace(lab: &Lab, cpus: u32) -> Result<String> {
    let left = |name| lab.left("trace", name);
    let shown = left("progs")?;
    let columns = ["calls", "us each", "ms in all"];
    let mut text = header("program", columns.map(str::to_string).into_iter());
    let programs = programs(&shown);
    for Program { name, calls, ns } in &programs {
        let us = ns / calls / 1000.0;
        text += &format!("| `{name}` | {calls:.0} | {us:.2} | {:.1} |\n", ns / 1e6);
    }
    let sum: f64 = programs.iter().map(|one| one.ns).sum();
    text += &format!("| all | | | {:.1} |\n", sum / 1e6);
    let every = shown.lines().flat_map(|line| after(line, "run_time_ns"));
    let every: f64 = every.map(|word| number(Some(word))).sum();
    let time = first(&left("uptime")?) - first(&left("uptime.0")?);
    let loader = first(&left("loader")?) - first(&left("loader.0")?);
    text += &format!(
        "\nIn {time:.1} s on {cpus} CPUs: {:.2} % of the machine in BPF programs; the loader {:.1} ms of CPU time, {:.2} % of one CPU.\n",
        every / time / f64::from(cpus) / 1e7,
        loader / 1e6,
        loader / time / 1e7
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_compared_with_the_arrivals() {
        let row = loader_row("x", "1000000\n10.0\n20.0\n31000000\n", 5000.0);
        assert_eq!(row, "| x | 500 | 10.0 | 30 | 0.30 % | 6.00 |\n");
    }

    #[test]
    fn programs_are_ours_called_and_in_order() {
        let shown = "7: struct_ops  name sfs_tick  tag ab  gpl run_time_ns 500 run_cnt 5\n\
            8: struct_ops  name sfs_init  tag ab  gpl\n\
            9: struct_ops  name other  tag ab  gpl run_time_ns 900 run_cnt 1\n\
            10: struct_ops  name sfs_dispatch  tag ab  gpl run_time_ns 800 run_cnt 2\n";
        let found = programs(shown);
        let names: Vec<&str> = found.iter().map(|one| one.name).collect();
        assert_eq!(names, ["sfs_dispatch", "sfs_tick"]);
        assert_eq!((found[0].calls, found[0].ns), (2.0, 800.0));
    }
}
