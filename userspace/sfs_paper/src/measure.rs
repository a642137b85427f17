//! Measures a setting like `make bench`, which keeps finished rows.

use crate::plan::{Setting, Size, Source};
use anyhow::{bail, Context, Result};
use sfs_jobs::job;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use sfs_lab::bench::settings::Size as Length;
use sfs_lab::bench::{self, Outcome, Row, Settings, Workload};
use std::path::{Path, PathBuf};

/// The folders.
#[derive(Debug, Clone)]
pub struct Places {
    /// The repository.
    pub tree: Tree,
    /// The folder of measurements, with one folder per setting.
    pub out: PathBuf,
    /// The folder of the published traces, which may be missing.
    pub traces: PathBuf,
}

impl Places {
    /// The folder of a setting.
    pub fn folder(&self, setting: &Setting) -> PathBuf {
        self.out.join(&setting.name)
    }
}

/// Parameters that are the same for all settings.
#[derive(Debug, Clone)]
pub struct How {
    /// The sizes.
    pub size: Size,
    /// The VMs.
    pub vms: VmArgs,
}

/// Measures the missing rows of `setting`.
///
/// # Errors
/// If the trace cannot be made, the rows cannot be run, or
/// [`sfs_jobs::failure::Failure::Interrupted`].
pub fn measure(
    places: &Places,
    how: &How,
    setting: &Setting,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let source = source(places, how.size, setting)?;
    let settings = settings(places, how, setting, source);
    bench::run(&places.tree, &settings, interrupt).with_context(|| setting.name.clone())
}

/// The settings of `make bench`.
fn settings(places: &Places, how: &How, setting: &Setting, source: bench::Source) -> Settings {
    let rows = setting.rows.iter().map(|row| Row {
        name: row.name.to_string(),
        args: Some(row.options.to_string()).filter(|options| !options.is_empty()),
        ..Row::default()
    });
    let mut settings = Settings::new(rows.collect(), source);
    settings.cpus = setting.cpus;
    settings.out = places.folder(setting);
    how.vms.apply(&mut settings);
    settings
}

/// The trace, made here if bench cannot make it.
fn source(places: &Places, size: Size, setting: &Setting) -> Result<bench::Source> {
    match &setting.source {
        Source::Generated {
            workload,
            load,
            scale,
            options,
        } => Ok(bench::Source::Generated(Workload {
            name: (*workload).to_string(),
            invocations: setting.invocations.to_string(),
            load: load.to_string(),
            size: Length::Scale(scale.to_string()),
            seed: size.seed.to_string(),
            options: options.clone(),
        })),
        Source::Fc { list, load, scale } => {
            let folder = places.folder(setting);
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
            let list = format!("fc-microbenchmark/workloads/{list}.txt");
            let trace = folder.join("fc.csv");
            let list = places.traces.join(list);
            convert(places, &list, setting, (*load, *scale), &trace)?;
            Ok(bench::Source::File(trace))
        }
    }
}

/// Converts the front of a list of fc-microbenchmark.
fn convert(
    places: &Places,
    list: &Path,
    setting: &Setting,
    (load, scale): (f64, f64),
    trace: &Path,
) -> Result<()> {
    let mut command = job::call(&places.tree, places.tree.program("faasbench"));
    command
        .args(["convert", "fc", "--figure", "tfc"])
        .arg(list)
        .args(["--first", &setting.invocations.to_string()])
        .args(["--load", &load.to_string(), "--scale", &scale.to_string()])
        .args(["--cpus", &setting.cpus.to_string()])
        .arg("-o")
        .arg(trace);
    let status = job::run(&mut command).context("faasbench is not built; run make first")?;
    if status != 0 {
        bail!("faasbench convert failed on {}", list.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{row, with};
    use clap::Parser;
    use sfs_jobs::failure::Failure;

    #[derive(Debug, Parser)]
    struct Vms {
        #[command(flatten)]
        vms: VmArgs,
    }

    const SIZE: Size = Size {
        invocations: 5,
        headline: 5,
        cpus: 2,
        seed: 1,
    };

    fn how() -> How {
        let vms = Vms::parse_from(["paper", "--jobs", "3", "--accel", "tcg"]).vms;
        How { size: SIZE, vms }
    }

    fn places(root: &Path) -> Places {
        Places {
            tree: Tree::new(root, None),
            out: root.join("out"),
            traces: root.join("none"),
        }
    }

    #[test]
    fn bench_gets_the_settings() {
        let places = places(Path::new("/r"));
        let rows = [row("eevdf"), with("scx_sfs+a", "-v")];
        let setting = Setting::table1(SIZE, 0.5, &rows);
        let source = source(&places, SIZE, &setting).unwrap();
        let settings = settings(&places, &how(), &setting, source);
        let rows = settings.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (&row.name[..], row.args.as_deref()))
            .collect();
        assert_eq!(rows, [("eevdf", None), ("scx_sfs+a", Some("-v"))]);
        assert_eq!((settings.cpus, settings.jobs), (2, Some(3)));
        assert_eq!(settings.out, Path::new("/r/out/table1-load0.50"));
        let bench::Source::Generated(workload) = settings.source else {
            panic!("not a workload: {:?}", settings.source);
        };
        let values = [
            &workload.name,
            &workload.invocations,
            &workload.load,
            &workload.seed,
        ];
        assert_eq!(values, ["table1", "5", "0.5", "1"]);
        assert_eq!(workload.size, Length::Scale("1".into()));
    }

    #[test]
    fn errors_of_bench_name_the_setting_and_keep_their_status() {
        let root = tempfile::tempdir().unwrap();
        let setting = Setting::table1(SIZE, 0.5, &[row("ps")]);
        let measured = measure(
            &places(root.path()),
            &how(),
            &setting,
            &Interrupt::default(),
        );
        let error = measured.unwrap_err();
        let said = format!("{error:#}");
        assert!(
            said.starts_with("table1-load0.50: ") && said.ends_with("run make first"),
            "{said}"
        );
        assert!(matches!(error.downcast_ref(), Some(Failure::Usage(_))));
    }
}
