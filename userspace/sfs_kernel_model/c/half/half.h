/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel half, and what the model reads of it by names that change in the course of time. For
 * a kernel half of the past another file of this name takes its place (sfs_variants/c).
 */
#ifndef __MODEL_HALF_H
#define __MODEL_HALF_H

#include "watch.h"
#include "sfs.bpf.c"
#include "watch.h"

/* Maps that not every kernel half has, for the table in model.c. */
#define HALF_MAPS KEYED(guard_timers), KEYED(kernel_exits)

/* Variables and maps whose cache lines have names, for the table in model.c. */
/* clang-format off */
#define HALF_VARIABLES \
	VARIABLE(slice_ns), \
	VARIABLE(mode), \
	VARIABLE(nr_cpu_ids), \
	VARIABLE(fair_vtime_now), \
	VARIABLE(nr_limited), \
	VARIABLE(groups_generation), \
	VARIABLE(overload_since), \
	VARIABLE(overload_told_at), \
	VARIABLE(fair_cpus), \
	VARIABLE(cpu_shards), \
	VARIABLE(often.nr_arrivals), \
	VARIABLE(often.sharing_clock), \
	VARIABLE(often.present), \
	VARIABLE(often.demand), \
	VARIABLE(often.waiting), \
	VARIABLE(running), \
	VARIABLE(cpu_ctxs), \
	VARIABLE(sandboxes), \
	VARIABLE(functions), \
	VARIABLE(groups), \
	VARIABLE(rank_tables), \
	VARIABLE(function_tables), \
	VARIABLE(stats), \
	VARIABLE(iat_map), \
	VARIABLE(task_ctxs),
/* clang-format on */

/* Whether all CPU time of a task is charged whenever it stops. */
#define HALF_CHARGES_AT_ONCE true

/* The rank table of functions without one of their own. */
#define half_default_table default_table

MODEL_BEGIN

/* Whether it counts the tasks that wait in each shared queue. */
#define HALF_COUNTS_QUEUES true

/* The number of the shared queue that counts the task; 0: none. */
static u32 half_queue_in(const struct task_ctx *tctx)
{
	return queue_in(tctx->queue);
}

static s64 half_waiting(u32 queue)
{
	return often.waiting[queue];
}

/* 1: a task without a context has waited in that queue. */
static s64 half_unknown(u32 queue)
{
	return (often.unknown >> queue) & 1;
}

static u64 half_nr_arrivals(void)
{
	return often.nr_arrivals;
}

static void half_set_completion_batch(u32 batch)
{
	completion_batch = batch;
}

/* Whether a CPU counts the task as a short turn in its local queue. */
static bool half_is_first(const struct task_ctx *tctx)
{
	return tctx->first_on != 0;
}

/* The same of all CPUs. */
static s64 half_first(void)
{
	s64 sum = 0;

	for (u32 cpu = 0; cpu < nr_cpu_ids; cpu++)
		sum += lookup_cpu_ctx(cpu)->nr_first;
	return sum;
}

static s64 half_demand(void)
{
	return often.demand;
}

static s64 half_present(void)
{
	return often.present;
}

/* Tenants: the weight of a group among them, its runnable tasks, the weight of all, and the tenant
 * that counts a task as runnable; 0: none. */
static u64 half_share_weight(const struct group *g)
{
	return g->share.weight;
}

static s64 half_share_runnable(const struct group *g)
{
	return g->share.runnable;
}

static s64 half_sharing_weight(void)
{
	return sharing.weight;
}

static u64 half_tenant(const struct task_ctx *tctx)
{
	return tenant(tctx);
}

/* The group that counts a task as active, 0: none, and its weight there. */
static u64 half_active_group(const struct task_ctx *tctx)
{
	return active_group(tctx);
}

static u32 half_active_weight(const struct task_ctx *tctx)
{
	return tctx->active & ACTIVE_WEIGHT_MASK;
}

static s32 half_prep_move(struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	return sfs_cgroup_prep_move(p, from, to);
}

static void half_cpu_release(s32 cpu)
{
	struct scx_cpu_release_args args = {};

	sfs_cpu_release(cpu, &args); /* they say why, which nobody reads */
}

static void half_cpu_acquire(s32 cpu)
{
	sfs_cpu_acquire(cpu, NULL);
}

/* How many tasks a CPU has moved from FILTER to FAIR, in place of a late loader or for a debt. */
static u64 half_relieved(const struct sfs_stats *of_cpu)
{
	return of_cpu->counter[SFS_RELIEVED] + of_cpu->counter[SFS_IN_DEBT];
}

/* Whether a task with credit waits in FAIR all the same. */
static bool half_is_held_back(struct task_ctx *tctx)
{
	return is_in_debt(tctx);
}

/* How far a task may be behind FAIR's virtual time; @tctx may be NULL. */
static u64 half_saved_up(const struct task_ctx *tctx)
{
	return fair_saved_up(tctx);
}

/* The clock of its times. */
static u64 half_now(void)
{
	return clock_now();
}

MODEL_END

#endif /* __MODEL_HALF_H */
