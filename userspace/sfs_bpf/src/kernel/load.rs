//! Loading the kernel half: opens it, sets its tunables, and loads it into the kernel.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::{bpf_object_open_opts, size_t};
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::OpenObject;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use scx_utils::{compat, scx_ops_load, scx_ops_open};
use tracing::{debug, warn};

use super::tunables::{Span, Tunables};
use super::{messages, KernelHalf, Slice};
use crate::boundary;
use crate::bpf_skel::{BpfSkelBuilder, OpenBpfSkel};
use crate::left_out::LeftOut;
use crate::preflight::{isolated_cpus, reports_quotas};
use crate::shards;

impl<'object> KernelHalf<'object> {
    pub(super) fn open_and_load(
        tunables: &Tunables,
        cpus: u32,
        slice: Slice,
        past: &[Span],
        object: &'object mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        let builder = BpfSkelBuilder::default();
        let kernel_config = kernel_config()?;
        let open_options = Some(open_options(&tunables.libbpf, &kernel_config));
        let mut skel = scx_ops_open!(builder, object, sfs_ops, open_options)?;
        if tunables.verifier_statistics {
            log_verifier_statistics(&mut skel);
        }
        set_operations(&mut skel, tunables);
        if !reports_quotas()? {
            do_without_quotas(&mut skel, tunables.ignore_quotas);
        }
        set_variables(&mut skel, tunables, past)?;
        boundary::choose_programs(&mut skel, &tunables.boundaries, tunables.identity);
        make_room(&mut skel, tunables)?;

        let mut skel = scx_ops_load!(skel, sfs_ops, uei)?;
        let data = skel.maps.data_data.as_mut();
        // It does not schedule yet, so nobody reads this concurrently.
        data.context("the kernel half has no data")?
            .nr_function_cpus = cpus;
        let mut half = Self {
            skel,
            link: None,
            watchers: Vec::new(),
            left_out: LeftOut::default(),
            queues_failed: false,
        };
        half.set_slice(slice);
        Ok(half)
    }
}

/// Sets the scheduler's struct_ops fields for the kernel.
fn set_operations(skel: &mut OpenBpfSkel<'_>, tunables: &Tunables) {
    let ops = skel.struct_ops.sfs_ops_mut();
    ops.exit_dump_len = tunables.exit_dump_len;
    ops.flags = *compat::SCX_OPS_ENQ_EXITING
        | *compat::SCX_OPS_ENQ_LAST
        | *compat::SCX_OPS_ENQ_MIGRATION_DISABLED;
    if tunables.partial {
        ops.flags |= *compat::SCX_OPS_SWITCH_PARTIAL;
    }
}

/// On a kernel that does not report quotas to a scheduler, removes the callback for them.
fn do_without_quotas(skel: &mut OpenBpfSkel<'_>, are_ignored: bool) {
    warn!(
        "this kernel does not tell a scheduler of cpu.max (6.17 and later do): {}",
        if are_ignored {
            "quotas of cgroups are not enforced"
        } else {
            "scx_sfs exits when a cgroup has a quota"
        }
    );
    skel.struct_ops.sfs_ops_mut().cgroup_set_bandwidth = std::ptr::null_mut();
    skel.progs.sfs_cgroup_set_bandwidth.set_autoload(false);
}

/// Sets the variables of the kernel half that stay constant once it is loaded.
fn set_variables(skel: &mut OpenBpfSkel<'_>, tunables: &Tunables, past: &[Span]) -> Result<()> {
    let partition = shards::partition(tunables.shards)?;
    debug!("FILTER has {} shards", partition.shards);
    let variables = skel
        .maps
        .rodata_data
        .as_mut()
        .context("the kernel half has no tunables")?;
    variables.fair_slice_ns = tunables.fair_slice_ns;
    variables.fair_max_wait_ns = tunables.fair_max_wait_ns;
    variables.iat_window = tunables.iat_window;
    variables.overload_enabled = tunables.overload;
    variables.loader_tgid = std::process::id() as i32;
    variables.nr_cpu_ids = *scx_utils::NR_CPU_IDS as u32;
    variables.nr_shards = partition.shards;
    variables.cpu_shards = partition.of_cpu;
    variables.debug = tunables.debug;
    variables.policy = tunables.policy.number();
    variables.ageing_tenths = tunables.ageing_tenths;
    variables.unit = tunables.unit.number();
    let bits = tunables.boundaries.iter().map(|one| one.bit());
    variables.boundaries = bits.fold(0, |all, bit| all | bit);
    variables.identity = tunables.identity.number();
    variables.only_sandboxes = tunables.only_sandboxes;
    variables.idle_boundary_ns = tunables.idle_boundary_ns;
    variables.receive_port = tunables.receive_port.to_be();
    // With sandboxes, membership decides instead.
    let past = if tunables.only_sandboxes { &[] } else { past };
    for (place, span) in variables.past.iter_mut().zip(past) {
        (place.from, place.to) = (span.from, span.to);
    }
    Ok(())
}

/// Sizes the maps for sandboxes and for cgroups with a weight and a quota. The list of
/// throttled cgroups has room for all of the latter at once.
fn make_room(skel: &mut OpenBpfSkel<'_>, tunables: &Tunables) -> Result<()> {
    let sandboxes = skel.maps.sandboxes.set_max_entries(tunables.max_sandboxes);
    sandboxes.context("cannot make room for sandboxes")?;
    let maps = [&mut skel.maps.groups, &mut skel.maps.throttled_groups];
    for map in maps {
        map.set_max_entries(tunables.max_cgroups)
            .context("cannot make room for cgroups")?;
    }
    Ok(())
}

/// Makes libbpf report the verifier's statistics for each program.
fn log_verifier_statistics(skel: &mut OpenBpfSkel<'_>) {
    const BPF_LOG_STATS: u32 = 4; // kernel/bpf/verifier.c, include/linux/bpf_verifier.h

    for mut program in skel.open_object_mut().progs_mut() {
        program.set_log_level(BPF_LOG_STATS);
    }
}

/// Adds the known cause to an error of the kernel.
pub(super) fn explained<T>(result: Result<T>) -> Result<T> {
    match isolated_cpus() {
        Some(cpus) if result.is_err() => result.with_context(|| {
            format!(
                "the kernel accepts no sched_ext scheduler while its command line isolates \
                 CPUs (isolcpus={cpus}): isolate them in a cpuset partition instead \
                 (cpuset.cpus.partition)"
            )
        }),
        _ => {
            if result.is_err() {
                messages::show();
            }
            result
        }
    }
}

/// Returns what the kernel half needs of the kernel's configuration, in the format of the
/// config file. With it, the file itself is not needed, which some machines lack.
fn kernel_config() -> Result<CString> {
    // Tasks have this field only with preemptible RCU.
    let preemptible = compat::struct_has_field("task_struct", "rcu_read_lock_nesting")?;
    let value = if preemptible { 'y' } else { 'n' };
    Ok(CString::new(format!("CONFIG_PREEMPT_RCU={value}\n"))?)
}

/// Returns libbpf's options: the user's, plus the kernel configuration unless the user gave
/// one. They are valid as long as `kernel_config` is.
fn open_options(given: &LibbpfOpts, kernel_config: &CStr) -> bpf_object_open_opts {
    let given = given.clone().into_bpf_open_opts();
    let mut open = given.unwrap_or_else(|| bpf_object_open_opts {
        sz: size_of::<bpf_object_open_opts>() as size_t,
        ..bpf_object_open_opts::default()
    });
    if open.kconfig.is_null() {
        open.kconfig = kernel_config.as_ptr();
    }
    open
}
