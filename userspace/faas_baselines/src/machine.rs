//! What a summary says about the kernel: its tick, its preemption, its slices.

use crate::tuning::{base_slice_in_force, number_in_force, preemption_in_force, FOLDER};
use faas_data::summary::machine::KernelSettings;
use std::path::Path;

/// Reads the settings in force; `release` is the kernel's release, as `uname -r` prints it.
/// What cannot be read is left out: debugfs needs root, and a kernel may be without a file of
/// its configuration.
pub fn read(release: &str, task_slice_ns: Option<u64>) -> KernelSettings {
    let config = std::fs::read_to_string(format!("/boot/config-{release}")).unwrap_or_default();
    in_folder(Path::new(FOLDER), &config, task_slice_ns)
}

fn in_folder(folder: &Path, config: &str, task_slice_ns: Option<u64>) -> KernelSettings {
    KernelSettings {
        hz: hz(config),
        preemption: preemption_in_force(folder).or_else(|| built_in(config)),
        base_slice_ns: base_slice_in_force(folder),
        task_slice_ns,
        latency_ns: number_in_force(folder, "latency_ns"),
        min_granularity_ns: number_in_force(folder, "min_granularity_ns"),
        wakeup_granularity_ns: number_in_force(folder, "wakeup_granularity_ns"),
    }
}

/// Ticks a second, from a kernel's configuration.
fn hz(config: &str) -> Option<u32> {
    let value = config
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_HZ="));
    value?.trim().parse().ok()
}

/// The preemption mode that a kernel is built with.
fn built_in(config: &str) -> Option<String> {
    let has = |option: &str| {
        config
            .lines()
            .any(|line| line.strip_suffix("=y") == Some(option))
    };
    let modes = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
    ];
    let mode = modes.into_iter().find(|(option, _)| has(option));
    mode.map(|(_, name)| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
# CONFIG_HZ_1000 is not set
CONFIG_HZ_250=y
CONFIG_HZ=250
# CONFIG_PREEMPT_NONE is not set
CONFIG_PREEMPT_VOLUNTARY=y
CONFIG_PREEMPT_NOTIFIERS=y
";

    #[test]
    fn the_configuration_has_tick_and_preemption() {
        assert_eq!(hz(CONFIG), Some(250));
        assert_eq!(built_in(CONFIG).as_deref(), Some("voluntary"));
        assert_eq!((hz(""), built_in("")), (None, None));
    }

    #[test]
    fn what_is_in_force_goes_before_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("preempt"), "none (full)\n").unwrap();
        std::fs::write(folder.path().join("latency_ns"), "6000000\n").unwrap();
        let read = in_folder(folder.path(), CONFIG, Some(5));
        let want = KernelSettings {
            hz: Some(250),
            preemption: Some("full".into()),
            task_slice_ns: Some(5),
            latency_ns: Some(6_000_000),
            ..KernelSettings::default()
        };
        assert_eq!(read, want);
    }
}
