/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel half of commit 989571b, as sfs_kernel_model's half.h has the present one: `sfs_variants
 * past` compiles the model with this file in its place.
 */
#ifndef __MODEL_HALF_H
#define __MODEL_HALF_H

void *bpf_map_lookup_percpu_elem(void *map, const void *key, u32 cpu);
static long past_ringbuf_output(void *map, void *data, u64 size, u64 flags);

#define bpf_ringbuf_output past_ringbuf_output
#include "sfs.bpf.c"
#undef bpf_ringbuf_output

/* Groups that have quota again, as throttled_groups. The map cpu_ctxs is an array below. */
#define HALF_MAPS \
	{ &released_groups, TYPE(released_groups), 0, sizeof(*released_groups.value), \
	  MOST(released_groups) }

#define half_default_table strangers

MODEL_BEGIN

/* All CPUs are online. */
const struct cpumask *scx_bpf_get_online_cpumask(void)
{
	static struct bpf_cpumask online;

	for (u32 cpu = 0; cpu < nr_cpu_ids; cpu++)
		bpf_cpumask_set_cpu(cpu, &online);
	return &online.cpumask;
}

void scx_bpf_put_cpumask(const struct cpumask *mask)
{
}

/* The model has no helper for another CPU's value. The only map that is read so has one key. */
void *bpf_map_lookup_percpu_elem(void *map, const void *key, u32 cpu)
{
	static struct cpu_ctx of_cpu[SFS_MAX_CPUS];

	model_point();
	return cpu < SFS_MAX_CPUS ? &of_cpu[cpu] : NULL;
}

/* A completion as the loader of today reads it. In the past it had no times beside the CPU time,
 * and each counted for the estimate of unknown functions. */
static long past_ringbuf_output(void *map, void *data, u64 size, u64 flags)
{
	const struct sfs_completion *past = data;
	struct {
		u64 function, service_ns, turnaround_ns, queued_ns;
		u32 killed, counted;
	} today = { .counted = 1 };

	if (map != &completions)
		return bpf_ringbuf_output(map, data, size, flags);
	today.function = past->function;
	today.service_ns = past->service_ns;
	today.killed = past->killed;
	return bpf_ringbuf_output(map, &today, sizeof(today), flags);
}

#define HALF_COUNTS_QUEUES false

/* Nobody looks at its cache lines, and its credit is not checked. */
#define HALF_VARIABLES       VARIABLE(stats)
#define HALF_CHARGES_AT_ONCE false

static u32 half_queue_in(const struct task_ctx *tctx)
{
	return 0;
}

static s64 half_waiting(u32 queue)
{
	return 0;
}

static s64 half_unknown(u32 queue)
{
	return 0;
}

static u64 half_nr_arrivals(void)
{
	return nr_arrivals;
}

/* The number is fixed. */
static void half_set_completion_batch(u32 batch)
{
}

/* It does not count these. */
static bool half_is_first(const struct task_ctx *tctx)
{
	return false;
}

static s64 half_first(void)
{
	return 0;
}

static s64 half_demand(void)
{
	return filter_demand;
}

static s64 half_present(void)
{
	return nr_present;
}

/* There were no tenants. */
static u64 half_share_weight(const struct group *g)
{
	return 0;
}

static s64 half_share_runnable(const struct group *g)
{
	return 0;
}

static s64 half_sharing_weight(void)
{
	return 0;
}

static u64 half_tenant(const struct task_ctx *tctx)
{
	return 0;
}

static u64 half_active_group(const struct task_ctx *tctx)
{
	return tctx->active_group;
}

static u32 half_active_weight(const struct task_ctx *tctx)
{
	return tctx->active_group ? tctx->active_weight : 0;
}

/* There were no such callbacks. */
static s32 half_prep_move(struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	return 0;
}

static void half_cpu_release(s32 cpu)
{
}

static void half_cpu_acquire(s32 cpu)
{
}

static u64 half_relieved(const struct sfs_stats *of_cpu)
{
	return of_cpu->counter[SFS_RELIEVED];
}

static bool half_is_held_back(struct task_ctx *tctx)
{
	return false;
}

static u64 half_saved_up(const struct task_ctx *tctx)
{
	return FAIR_TURNS_BEHIND * fair_slice_ns;
}

static u64 half_now(void)
{
	return scx_bpf_now();
}

/* No callback of it is watched: the rules are those of today. */
const char *const *model_list_words(bool answers, u32 *count)
{
	*count = 0;
	return NULL;
}

void model_look(struct task_struct *p, s32 cpu, bool answers, s64 *words)
{
}

void model_look_at_cpu(s32 cpu, s64 *words)
{
}

void model_set_watch(void *watch)
{
}

bool model_is_sandbox(u64 id)
{
	return false;
}

bool model_is_guard(const void *map)
{
	return false;
}

u32 model_bucket_of(u64 ns)
{
	return 0;
}

u64 model_bucket_start(u32 bucket)
{
	return 0;
}

u32 model_significant_bits(u64 n)
{
	return 0;
}

u64 model_mix_group_name(const char *name, u64 hash)
{
	return hash;
}

MODEL_END

#endif /* __MODEL_HALF_H */
