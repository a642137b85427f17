//! Names of rows with settings: `NAME` or `NAME(KEY=VALUE;KEY=VALUE)`.

use crate::tuning::{Preemption, Tuning};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// Base slices that may be set, in ns.
const BASE_SLICE_NS: RangeInclusive<u64> = 100 * US..=S;
/// Slices of a task that may be set, in ns. The kernel uses the nearest of these for others.
const TASK_SLICE_NS: RangeInclusive<u64> = 100 * US..=100 * MS;
/// CPU times after which a daemon may demote, in ns.
const AFTER_NS: RangeInclusive<u64> = 100 * US..=100 * S;
/// Intervals at which a daemon may look at a process, in ns.
const POLL_NS: RangeInclusive<u64> = 100 * US..=S;

/// Steps in which a daemon may demote.
const STEPS: RangeInclusive<u32> = 1..=8;

/// The kernel that `cfs` boots in the VM: Debian 12's, as `vm/fetch-kernel` knows it.
pub const CFS_KERNEL: &str = "6.1";

/// The first series of kernels with EEVDF in place of CFS.
const EEVDF_SINCE: (u32, u32) = (6, 6);

/// A row that runs on the kernel's own scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// The fair scheduler since Linux 6.6.
    Eevdf,
    /// The fair scheduler before Linux 6.6.
    Cfs,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_BATCH.
    Batch,
    /// A daemon gives nice 19 to what has used S.
    Renice,
    /// A daemon gives SCHED_IDLE to what has used S.
    Idle,
    /// The SFS paper's prototype: a daemon gives SCHED_FIFO to what has not used S.
    SfsUser,
}

impl Base {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Eevdf,
        Self::Fifo,
        Self::Rr,
        Self::Batch,
        Self::Cfs,
        Self::Renice,
        Self::Idle,
        Self::SfsUser,
    ];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eevdf => "eevdf",
            Self::Cfs => "cfs",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Batch => "batch",
            Self::Renice => "renice",
            Self::Idle => "idle",
            Self::SfsUser => "sfs-user",
        }
    }

    /// The one with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether a daemon steers the processes.
    pub fn is_steered(self) -> bool {
        matches!(self, Self::Renice | Self::Idle | Self::SfsUser)
    }

    /// Checks that the kernel `release` (as `uname -r` prints it) has this scheduler.
    ///
    /// # Errors
    /// One sentence if `eevdf` would be CFS there, or the other way round.
    pub fn check_kernel(self, release: &str) -> Result<(), String> {
        let Some(series) = series(release) else {
            return Ok(());
        };
        match self {
            Self::Eevdf if series < EEVDF_SINCE => Err(format!(
                "kernel {release} has CFS and not EEVDF, which came with 6.6: call the row cfs"
            )),
            Self::Cfs if series >= EEVDF_SINCE => Err(format!(
                "kernel {release} has EEVDF and not CFS: cfs needs a kernel before 6.6, as vm/run --kernel {CFS_KERNEL} boots"
            )),
            _ => Ok(()),
        }
    }
}

/// The first two numbers of a release.
fn series(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A scheduler's name, and the settings behind it.
///
/// # Example
///
/// ```
/// use faas_baselines::name::Named;
///
/// let row = Named::parse("eevdf(slice=10ms;preempt=none)").unwrap();
/// assert_eq!(row.scheduler, "eevdf");
/// assert_eq!(row.settings.tuning.base_slice_ns, Some(10_000_000));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The scheduler: one of [`Base`], or a sched_ext scheduler's program.
    pub scheduler: String,
    /// Its settings.
    pub settings: Settings,
}

/// The settings of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The kernel that the VM boots for it: a version that `vm/fetch-kernel` knows.
    pub kernel: Option<String>,
    /// What is written into the kernel.
    pub tuning: Tuning,
    /// The slice of each function process, in ns.
    pub task_slice_ns: Option<u64>,
    /// S of a daemon, in ns; adaptive if `None`.
    pub after_ns: Option<u64>,
    /// Interval at which a daemon looks, in ns; its default if `None`.
    pub poll_ns: Option<u64>,
    /// Steps in which a daemon demotes; its default if `None`.
    pub steps: Option<u32>,
}

impl Named {
    /// Parses a row's name without its label.
    ///
    /// # Errors
    /// One sentence if the settings cannot be read, or are none of this scheduler.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheduler, words) = split(text)?;
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .filter(|(_, value)| !value.is_empty())
                .ok_or_else(|| format!("'{word}' in {text} is no setting; want KEY=VALUE"))?;
            if seen.contains(&key) {
                return Err(format!("{text} has {key} twice"));
            }
            seen.push(key);
            settings
                .set(scheduler, key, value)
                .map_err(|error| format!("{text}: {error}"))?;
        }
        Ok(Self {
            scheduler: scheduler.to_string(),
            settings,
        })
    }

    /// The kernel that a VM boots for it, if it matters.
    pub fn kernel(&self) -> Option<&str> {
        let default = (self.base() == Some(Base::Cfs)).then_some(CFS_KERNEL);
        self.settings.kernel.as_deref().or(default)
    }

    /// The scheduler, if it is the kernel's own.
    pub fn base(&self) -> Option<Base> {
        Base::find(&self.scheduler)
    }
}

/// The scheduler with its settings, and the label behind a `+`. In parentheses it begins none.
pub fn parts(row: &str) -> (&str, Option<&str>) {
    let settings_end = row.rfind(')').unwrap_or(0);
    let plus = row[settings_end..].find('+').map(|at| settings_end + at);
    match plus {
        Some(plus) => (&row[..plus], Some(&row[plus + 1..])),
        None => (row, None),
    }
}

/// Whether `row` is a scheduler's name, perhaps with settings in parentheses, and with `+` and
/// a label. It becomes the name of files.
pub fn is_row(row: &str) -> bool {
    let (given, label) = parts(row);
    let (scheduler, settings) = given.split_at(given.find('(').unwrap_or(given.len()));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_setting = |c: char| fine(c) || "+=;()".contains(c);
    !scheduler.is_empty()
        && scheduler.chars().all(plain)
        && settings.chars().all(is_setting)
        && label.is_none_or(|label| !label.is_empty() && label.chars().all(fine))
}

/// The name before the parentheses, and the words in them.
fn split(text: &str) -> Result<(&str, Vec<&str>), String> {
    let Some((scheduler, rest)) = text.split_once('(') else {
        return Ok((text, Vec::new()));
    };
    let inner = rest
        .strip_suffix(')')
        .filter(|inner| !inner.contains(['(', ')']));
    match inner {
        Some(inner) => Ok((scheduler, inner.split(';').collect())),
        None => Err(format!(
            "'{text}' is no row; want settings as {scheduler}(KEY=VALUE;KEY=VALUE)"
        )),
    }
}

impl Settings {
    /// Checks that the kernel `release` is the one that the row asks for, if it does.
    ///
    /// # Errors
    /// One sentence if it is another.
    pub fn check_kernel(&self, release: &str) -> Result<(), String> {
        match &self.kernel {
            Some(version) if !is_release(version, release) => Err(format!(
                "this is kernel {release}, and the row wants {version}: vm/run --kernel {version} boots it"
            )),
            _ => Ok(()),
        }
    }

    fn set(&mut self, scheduler: &str, key: &str, value: &str) -> Result<(), String> {
        let base = Base::find(scheduler);
        let steered = base.is_some_and(Base::is_steered);
        match key {
            "kernel" => self.kernel = Some(version(value)?),
            "preempt" => self.tuning.preemption = Some(Preemption::parse(value)?),
            "slice" if base != Some(Base::Cfs) => {
                self.tuning.base_slice_ns = Some(time(key, value, BASE_SLICE_NS)?);
            }
            "task-slice" if base == Some(Base::Eevdf) => {
                self.task_slice_ns = Some(time(key, value, TASK_SLICE_NS)?);
            }
            "after" if steered => self.after_ns = Some(time(key, value, AFTER_NS)?),
            "steps" if matches!(base, Some(Base::Renice | Base::Idle)) => {
                let steps = value.parse().ok().filter(|steps| STEPS.contains(steps));
                self.steps = Some(steps.ok_or_else(|| {
                    format!(
                        "steps is '{value}'; want a number from 1 to {}",
                        STEPS.end()
                    )
                })?);
            }
            "poll" if steered => self.poll_ns = Some(time(key, value, POLL_NS)?),
            _ => {
                return Err(format!(
                    "{key} is no setting of {scheduler}; it has {}",
                    known(base)
                ))
            }
        }
        Ok(())
    }
}

/// Whether `version` stands for `release`, as for `vm/fetch-kernel`: 6.1, 7.2+deb14, or all of it.
fn is_release(version: &str, release: &str) -> bool {
    let (series, build) = version.split_at(version.find('+').unwrap_or(version.len()));
    let rest = release.strip_prefix(series);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(['.', '+', '-']) && rest.contains(build)
    })
}

/// The settings of a scheduler, in words.
fn known(base: Option<Base>) -> &'static str {
    match base {
        Some(Base::Cfs) => "kernel and preempt",
        Some(Base::Eevdf) => "kernel, preempt, slice and task-slice",
        Some(Base::SfsUser) => "kernel, preempt, slice, after and poll",
        Some(base) if base.is_steered() => "kernel, preempt, slice, after, poll and steps",
        _ => "kernel, preempt and slice",
    }
}

fn version(value: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    match value.starts_with(|c: char| c.is_ascii_digit()) && value.chars().all(plain) {
        true => Ok(value.to_string()),
        false => Err(format!("'{value}' is no version of a kernel, as 6.1")),
    }
}

/// A time in ns within `range`.
fn time(key: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let end = value.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = value.split_at(end.unwrap_or(value.len()));
    let unit_ns = match unit {
        "us" => Some(US),
        "ms" => Some(MS),
        "s" => Some(S),
        _ => None,
    };
    let ns = unit_ns.and_then(|unit| number.parse::<u64>().ok()?.checked_mul(unit));
    ns.filter(|ns| range.contains(ns)).ok_or_else(|| {
        let (low, high) = (range.start() / US, range.end() / MS);
        format!("{key} is '{value}'; want a time from {low}us to {high}ms, as 10ms")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Named::parse(text).unwrap_err()
    }

    #[test]
    fn names_of_rows_are_names_of_files() {
        for good in [
            "eevdf",
            "scx_sfs",
            "sfs-no-hybrid",
            "scx_sfs+a.B_1-",
            "eevdf(slice=3ms;preempt=none)",
            "scx_sfs(kernel=7.2+deb14)+x",
        ] {
            assert!(is_row(good), "{good}");
        }
        for bad in [
            "", "+", "+x", "a+", "../x", "a/b", "A", "a b", "a+b+c", "a+b/c", "(a=b)", "a(b/c)",
            "a(b)+",
        ] {
            assert!(!is_row(bad), "{bad}");
        }
        assert_eq!(parts("a(k=1+2)+l"), ("a(k=1+2)", Some("l")));
    }

    #[test]
    fn a_name_without_settings_is_the_scheduler() {
        for name in ["eevdf", "scx_sfs", "sfs-user", "./x"] {
            let row = Named::parse(name).unwrap();
            assert_eq!(row.scheduler, name);
            assert_eq!(row.settings, Settings::default());
        }
    }

    #[test]
    fn settings_are_read() {
        let row = Named::parse("eevdf(slice=3ms;preempt=lazy;task-slice=500us;kernel=7.2+deb14)")
            .unwrap();
        assert_eq!(row.base(), Some(Base::Eevdf));
        let settings = row.settings;
        assert_eq!(settings.tuning.base_slice_ns, Some(3_000_000));
        assert_eq!(settings.tuning.preemption, Some(Preemption::Lazy));
        assert_eq!(settings.task_slice_ns, Some(500_000));
        assert_eq!(settings.kernel.as_deref(), Some("7.2+deb14"));
        let row = Named::parse("renice(after=1s;poll=8ms;steps=4)").unwrap();
        assert_eq!(row.settings.steps, Some(4));
        assert_eq!(row.settings.after_ns, Some(1_000_000_000));
        assert_eq!(row.settings.poll_ns, Some(8_000_000));
        let row = Named::parse("scx_bpfland(preempt=none)").unwrap();
        assert_eq!(row.base(), None);
        assert_eq!(row.settings.tuning.preemption, Some(Preemption::None));
    }

    #[test]
    fn cfs_has_a_kernel_of_its_own() {
        let kernel = |text| Named::parse(text).unwrap().kernel().map(str::to_string);
        assert_eq!(kernel("cfs").as_deref(), Some("6.1"));
        assert_eq!(kernel("cfs(kernel=5.10)").as_deref(), Some("5.10"));
        assert_eq!(kernel("eevdf"), None);
    }

    #[test]
    fn the_kernel_must_be_the_one_that_is_asked_for() {
        let check = |text, release| Named::parse(text).unwrap().settings.check_kernel(release);
        let old = "6.1.0-50-cloud-amd64";
        assert!(check("cfs(kernel=6.1)", old).is_ok() && check("fifo", old).is_ok());
        assert!(check("cfs(kernel=6.1)", "6.18.15+deb13-cloud-amd64").is_err());
        assert!(check("fifo(kernel=7.2+deb14)", "7.2.12+deb14-cloud-amd64").is_ok());
        assert!(check("fifo(kernel=7.2+deb14)", "7.2.12+deb13-cloud-amd64").is_err());
        assert!(check("fifo(kernel=6.1.0-50-cloud-amd64)", old).is_ok());
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for (text, want) in [
            ("eevdf(", "is no row"),
            ("eevdf(slice=1ms", "is no row"),
            ("eevdf(slice=1ms)x", "is no row"),
            ("eevdf((slice=1ms))", "is no row"),
            ("eevdf()", "'' in eevdf() is no setting"),
            ("eevdf(slice)", "is no setting"),
            ("eevdf(slice=)", "is no setting"),
            ("eevdf(slice=1ms;slice=2ms)", "slice twice"),
            ("eevdf(slice=1)", "want a time from 100us to 1000ms"),
            ("eevdf(slice=0ms)", "want a time"),
            ("eevdf(slice=2s)", "want a time"),
            ("eevdf(slice=99999999999999999999s)", "want a time"),
            ("eevdf(task-slice=101ms)", "want a time from 100us to 100ms"),
            ("eevdf(preempt=fast)", "none, voluntary, full or lazy"),
            ("eevdf(after=1ms)", "after is no setting of eevdf"),
            ("fifo(task-slice=1ms)", "it has kernel, preempt and slice"),
            ("cfs(slice=1ms)", "it has kernel and preempt"),
            ("scx_sfs(poll=1ms)", "poll is no setting of scx_sfs"),
            ("idle(steps=9)", "want a number from 1 to 8"),
            ("sfs-user(steps=2)", "steps is no setting of sfs-user"),
            ("eevdf(kernel=../x)", "is no version of a kernel"),
        ] {
            let said = error(text);
            assert!(said.contains(want), "{text}: {said}");
        }
    }

    #[test]
    fn cfs_and_eevdf_are_told_apart_by_the_kernel() {
        let old = "6.1.0-50-cloud-amd64";
        let new = "6.18.15+deb13-cloud-amd64";
        assert!(Base::Cfs.check_kernel(old).is_ok() && Base::Eevdf.check_kernel(new).is_ok());
        assert!(Base::Cfs.check_kernel(new).is_err() && Base::Eevdf.check_kernel(old).is_err());
        assert!(Base::Eevdf.check_kernel("6.6.0").is_ok());
        assert!(Base::Cfs.check_kernel("6.5.13-foo").is_ok());
        assert!(Base::Renice.check_kernel(old).is_ok());
        assert!(Base::Eevdf.check_kernel("unknown").is_ok());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,60}") {
            let _ = Named::parse(&text);
        }
    }
}
