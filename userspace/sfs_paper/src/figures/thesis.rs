//! The workloads of N.J.L. Boonstra's thesis (fc-microbenchmark): run-time, its
//! difference from the uncontended run-time, and its variation. Beside our
//! results stand those of the thesis, on 72 CPUs with the Linux policies of its
//! day.

use super::{at, turnaround_chart, Drawn, Figure};
use crate::data::{Measured, Run};
use crate::plan::{row, Setting, Size, Source};
use crate::table::{factor, Table};
use anyhow::{Context, Result};
use faas_data::measure::Measure;
use faas_data::stats::{sorted, variation};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

const SOURCE: &str =
    "fc-microbenchmark's results, those that started first, 72 CPUs, whole microVMs \
                      (tFC): in the table";

/// Service times are a tenth of the list's, to limit the duration.
const SCALE: f64 = 0.1;

/// W1: 50,000 invocations that count primes.
pub const W1: Figure = figure(
    "w1",
    "W1 of the thesis: counting primes",
    |size| setting(size, "w1", "poisson-50000-1hr-cpu", 1.02),
    |measured, traces| draw(measured, traces, "poisson-50000-1hr-cpu"),
);

/// W2: 25,000 invocations; three of four count primes, one uses memory.
pub const W2: Figure = figure(
    "w2",
    "W2 of the thesis: primes and memory, 3 to 1",
    |size| setting(size, "w2", "poisson-25000-1hr-75cpu25mem", 0.534),
    |measured, traces| draw(measured, traces, "poisson-25000-1hr-75cpu25mem"),
);

/// W3: 12,500 invocations that use memory.
pub const W3: Figure = figure(
    "w3",
    "W3 of the thesis: memory",
    |size| setting(size, "w3", "poisson-12500-1hr-mem", 0.289),
    |measured, traces| draw(measured, traces, "poisson-12500-1hr-mem"),
);

const fn figure(
    id: &'static str,
    title: &'static str,
    settings: fn(Size) -> Vec<Setting>,
    draw: fn(&[Measured], &Path) -> Result<Drawn>,
) -> Figure {
    Figure {
        id,
        title,
        published: &[SOURCE],
        settings,
        draw,
        needs_traces: true,
    }
}

/// The front of a list, at the load that the whole list offers to 72 CPUs.
fn setting(size: Size, name: &str, list: &'static str, load: f64) -> Vec<Setting> {
    vec![Setting {
        name: name.to_string(),
        title: format!("{}, load {load}", name.to_uppercase()),
        source: Source::Fc {
            list,
            load,
            scale: SCALE,
        },
        rows: ["eevdf", "fifo", "rr", "batch", "scx_sfs"]
            .map(row)
            .to_vec(),
        invocations: size.invocations,
        cpus: size.cpus,
    }]
}

/// One run of a program, its run-time, and its uncontended run-time, both in
/// the same unit.
struct Timed {
    program: String,
    took: f64,
    alone: f64,
}

fn draw(measured: &[Measured], traces: &Path, list: &str) -> Result<Drawn> {
    let one = &measured[0];
    let columns = [
        "scheduler",
        "run-time / alone",
        "delta / alone",
        "p99 / alone",
        "variation within a program",
    ];
    let mut table = Table::new("runtime", "Run-times", &columns);
    for run in &one.runs {
        table.push(cells(&run.label(), &timed(one, run)));
    }
    for scheduler in ["CFS", "FIFO", "RR", "BATCH"] {
        let all = published(traces, list, scheduler, one.trace.len())?;
        table.push(cells(&format!("{scheduler} (thesis)"), &all));
    }
    Ok(Drawn {
        tables: vec![table],
        charts: vec![turnaround_chart("turnaround", one)],
        notes: vec![
            "run-time / alone is total run-time / total uncontended run-time, delta / alone is the excess over 1, variation \
             is the coefficient of variation among runs of the same program with the \
             same argument, averaged over the runs."
                .into(),
            format!(
                "Ours: the front of the list, {SCALE} of its service times, microVM start included and taken as CPU \
                 time, at the load that the list offers to the thesis's 72 CPUs. The thesis's runs also waited for memory \
                 and for the start of microVMs; no CPU scheduler changes these waits, and ours have none. Only the \
                 differences between schedulers can be compared."
            ),
        ],
    })
}

/// The columns for a sample.
fn cells(name: &str, all: &[Timed]) -> Vec<String> {
    let total = |value: fn(&Timed) -> f64| all.iter().map(value).sum::<f64>();
    let (took, alone) = (total(|one| one.took), total(|one| one.alone));
    let ratios = sorted(all.iter().map(|one| one.took / one.alone).collect());
    let mut programs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in all {
        programs.entry(&one.program).or_default().push(one.took);
    }
    let weighted = programs
        .values()
        .filter_map(|runs| Some(variation(runs)? * runs.len() as f64));
    let within = weighted.sum::<f64>() / all.len().max(1) as f64;
    vec![
        name.to_string(),
        factor(took / alone),
        factor((took - alone) / alone),
        factor(at(&ratios, 990)),
        if all.is_empty() {
            "-".into()
        } else {
            format!("{within:.3}")
        },
    ]
}

fn timed(measured: &Measured, run: &Run) -> Vec<Timed> {
    let one = |found: &Measure| {
        let invocation = &measured.trace[found.id];
        Timed {
            program: invocation.function.clone(),
            took: found.turnaround_us as f64,
            alone: invocation.uncontended_us() as f64,
        }
    };
    run.measures.iter().map(one).collect()
}

/// The thesis's first `count` results by start time, and the median of its
/// baselines for the same program and argument.
fn published(traces: &Path, list: &str, scheduler: &str, count: usize) -> Result<Vec<Timed>> {
    let folder = traces.join("fc-microbenchmark/results");
    let baselines = rows(&folder.join(format!("{scheduler}-baselines-{list}.txt.gz")))?;
    let mut alone: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for fields in baselines {
        // workloadID, argument, run, tFC, tVM
        if let [id, argument, _, took, _] = fields.as_slice() {
            alone
                .entry(format!("{id}-{argument}"))
                .or_default()
                .push(*took);
        }
    }
    let medians: BTreeMap<String, f64> = alone
        .into_iter()
        .map(|(program, runs)| (program, at(&sorted(runs), 500)))
        .collect();
    let mut results = rows(&folder.join(format!("{scheduler}-results-{list}.txt.gz")))?;
    // workloadID, argument, tFC, tVM, start; the sort keeps the order within a second
    results.retain(|fields| fields.len() == 5);
    results.sort_by(|one, other| one[4].total_cmp(&other[4]));
    let timed = results.iter().take(count).filter_map(|fields| {
        let program = format!("{}-{}", fields[0], fields[1]);
        let alone = *medians.get(&program)?;
        Some(Timed {
            program,
            took: fields[2],
            alone,
        })
    });
    Ok(timed.collect())
}

/// The numbers of a compressed file, line by line, without the header.
fn rows(path: &Path) -> Result<Vec<Vec<f64>>> {
    let cannot = || format!("cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(cannot)?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .with_context(cannot)?;
    let numbers = |line: &str| {
        line.split(',')
            .map(|field| field.trim().parse().ok())
            .collect::<Option<Vec<f64>>>()
    };
    Ok(text.lines().filter_map(numbers).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_times_are_compared_with_uncontended_ones() {
        let one = |program: &str, took, alone| Timed {
            program: program.into(),
            took,
            alone,
        };
        let all = [
            one("a", 10.0, 10.0),
            one("a", 30.0, 10.0),
            one("b", 20.0, 20.0),
        ];
        // 60 / 40; a: mean 20, deviation 10, so 0.5 for two of three
        assert_eq!(cells("x", &all), ["x", "1.50x", "0.50x", "3.00x", "0.333"]);
        assert_eq!(cells("x", &[])[4], "-");
    }

    #[test]
    fn results_are_read_from_compressed_files() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("fc-microbenchmark/results");
        std::fs::create_dir_all(&folder).unwrap();
        let pack = |name: &str, text: &str| {
            let file = std::fs::File::create(folder.join(name)).unwrap();
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            packed.write_all(text.as_bytes()).unwrap();
            packed.finish().unwrap();
        };
        pack(
            "CFS-baselines-l.txt.gz",
            "id, argument, run, tFC, tVM\n0,5,0,100,1\n0,5,1,110,1\n0,5,2,90,1\n",
        );
        pack(
            "CFS-results-l.txt.gz",
            "id, argument, tFC, tVM, start\n0,5,300,1,20\n0,5,200,1,10\n0,5,1,1,30\n",
        );
        let found = published(dir.path(), "l", "CFS", 2).unwrap();
        let found: Vec<(f64, f64)> = found.iter().map(|one| (one.took, one.alone)).collect();
        assert_eq!(found, [(200.0, 100.0), (300.0, 100.0)]);
        let said = format!("{:#}", published(dir.path(), "l", "RR", 2).err().unwrap());
        assert!(said.contains("RR-baselines-l.txt.gz"), "{said}");
    }
}
