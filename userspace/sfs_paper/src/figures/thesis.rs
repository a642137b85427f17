//! The workloads of N.J.L. Boonstra's thesis (fc-microbenchmark): run-time, its
//! difference from the uncontended run-time, and its variation. Beside our
//! results stand those of the thesis, on 72 CPUs with the Linux policies of its
//! day.

use super::{at, mean, turnaround_chart, turnaround_table, Drawn, Figure};
use crate::data::{Measured, Run};
use crate::plan::{row, Setting, Size, Source};
use crate::table::{factor, ms, Table};
use anyhow::{Context, Result};
use faas_data::measure::Measure;
use faas_data::stats::{sorted, variation};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Service times are a tenth of the list's, to limit the duration.
const SCALE: f64 = 0.1;

/// W1: 50,000 invocations that count primes.
pub const W1: Figure = figure(
    "w1",
    "W1 of the thesis: counting primes",
    |size| setting(size, "w1", "poisson-50000-1hr-cpu", 0.9),
    |measured, traces| draw(measured, traces, "poisson-50000-1hr-cpu", "primes-5500000"),
);

/// W2: 25,000 invocations; three of four count primes, one uses memory.
pub const W2: Figure = figure(
    "w2",
    "W2 of the thesis: primes and memory, 3 to 1",
    |size| setting(size, "w2", "poisson-25000-1hr-75cpu25mem", 0.48),
    |measured, traces| {
        draw(
            measured,
            traces,
            "poisson-25000-1hr-75cpu25mem",
            "primes-5500000",
        )
    },
);

/// W3: 12,500 invocations that use memory.
pub const W3: Figure = figure(
    "w3",
    "W3 of the thesis: memory",
    |size| setting(size, "w3", "poisson-12500-1hr-mem", 0.285),
    |measured, traces| draw(measured, traces, "poisson-12500-1hr-mem", "stream-20"),
);

/// The hour of W1 to W3 on the thesis's 36 cores, simulated.
pub const SIMULATED: Figure = Figure {
    id: "thesis-simulated",
    title: "W1 to W3 of the thesis: a whole hour on 36 cores, simulated",
    settings: |size| {
        let hours = [
            ("w1", 0.9, 50_000),
            ("w2", 0.48, 25_000),
            ("w3", 0.285, 12_500),
        ];
        let rows = ["ps", "sfs", "learned", "srtf"].map(row);
        let setting = |(workload, load, invocations)| {
            let mut setting = Setting::generated(size, workload, load, &rows);
            setting.name += "-simulated";
            setting.title = format!("{}, load {load}", workload.to_uppercase());
            setting.invocations = invocations;
            setting.cpus = CORES;
            setting
        };
        hours.map(setting).to_vec()
    },
    draw: |measured, _| {
        let selected = ["primes-5500000", "primes-5500000", "stream-20"];
        let pairs = measured.iter().zip(selected);
        let table = |(one, selected): (&Measured, &str)| {
            let mut table = own(one, selected);
            table.name = one.title[..2].to_lowercase();
            table.title = format!("Run-times, {}", one.title);
            table
        };
        Ok(Drawn {
            tables: pairs.map(table).collect(),
            charts: Vec::new(),
            notes: vec![NOTE.into()],
        })
    },
    needs_traces: false,
};

/// Cores of the thesis's machine, without SMT.
const CORES: u32 = 36;

/// W1's list as functions of about equal CPU time: whole microVMs as CPU time,
/// which needs 1.02 of the machine. No experiment of the thesis.
pub const EQUAL: Figure = figure(
    "equal",
    "Functions of about equal CPU time, load 1.02",
    |size| {
        let mut settings = setting(size, "w1", "poisson-50000-1hr-cpu", 1.02);
        settings[0].name = "equal".into();
        settings[0].title = "W1, load 1.02".into();
        if let Source::Fc { figure, .. } = &mut settings[0].source {
            *figure = "tfc";
        }
        settings
    },
    |measured, _| {
        Ok(Drawn {
            tables: vec![
                turnaround_table("turnaround", &measured[0]),
                own(&measured[0], "primes-5500000"),
            ],
            charts: vec![turnaround_chart("turnaround", &measured[0])],
            notes: vec![NOTE.into()],
        })
    },
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
        settings,
        draw,
        needs_traces: true,
    }
}

/// The front of a list, at the load that the whole list offers to 36 CPUs.
fn setting(size: Size, name: &str, list: &'static str, load: f64) -> Vec<Setting> {
    vec![Setting {
        name: name.to_string(),
        title: format!("{}, load {load}", name.to_uppercase()),
        source: Source::Fc {
            list,
            load,
            scale: SCALE,
            figure: "start-waits",
        },
        rows: ["eevdf", "fifo", "rr", "batch", "scx_sfs"]
            .map(row)
            .to_vec(),
        invocations: size.invocations,
        cpus: size.cpus,
    }]
}

/// What the columns of the run-times mean.
const NOTE: &str = "run-time / alone is total run-time / total uncontended run-time, delta / alone is the excess over 1 \
     (time-deltas in sum), mean delta is the mean time-delta of the program that the thesis selects (its Table 5), and \
     variation the coefficient of variation of its run-times, deviation / mean, as in the thesis's figure 12.";

/// One run of a program, its run-time, and its uncontended run-time, both in
/// the same unit.
struct Timed {
    program: String,
    took: f64,
    alone: f64,
}

/// The table of our run-times.
fn own(measured: &Measured, selected: &str) -> Table {
    let columns = [
        "scheduler",
        "run-time / alone",
        "delta / alone",
        "p99 / alone",
        "mean delta, ms",
        "variation",
    ];
    let mut table = Table::new("runtime", "Run-times", &columns);
    for run in &measured.runs {
        table.push(cells(&run.label(), &timed(measured, run), selected));
    }
    table
}

fn draw(measured: &[Measured], traces: &Path, list: &str, selected: &str) -> Result<Drawn> {
    let one = &measured[0];
    let mut table = own(one, selected);
    for scheduler in ["CFS", "FIFO", "RR", "BATCH"] {
        let all = published(traces, list, scheduler)?;
        table.push(cells(&format!("{scheduler} (thesis)"), &all, selected));
    }
    Ok(Drawn {
        tables: vec![table],
        charts: vec![turnaround_chart("turnaround", one)],
        notes: vec![
            NOTE.into(),
            format!(
                "Ours: the front of the list, {SCALE} of its times; a microVM's start blocks except for 0.53 s (docs/workloads.md). \
                 Those of the thesis: its published results over the whole hour, whole microVMs (tFC), with the mean of ten \
                 baselines as the time alone. Its runs also waited for memory, which ours do not."
            ),
        ],
    })
}

/// The columns for a sample; `selected` is a program with its argument.
fn cells(name: &str, all: &[Timed], selected: &str) -> Vec<String> {
    let total = |value: fn(&Timed) -> f64| all.iter().map(value).sum::<f64>();
    let (took, alone) = (total(|one| one.took), total(|one| one.alone));
    let ratios = sorted(all.iter().map(|one| one.took / one.alone).collect());
    let own = || all.iter().filter(|one| one.program == selected);
    let deltas: Vec<f64> = own().map(|one| (one.took - one.alone) / 1e3).collect();
    let times: Vec<f64> = own().map(|one| one.took).collect();
    vec![
        name.to_string(),
        factor(took / alone),
        factor((took - alone) / alone),
        factor(at(&ratios, 990)),
        ms(mean(&deltas)),
        variation(&times).map_or("-".into(), |found| format!("{found:.3}")),
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

/// The thesis's results, and the mean of its ten baselines for the same program
/// and argument; times in microseconds.
fn published(traces: &Path, list: &str, scheduler: &str) -> Result<Vec<Timed>> {
    let folder = traces.join("fc-microbenchmark/results");
    let baselines = rows(&folder.join(format!("{scheduler}-baselines-{list}.txt.gz")))?;
    let mut alone: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for fields in baselines {
        // workloadID, argument, run, tFC, tVM
        if let [id, argument, _, took, _] = fields.as_slice() {
            alone.entry(name(*id, *argument)).or_default().push(*took);
        }
    }
    let results = rows(&folder.join(format!("{scheduler}-results-{list}.txt.gz")))?;
    // workloadID, argument, tFC, tVM, start
    let timed = results.iter().filter_map(|fields| {
        let [id, argument, took, _, _] = fields.as_slice() else {
            return None;
        };
        let program = name(*id, *argument);
        let alone = mean(alone.get(&program)?) * 1e3;
        Some(Timed {
            program,
            took: took * 1e3,
            alone,
        })
    });
    Ok(timed.collect())
}

/// A program with its argument, as `faasbench convert fc` names it.
fn name(program: f64, argument: f64) -> String {
    let known = ["primes", "write", "stream"];
    let program = known.get(program as usize).unwrap_or(&"unknown");
    format!("{program}-{argument}")
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
            one("a", 10e3, 10e3),
            one("a", 30e3, 10e3),
            one("b", 20e3, 20e3),
        ];
        // 60 / 40; of a: deltas of 0 and 20 ms, times with mean 20 and deviation 10
        let want = ["x", "1.50x", "0.50x", "3.00x", "10.0", "0.500"];
        assert_eq!(cells("x", &all, "a"), want);
        assert_eq!(cells("x", &[], "a")[4..], ["-", "-"]);
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
        let found = published(dir.path(), "l", "CFS").unwrap();
        let found: Vec<(f64, f64)> = found.iter().map(|one| (one.took, one.alone)).collect();
        // The mean of 100, 110 and 90 ms.
        assert_eq!(found, [(300e3, 100e3), (200e3, 100e3), (1e3, 100e3)]);
        let said = format!("{:#}", published(dir.path(), "l", "RR").err().unwrap());
        assert!(said.contains("RR-baselines-l.txt.gz"), "{said}");
    }
}
