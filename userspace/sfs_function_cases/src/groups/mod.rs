//! Control groups: cpu.weight and cpu.max.

mod quotas;
mod shares;
mod throttled;
mod weights;

use sfs_testbed::case::Case;

/// The cases of these files, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "weights_share_fair",
        about: "groups with weights 100 and 300 share the machine 1:3, with any number of tasks",
        run: weights::weights_share_fair,
    },
    Case {
        name: "weights_share_level_by_level",
        about: "a group's share is divided among the groups in it, and follows changes of weight",
        run: weights::weights_share_level_by_level,
    },
    Case {
        name: "nesting_gains_no_weight",
        about: "a tenant whose tasks are many groups deep has the share of its outermost group",
        run: weights::nesting_gains_no_weight,
    },
    Case {
        name: "weights_order_functions",
        about: "of functions that need the same, those of the group with more weight go first",
        run: weights::weights_order_functions,
    },
    Case {
        name: "light_tenants_debt_is_paid",
        about: "a tenant of low weight goes on once its debt is paid, although all of its tasks wait with credit left",
        run: weights::light_tenants_debt_is_paid,
    },
    Case {
        name: "removed_groups_leave_no_weight",
        about: "groups removed while their last task ends in FAIR leave no weight behind",
        run: weights::removed_groups_leave_no_weight,
    },
    Case {
        name: "quota_is_kept_in_fair",
        about: "a group with half a CPU gets half a CPU, although other CPUs idle",
        run: quotas::quota_is_kept_in_fair,
    },
    Case {
        name: "quota_is_kept_in_filter",
        about: "the same for a function within its credit",
        run: quotas::quota_is_kept_in_filter,
    },
    Case {
        name: "quota_holds_for_all_threads_and_levels",
        about: "a group's quota holds for the threads of all groups in it, and each of these keeps its own",
        run: quotas::quota_holds_for_all_threads_and_levels,
    },
    Case {
        name: "quota_holds_at_any_depth",
        about: "a tenant that nests groups below its own gets no more than its quota",
        run: quotas::quota_holds_at_any_depth,
    },
    Case {
        name: "quotas_of_hundreds_of_groups",
        about: "hundreds of groups are throttled all the time: each gets its quota, and daemons are not delayed",
        run: quotas::quotas_of_hundreds_of_groups,
    },
    Case {
        name: "changed_quotas_hold_up_nobody",
        about: "a group gets its quota while another group's quota changes every millisecond",
        run: quotas::changed_quotas_hold_up_nobody,
    },
    Case {
        name: "lifted_quota_frees_its_tasks",
        about: "tasks that wait for a quota continue when it is lifted, while another one is set and lifted every millisecond",
        run: quotas::lifted_quota_frees_its_tasks,
    },
    Case {
        name: "quotas_are_kept_or_nothing_is_loaded",
        about: "a quota older than the scheduler is kept; on kernels that report no quotas the loader refuses",
        run: quotas::quotas_are_kept_or_nothing_is_loaded,
    },
    Case {
        name: "groups_without_room_are_refused",
        about: "a group beyond --max-cgroups, whose quota could not be kept, cannot be made",
        run: quotas::groups_without_room_are_refused,
    },
    Case {
        name: "lifted_quota_lets_go",
        about: "tasks that wait for quota continue when it is lifted or when they are moved",
        run: throttled::lifted_quota_lets_go,
    },
    Case {
        name: "quota_outlasts_the_first_ranks",
        about: "tasks that wait for quota before they have had a turn continue by rank",
        run: throttled::quota_outlasts_the_first_ranks,
    },
    Case {
        name: "quota_does_not_prolong_overload",
        about: "functions with credit that wait for quota do not count as demand on FILTER",
        run: throttled::quota_does_not_prolong_overload,
    },
    Case {
        name: "quota_holds_nobody_inside_the_kernel",
        about: "a lock held by a group that is out of quota delays others only as long as under EEVDF",
        run: throttled::quota_holds_nobody_inside_the_kernel,
    },
    Case {
        name: "quota_leaves_others_alone",
        about: "a short process is not slower beside a throttled group",
        run: throttled::quota_leaves_others_alone,
    },
    Case {
        name: "idle_and_uclamp_break_nothing",
        about: "groups have their shares after cpu.idle and cpu.uclamp are set and reset",
        run: weights::idle_and_uclamp_break_nothing,
    },
    Case {
        name: "quota_delays_no_grace_period",
        about: "RCU's grace periods take at most 200 ms while groups wait for quota",
        run: throttled::quota_delays_no_grace_period,
    },
];
