//! The kernel: its version, what it was built with, its CPUs and its clock.

use crate::{version_of, Finding, Machine, Wanted};

/// The oldest version that has all that the kernel half needs, and the first one that reports
/// quotas to a scheduler.
const OLDEST: (u32, u32) = (6, 16);

/// The first version with a deadline server for sched_ext tasks.
const WITH_SERVER: (u32, u32) = (7, 0);

/// Magic number at the start of type information, in the byte order of the machine
/// (include/uapi/linux/btf.h).
const BTF_MAGIC: u16 = 0xeb9f;

/// Clock sources that a program reads without a system call or an exit to the hypervisor.
const FAST_CLOCKS: [&str; 7] = [
    "tsc",
    // The same before its rate is measured exactly.
    "tsc-early",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "riscv_clocksource",
];

pub(crate) fn examine(machine: &Machine, wanted: &Wanted) -> Vec<Finding> {
    let release = machine
        .read("/proc/sys/kernel/osrelease")
        .unwrap_or_default();
    vec![
        kernel(machine, &release),
        types(machine),
        jit(machine),
        isolated(machine),
        nohz(machine, wanted),
        real_time(&release),
        clock(machine),
    ]
}

fn kernel(machine: &Machine, release: &str) -> Finding {
    const CHECK: &str = "kernel";
    let boot = "boot a kernel of version 6.16 or later with CONFIG_SCHED_CLASS_EXT=y, such as \
                that of Debian 13's backports (kernel-config/check tells what a kernel lacks)";
    let name = match release {
        "" => "a kernel of unknown version",
        release => &format!("Linux {release}"),
    };
    if !machine.exists("/sys/kernel/sched_ext/state") {
        return Finding::fail(CHECK, format!("{name} has no sched_ext"), boot);
    }
    match version_of(release) {
        Some(version) if version < OLDEST => {
            let found = format!("{name} has a sched_ext that is too old");
            Finding::fail(CHECK, found, boot)
        }
        _ => Finding::ok(CHECK, format!("{name} has sched_ext")),
    }
}

fn types(machine: &Machine) -> Finding {
    const CHECK: &str = "BTF";
    const FILE: &str = "/sys/kernel/btf/vmlinux";
    let magic = first_bytes(machine, FILE);
    match magic {
        None => Finding::fail(
            CHECK,
            format!("there is no type information in {FILE}, or it cannot be read"),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        ),
        Some(magic) if u16::from_ne_bytes(magic) == BTF_MAGIC => {
            Finding::ok(CHECK, format!("type information in {FILE}"))
        }
        Some(_) => Finding::fail(
            CHECK,
            format!("{FILE} has no type information in it"),
            "look whether something has been mounted there (findmnt)",
        ),
    }
}

/// Returns the first two bytes of a file. It may have megabytes.
fn first_bytes(machine: &Machine, path: &str) -> Option<[u8; 2]> {
    use std::io::Read;
    let mut bytes = [0; 2];
    let mut file = std::fs::File::open(machine.path(path)).ok()?;
    file.read_exact(&mut bytes).ok().map(|()| bytes)
}

fn jit(machine: &Machine) -> Finding {
    const CHECK: &str = "BPF JIT";
    match machine.read("/proc/sys/net/core/bpf_jit_enable").as_deref() {
        Some("0") => Finding::fail(
            CHECK,
            "the JIT compiler of BPF is off, without which no scheduler can be loaded",
            "sysctl net.core.bpf_jit_enable=1",
        ),
        Some(_) => Finding::ok(CHECK, "on"),
        // Only root of the first network namespace sees it.
        None => Finding::ok(CHECK, "not visible here; usually on"),
    }
}

fn isolated(machine: &Machine) -> Finding {
    const CHECK: &str = "isolated CPUs";
    match cpus(machine, "/sys/devices/system/cpu/isolated") {
        None => Finding::ok(CHECK, "none on the kernel's command line"),
        Some(cpus) => Finding::fail(
            CHECK,
            format!(
                "isolcpus={cpus}: the kernel accepts no sched_ext scheduler while its command \
                 line isolates CPUs"
            ),
            "isolate them in a cpuset partition instead (cpuset.cpus.partition)",
        ),
    }
}

fn nohz(machine: &Machine, wanted: &Wanted) -> Finding {
    const CHECK: &str = "nohz_full";
    match cpus(machine, "/sys/devices/system/cpu/nohz_full") {
        Some(cpus) if !wanted.partial => Finding::warn(
            CHECK,
            format!("nohz_full={cpus} has no effect on tasks of scx_sfs"),
            "leave tasks that must run without the tick to the fair scheduler (partial = true)",
        ),
        Some(cpus) => Finding::ok(
            CHECK,
            format!("{cpus}, and only tasks that ask for it are scheduled"),
        ),
        None => Finding::ok(CHECK, "no CPUs"),
    }
}

/// Returns the list of CPUs in a kernel file, or None if it is empty.
fn cpus(machine: &Machine, path: &str) -> Option<String> {
    let cpus = machine.read(path)?;
    // Without CPUs on the command line, nohz_full contains "(null)".
    (!cpus.is_empty() && cpus != "(null)").then_some(cpus)
}

fn real_time(release: &str) -> Finding {
    const CHECK: &str = "real-time tasks";
    match version_of(release) {
        Some(version) if version < WITH_SERVER => Finding::warn(
            CHECK,
            "this kernel reserves no CPU time for sched_ext tasks: after 30 s of real-time work \
             on every CPU it ends scx_sfs",
            "bound real-time tasks, or use a kernel of version 7.0 or later",
        ),
        _ => Finding::ok(CHECK, "the kernel reserves CPU time for sched_ext tasks"),
    }
}

fn clock(machine: &Machine) -> Finding {
    const CHECK: &str = "clock source";
    const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match machine.read(FILE) {
        None => Finding::warn(
            CHECK,
            format!("{FILE} cannot be read"),
            "mount sysfs at /sys",
        ),
        Some(name) if FAST_CLOCKS.contains(&name.as_str()) => Finding::ok(CHECK, name),
        Some(name) => Finding::warn(
            CHECK,
            format!(
                "{name}: each reading takes microseconds, and the kernel reads it at each switch"
            ),
            "look in dmesg why tsc is not used; in a virtual machine, give it kvm-clock or an \
             invariant tsc",
        ),
    }
}
