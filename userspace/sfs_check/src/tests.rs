use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

const STATUS_OF_ROOT: &str = "Name:\tcat\nCapEff:\t000001ffffffffff\n";

/// The files of a machine.
struct Files(TempDir);

impl Files {
    /// A machine on which all is well.
    fn good() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "7.0.4-amd64\n"),
            ("proc/sys/net/core/bpf_jit_enable", "1\n"),
            ("proc/sys/fs/inotify/max_user_watches", "65536\n"),
            ("sys/kernel/sched_ext/state", "disabled\n"),
            ("sys/devices/system/cpu/isolated", "\n"),
            ("sys/devices/system/cpu/nohz_full", "(null)\n"),
            (
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc\n",
            ),
            ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n"),
            ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
            ("sys/fs/cgroup/f/a-1/cpu.max", "max 100000\n"),
        ] {
            files.write(path, text);
        }
        files.write_bytes(
            "sys/kernel/btf/vmlinux",
            &[&0xeb9f_u16.to_ne_bytes()[..], &[1, 0]].concat(),
        );
        files
    }

    fn write(&self, path: &str, text: &str) {
        self.write_bytes(path, text.as_bytes());
    }

    fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.0.path().join(path)).unwrap();
    }

    fn enable(&self, unit: &str) {
        let link = self
            .0
            .path()
            .join("etc/systemd/system/multi-user.target.wants")
            .join(unit);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("/usr/lib/systemd/system/none", link).unwrap();
    }

    fn examine(&self, wanted: &Wanted) -> Vec<Finding> {
        examine(&Machine::at(self.0.path()), Some(wanted))
    }

    /// Returns the findings of one check with the defaults.
    fn of(&self, check: &str) -> Vec<Finding> {
        self.with(check, &Wanted::default())
    }

    fn with(&self, check: &str, wanted: &Wanted) -> Vec<Finding> {
        let all = self.examine(wanted).into_iter();
        all.filter(|one| one.check == check).collect()
    }
}

fn with_cgroups(patterns: &[&str]) -> Wanted {
    let parse = |text: &&str| ((*text).to_owned(), SandboxPattern::parse(text).unwrap());
    Wanted {
        cgroups: patterns.iter().map(parse).collect(),
        ..Wanted::default()
    }
}

/// Checks that one finding is as bad as this and says both.
#[track_caller]
fn expect(findings: &[Finding], outcome: Outcome, found: &str, remedy: &str) {
    let [one] = findings else {
        panic!("{findings:#?}")
    };
    assert_eq!(one.outcome, outcome, "{one:?}");
    assert!(one.found.contains(found), "{one:?}");
    match &one.remedy {
        Some(text) => assert!(!remedy.is_empty() && text.contains(remedy), "{one:?}"),
        None => assert!(remedy.is_empty(), "{one:?}"),
    }
}

#[test]
fn all_is_well_on_a_good_machine() {
    let findings = Files::good().examine(&with_cgroups(&["f/*"]));
    for one in &findings {
        assert_eq!((one.outcome, &one.remedy), (Outcome::Ok, &None), "{one:?}");
    }
    assert!(findings.len() >= 13, "{findings:#?}");
    assert_eq!(worst(&findings), Outcome::Ok);
}

#[test]
fn whatever_is_not_well_has_a_remedy() {
    let empty = Files(tempfile::tempdir().unwrap());
    let findings = empty.examine(&with_cgroups(&["f/*"]));
    assert_eq!(worst(&findings), Outcome::Fail);
    for one in findings {
        assert_eq!(one.remedy.is_none(), one.outcome == Outcome::Ok, "{one:?}");
        assert!(!one.found.is_empty());
    }
}

#[test]
fn kernels_without_sched_ext_or_too_old_fail() {
    let files = Files::good();
    files.remove("sys/kernel/sched_ext/state");
    expect(
        &files.of("kernel"),
        Outcome::Fail,
        "7.0.4-amd64 has no sched_ext",
        "6.16",
    );
    let files = Files::good();
    for (release, outcome) in [
        ("6.15.9", Outcome::Fail),
        ("6.16.0", Outcome::Ok),
        ("10.1", Outcome::Ok),
    ] {
        files.write("proc/sys/kernel/osrelease", release);
        assert_eq!(files.of("kernel")[0].outcome, outcome, "{release}");
    }
    files.write("proc/sys/kernel/osrelease", "6.18.15");
    expect(
        &files.of("real-time tasks"),
        Outcome::Warn,
        "30 s of real-time work",
        "7.0",
    );
}

#[test]
fn type_information_is_looked_at() {
    let files = Files::good();
    files.write("sys/kernel/btf/vmlinux", "not types");
    expect(
        &files.of("BTF"),
        Outcome::Fail,
        "no type information in it",
        "findmnt",
    );
    files.write("sys/kernel/btf/vmlinux", "");
    expect(
        &files.of("BTF"),
        Outcome::Fail,
        "cannot be read",
        "CONFIG_DEBUG_INFO_BTF",
    );
}

#[test]
fn the_jit_compiler_cpus_and_the_clock_are_looked_at() {
    let files = Files::good();
    files.write("proc/sys/net/core/bpf_jit_enable", "0\n");
    expect(
        &files.of("BPF JIT"),
        Outcome::Fail,
        "is off",
        "bpf_jit_enable=1",
    );
    files.write("sys/devices/system/cpu/isolated", "2-3\n");
    expect(
        &files.of("isolated CPUs"),
        Outcome::Fail,
        "isolcpus=2-3",
        "cpuset.cpus.partition",
    );
    files.write("sys/devices/system/cpu/nohz_full", "1\n");
    expect(
        &files.of("nohz_full"),
        Outcome::Warn,
        "nohz_full=1",
        "partial",
    );
    let partial = Wanted {
        partial: true,
        ..Wanted::default()
    };
    expect(&files.with("nohz_full", &partial), Outcome::Ok, "1", "");
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    files.write(clock, "hpet\n");
    expect(&files.of("clock source"), Outcome::Warn, "hpet", "tsc");
    files.remove(clock);
    expect(
        &files.of("clock source"),
        Outcome::Warn,
        "cannot be read",
        "sysfs",
    );
}

#[test]
fn other_schedulers_are_named() {
    let files = Files::good();
    for (state, ops, outcome, found, remedy) in [
        (
            "enabled",
            "rustland_1.0",
            Outcome::Fail,
            "rustland_1.0",
            "stop it first",
        ),
        (
            "enabled",
            "sfs_0.1.0_x86_64",
            Outcome::Ok,
            "scx_sfs is loaded",
            "",
        ),
        ("disabling", "", Outcome::Ok, "waits for it", ""),
        (
            "enabling",
            "other",
            Outcome::Fail,
            "state enabling",
            "stop it first",
        ),
    ] {
        files.write("sys/kernel/sched_ext/state", state);
        files.write("sys/kernel/sched_ext/root/ops", ops);
        expect(&files.of("scheduler"), outcome, found, remedy);
    }
    files.enable("scx.service");
    expect(
        &files.of("other services"),
        Outcome::Ok,
        "scx_sfs.service is not",
        "",
    );
    files.enable("scx_sfs.service");
    expect(
        &files.of("other services"),
        Outcome::Warn,
        "scx.service is enabled",
        "systemctl disable scx.service",
    );
}

#[test]
fn cgroups_are_those_of_version_2_with_the_cpu_controller() {
    let files = Files::good();
    files.write("sys/fs/cgroup/cgroup.subtree_control", "memory\n");
    expect(
        &files.of("cgroups"),
        Outcome::Warn,
        "no cgroup uses it",
        "+cpu",
    );
    files.write("sys/fs/cgroup/cgroup.controllers", "cpuset memory\n");
    expect(
        &files.of("cgroups"),
        Outcome::Warn,
        "without the CPU controller",
        "CONFIG_CGROUP_SCHED",
    );
    files.remove("sys/fs/cgroup/cgroup.controllers");
    expect(
        &files.of("cgroups"),
        Outcome::Warn,
        "not mounted",
        "cgroup2",
    );
    let sandboxes = with_cgroups(&["f/*"]);
    expect(
        &files.with("cgroups", &sandboxes),
        Outcome::Fail,
        "the key cgroup needs",
        "cgroup2",
    );
}

#[test]
fn sandboxes_and_watches_are_counted() {
    let files = Files::good();
    let wanted = with_cgroups(&["f/*", "none/*"]);
    let found = files.with("sandboxes", &wanted);
    expect(&found[..1], Outcome::Ok, "1 cgroups match f/*", "");
    expect(
        &found[1..],
        Outcome::Warn,
        "no cgroup matches none/* now",
        "/proc/PID/cgroup",
    );
    files.write("proc/sys/fs/inotify/max_user_watches", "100");
    expect(
        &files.with("inotify", &wanted),
        Outcome::Warn,
        "100 watches",
        "max_user_watches=65536",
    );
    assert_eq!(files.of("inotify"), []);
}

#[test]
fn quotas_count_on_kernels_that_do_not_report_them() {
    let files = Files::good();
    files.write("sys/fs/cgroup/f/a-1/cpu.max", "50000 100000\n");
    expect(&files.of("quotas"), Outcome::Ok, "reports cpu.max", "");
    files.write("proc/sys/kernel/osrelease", "6.16.5");
    expect(
        &files.of("quotas"),
        Outcome::Fail,
        "f/a-1 has a quota",
        "6.17",
    );
    let ignored = Wanted {
        ignore_quotas: true,
        ..Wanted::default()
    };
    expect(
        &files.with("quotas", &ignored),
        Outcome::Warn,
        "not enforced",
        "6.17",
    );
    files.write("sys/fs/cgroup/f/a-1/cpu.max", "max 100000\n");
    expect(
        &files.of("quotas"),
        Outcome::Warn,
        "reports no quotas",
        "6.17",
    );
}

#[test]
fn each_platform_is_found_with_what_it_needs() {
    for (sign, name, pattern) in [
        (
            "sys/fs/cgroup/default-sandboxes/cg-1/x",
            "OpenLambda",
            "*-sandboxes/cg-*",
        ),
        (
            "sys/fs/cgroup/kubepods.slice/x",
            "Kubernetes (systemd",
            "cri-containerd-*.scope",
        ),
        (
            "sys/fs/cgroup/kubepods/x",
            "Kubernetes (cgroupfs",
            "kubepods/*/pod*/*",
        ),
        (
            "run/docker.sock",
            "Docker (systemd",
            "system.slice/docker-*.scope",
        ),
        ("sys/fs/cgroup/docker/1/x", "Docker (cgroupfs", "docker/*"),
        (
            "sys/fs/cgroup/firecracker/x",
            "Firecracker",
            "boundary = [\"fork\", \"idle\"]",
        ),
    ] {
        let files = Files::good();
        expect(
            &files.of("platform"),
            Outcome::Ok,
            "none of the known ones",
            "",
        );
        files.write(sign, "");
        expect(&files.of("platform"), Outcome::Warn, name, pattern);
        let found = PLATFORMS
            .iter()
            .find(|one| one.name.contains(name))
            .unwrap();
        let given = with_cgroups(found.cgroups);
        expect(&files.with("platform", &given), Outcome::Ok, name, "");
        let other = with_cgroups(&["f/*"]);
        expect(
            &files.with("platform", &other),
            Outcome::Warn,
            "not name its sandboxes",
            pattern,
        );
    }
    // Docker's socket is there with both drivers.
    let files = Files::good();
    files.write("run/docker.sock", "");
    files.write("sys/fs/cgroup/docker/1/x", "");
    expect(
        &files.of("platform"),
        Outcome::Warn,
        "Docker (cgroupfs",
        "docker/*",
    );
}

/// The table of the documentation has the patterns of each platform.
#[test]
fn platforms_are_those_of_the_documentation() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/invocations.md");
    let page = fs::read_to_string(page).unwrap();
    for platform in PLATFORMS {
        for pattern in platform.cgroups {
            assert!(page.contains(&format!("`{pattern}`")), "{pattern}");
        }
    }
}

#[test]
fn privileges_are_root_or_two_capabilities() {
    expect(&[privileges(STATUS_OF_ROOT)], Outcome::Ok, "may load", "");
    let two = "CapEff:\t000000c000000000\n";
    expect(
        &[privileges(two)],
        Outcome::Ok,
        "CAP_BPF and CAP_PERFMON",
        "",
    );
    for status in ["CapEff:\t0000008000000000\n", "CapEff:\tx\n", ""] {
        expect(&[privileges(status)], Outcome::Fail, "may not load", "root");
    }
}

#[test]
fn names_of_cgroups_forge_no_line() {
    let files = Files::good();
    files.write("proc/sys/kernel/osrelease", "6.16.5");
    files.write("sys/fs/cgroup/a\nok    quotas/cpu.max", "5 100000\n");
    let found = files.of("quotas");
    assert!(!found[0].found.contains('\n'), "{found:?}");
}
