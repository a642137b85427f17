//! The platforms of this machine, and what each needs: the table of docs/invocations.md.

use sfs_cgroups::SandboxPattern;

use crate::{has_entries, Finding, Machine, Wanted};

/// A platform that runs functions.
#[derive(Debug)]
pub struct Platform {
    /// Its name.
    pub name: &'static str,
    /// Files, or patterns for cgroups, one of which shows that it is there.
    pub signs: &'static [&'static str],
    /// The patterns that `cgroup` needs.
    pub cgroups: &'static [&'static str],
    /// Further keys that it needs, as lines of a configuration file.
    pub keys: &'static [&'static str],
    /// The example configuration.
    pub example: &'static str,
}

/// The platforms, as in docs/invocations.md.
pub const PLATFORMS: [Platform; 6] = [
    Platform {
        name: "OpenLambda",
        signs: &["/sys/fs/cgroup/*-sandboxes"],
        cgroups: &["*-sandboxes/cg-*"],
        keys: &[],
        example: "openlambda.toml",
    },
    Platform {
        name: "Kubernetes (systemd driver)",
        signs: &["/sys/fs/cgroup/kubepods.slice"],
        cgroups: &[
            "kubepods.slice/*/*/cri-containerd-*.scope",
            "kubepods.slice/*/cri-containerd-*.scope",
        ],
        keys: &[],
        example: "kubernetes-systemd.toml",
    },
    Platform {
        name: "Kubernetes (cgroupfs driver)",
        signs: &["/sys/fs/cgroup/kubepods"],
        cgroups: &["kubepods/*/pod*/*"],
        keys: &[],
        example: "kubernetes-cgroupfs.toml",
    },
    Platform {
        name: "Docker (systemd driver)",
        signs: &[
            "/run/docker.sock",
            "/sys/fs/cgroup/system.slice/docker-*.scope",
        ],
        cgroups: &["system.slice/docker-*.scope"],
        keys: &[],
        example: "docker-systemd.toml",
    },
    Platform {
        name: "Docker (cgroupfs driver)",
        signs: &["/sys/fs/cgroup/docker"],
        cgroups: &["docker/*"],
        keys: &[],
        example: "docker-cgroupfs.toml",
    },
    Platform {
        name: "Firecracker with its jailer",
        signs: &["/sys/fs/cgroup/firecracker"],
        cgroups: &["firecracker/*"],
        keys: &["unit = \"thread\"", "boundary = [\"fork\", \"idle\"]"],
        example: "firecracker.toml",
    },
];

impl Platform {
    /// Returns whether a machine has it.
    fn is_on(&self, machine: &Machine) -> bool {
        self.signs.iter().any(|sign| {
            let of_cgroup = sign.starts_with(sfs_cgroups::CGROUP_ROOT);
            match SandboxPattern::parse(sign) {
                Ok(pattern) if of_cgroup => pattern.count(&machine.cgroup_root(), 1) > 0,
                _ => machine.exists(sign),
            }
        })
    }

    /// Returns the keys that it needs, as lines of a configuration file.
    pub fn lines(&self) -> Vec<String> {
        let quoted = self.cgroups.iter().map(|pattern| format!("\"{pattern}\""));
        let list = quoted.collect::<Vec<_>>().join(", ");
        let keys = self.keys.iter().map(|line| (*line).to_owned());
        std::iter::once(format!("cgroup = [{list}]"))
            .chain(keys)
            .collect()
    }
}

pub(crate) fn examine(machine: &Machine, wanted: &Wanted) -> Vec<Finding> {
    let present: Vec<&Platform> = PLATFORMS
        .iter()
        .filter(|platform| platform.is_on(machine))
        // Docker's socket is there with both drivers.
        .filter(|platform| {
            platform.example != "docker-systemd.toml"
                || !has_entries(&machine.path("/sys/fs/cgroup/docker"))
        })
        .collect();
    if present.is_empty() {
        let found = match wanted.cgroups.is_empty() {
            true => "none of the known ones: each process started from now on is a function",
            false => "none of the known ones; the key cgroup says what functions are",
        };
        return vec![Finding::ok("platform", found)];
    }
    let findings = present.iter().map(|platform| examine_one(platform, wanted));
    findings.collect()
}

fn examine_one(platform: &Platform, wanted: &Wanted) -> Finding {
    const CHECK: &str = "platform";
    let is_given = |pattern: &&&str| {
        wanted
            .cgroups
            .iter()
            .any(|(text, _)| normal(text) == **pattern)
    };
    let given = platform.cgroups.iter().filter(is_given).count();
    let lines = platform.lines().join("; ");
    let name = platform.name;
    if given == platform.cgroups.len() {
        return Finding::ok(CHECK, format!("{name}: its sandboxes are functions"));
    }
    if wanted.cgroups.is_empty() {
        return Finding::warn(
            CHECK,
            format!("{name}: without the key cgroup every new process is a function"),
            format!(
                "if it runs the functions, write {lines} (examples/{})",
                platform.example
            ),
        );
    }
    Finding::warn(
        CHECK,
        format!("{name}: the key cgroup does not name its sandboxes as usual"),
        format!(
            "if it runs the functions, add {lines} (examples/{})",
            platform.example
        ),
    )
}

/// A pattern without what `--cgroup` leaves out at its start.
fn normal(pattern: &str) -> &str {
    let below = pattern.strip_prefix(sfs_cgroups::CGROUP_ROOT);
    below.unwrap_or(pattern).trim_matches('/')
}
