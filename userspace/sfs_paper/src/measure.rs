//! Measures a setting like `make bench`, which keeps finished rows.

use crate::plan::{self, Setting, Size, Source};
use anyhow::{bail, Context, Result};
use sfs_jobs::job;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use sfs_lab::bench::settings::Size as Length;
use sfs_lab::bench::{self, Outcome, Row, Settings, Workload};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// The file name of a converted trace in its setting's folder.
pub const CONVERTED: &str = "converted.csv";

/// The file of a setting's folder with the commit that measured it last.
pub const COMMIT: &str = "commit";

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
    let folder = places.folder(setting);
    let before = written(&folder, setting);
    let outcome =
        bench::run(&places.tree, &settings, interrupt).with_context(|| setting.name.clone())?;
    if before != written(&folder, setting) || !folder.join(COMMIT).exists() {
        let file = folder.join(COMMIT);
        std::fs::write(&file, commit(places))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(outcome)
}

/// When each row's result was written; `None` if it is not there.
fn written(folder: &Path, setting: &Setting) -> Vec<Option<SystemTime>> {
    let time = |row: &plan::Row| {
        let file = folder.join(format!("{}.csv", row.name));
        file.metadata().and_then(|found| found.modified()).ok()
    };
    setting.rows.iter().map(time).collect()
}

/// The commit of the repository, with `+` if files differ from it; `unknown`
/// outside of a repository.
fn commit(places: &Places) -> String {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(places.tree.at("")).args(arguments);
        let output = git.stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    let Some(head) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".to_string();
    };
    let clean = git(&["status", "--porcelain", "--untracked-files=no"]);
    match clean.is_some_and(|changes| changes.is_empty()) {
        true => head,
        false => head + "+",
    }
}

/// The options of a row. The paper's policy is not scx_sfs's default.
fn options(row: &plan::Row) -> Option<String> {
    let policy = match row.name.split('+').next() {
        Some("scx_sfs") => "--policy sfs ",
        _ => "",
    };
    let options = format!("{policy}{}", row.options);
    Some(options.trim().to_string()).filter(|options| !options.is_empty())
}

/// The settings of `make bench`.
fn settings(places: &Places, how: &How, setting: &Setting, source: bench::Source) -> Settings {
    let rows = setting.rows.iter().map(|row| Row {
        name: row.name.to_string(),
        args: options(row),
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
        Source::Fc { .. } | Source::List { .. } => {
            let folder = places.folder(setting);
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
            let trace = folder.join(CONVERTED);
            convert(places, setting, &trace)?;
            Ok(bench::Source::File(trace))
        }
    }
}

/// Converts the front of a published list.
fn convert(places: &Places, setting: &Setting, trace: &Path) -> Result<()> {
    let (list, options) = conversion(setting);
    let list = places.traces.join(list);
    let mut command = job::call(&places.tree, places.tree.program("faasbench"));
    command.arg("convert").args(options);
    command.arg(&list).arg("-o").arg(trace);
    let status = job::run(&mut command).context("faasbench is not built; run make first")?;
    if status != 0 {
        bail!("faasbench convert failed on {}", list.display());
    }
    Ok(())
}

/// The list below the folder of traces, and the options of `faasbench convert`.
fn conversion(setting: &Setting) -> (String, Vec<String>) {
    let of = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    match &setting.source {
        Source::Fc {
            list,
            load,
            scale,
            figure,
        } => {
            let (load, scale) = (load.to_string(), scale.to_string());
            let (first, cpus) = (setting.invocations.to_string(), setting.cpus.to_string());
            let mut options = of(&["fc", "--figure", figure, "--first", &first]);
            options.extend(of(&["--load", &load, "--scale", &scale, "--cpus", &cpus]));
            (format!("fc-microbenchmark/workloads/{list}.txt"), options)
        }
        Source::List { multiplier, first } => {
            let mut options = of(&["sfs", "--multiplier", &multiplier.to_string()]);
            if let Some(first) = first {
                options.extend(of(&["--first", &first.to_string()]));
            }
            ("sfs/test1.txt".to_string(), options)
        }
        Source::Generated { .. } => (String::new(), Vec::new()),
    }
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
        list: Some(5),
        table1: "table1",
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
        assert_eq!(
            rows,
            [("eevdf", None), ("scx_sfs+a", Some("--policy sfs -v"))]
        );
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
    fn published_lists_are_converted_as_the_papers_have_them() {
        let list = Setting::list(SIZE, 7, &[row("ps")]);
        let (file, options) = conversion(&list);
        assert_eq!(file, "sfs/test1.txt");
        assert_eq!(options.join(" "), "sfs --multiplier 7 --first 5");
        let all = Size { list: None, ..SIZE };
        let (_, options) = conversion(&Setting::list(all, 13, &[]));
        assert_eq!(options.join(" "), "sfs --multiplier 13");
        let fc = Setting {
            source: Source::Fc {
                list: "l",
                load: 0.9,
                scale: 0.1,
                figure: "start-waits",
            },
            ..list
        };
        let (file, options) = conversion(&fc);
        assert_eq!(file, "fc-microbenchmark/workloads/l.txt");
        let want = "fc --figure start-waits --first 5 --load 0.9 --scale 0.1 --cpus 12";
        assert_eq!(options.join(" "), want);
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
