/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shards: FILTER split by last-level cache. One queue is one lock and a few cache lines that all
 * CPUs share, which does not scale to hundreds of CPUs. With one shard, the default on smaller
 * machines, FILTER is one queue and this file adds nothing.
 *
 * A CPU serves its own shard first. At each dispatch it also looks at one other shard, in
 * rotation, and serves that one if its head came SHARD_LAG_NS before the head of the CPU's own
 * shard. So FILTER as a whole is first-in-first-out, except for that lag and for the tasks that a
 * CPU serves until its rotation comes round. With two shards only the lag remains. A CPU whose
 * own shard is empty takes from any shard. docs/simulation.md has figures.
 */
#ifndef __SFS_SHARD_BPF_H
#define __SFS_SHARD_BPF_H

/* The head of a CPU's own shard goes first even if it came later than another shard's head by up
 * to this much. This is a fraction of what most invocations need, and more than the difference
 * between two CPUs' clocks. */
#define SHARD_LAG_NS            (2 * NSEC_PER_MSEC)

#define DSQ_FILTER_SHARD(shard) (DSQ_FILTER | (shard))

/* The shard of each CPU; set by the loader before load. */
const volatile u8 cpu_shards[SFS_MAX_CPUS];

static u32 shard_of(s32 cpu)
{
	return nr_shards > 1 ? cpu_shards[cpu & (SFS_MAX_CPUS - 1)] : 0;
}

/* Return the next shard other than @own in @cctx's rotation. Two CPUs may count at the same time.
 * One shard is then looked at twice, which costs nothing. */
static u32 next_other_shard(struct cpu_ctx *cctx, u32 own)
{
	return (own + 1 + cctx->shards_seen++ % (nr_shards - 1)) % nr_shards;
}

/*
 * Return the queue of the shard in which @p is to wait: the shard of its CPU, where its data may
 * be, or another one if fewer tasks wait there (otherwise all children of one process would be in
 * one shard). A task that may not run everywhere stays close to the CPUs that it may use.
 */
static u64 shard_queue_for(const struct task_struct *p)
{
	u32 own = shard_of(scx_bpf_task_cpu(p)), other;
	struct cpu_ctx *cctx;

	if (nr_shards <= 1 || p->nr_cpus_allowed < (s32)nr_function_cpus)
		return DSQ_FILTER_SHARD(own);
	cctx = lookup_cpu_ctx(bpf_get_smp_processor_id());
	if (!cctx)
		return DSQ_FILTER_SHARD(own);
	other = next_other_shard(cctx, own);
	if (queue_length(DSQ_FILTER_SHARD(other)) < queue_length(DSQ_FILTER_SHARD(own)))
		own = other;
	return DSQ_FILTER_SHARD(own);
}

/* Return true if a task waits in any shard. */
static bool shards_waiting(s32 cpu)
{
	u32 i, own = shard_of(cpu);

	if (queue_length(DSQ_FILTER_SHARD(own)))
		return true;
	if (nr_shards <= 1)
		return false;
	bpf_for(i, 1, nr_shards) {
		if (queue_length(DSQ_FILTER_SHARD((own + i) % nr_shards)))
			return true;
	}
	return false;
}

/* Return the time at which the head of @dsq was queued, or the latest possible time if it is
 * empty. */
static u64 head_queued_at(u64 dsq)
{
	struct task_struct *p = first_of(dsq);
	struct task_ctx *tctx = p ? try_lookup_task_ctx(p) : NULL;

	return tctx ? tctx->queued_at : ~0ULL;
}

/* Return the queue of the shard that @cpu serves first. */
static u64 first_shard_queue(s32 cpu, struct cpu_ctx *cctx)
{
	u32 own = shard_of(cpu), other;
	u64 since;

	if (nr_shards <= 1)
		return DSQ_FILTER;
	other = next_other_shard(cctx, own);
	if (!queue_length(DSQ_FILTER_SHARD(other)))
		return DSQ_FILTER_SHARD(own);
	since = head_queued_at(DSQ_FILTER_SHARD(own));
	if (since != ~0ULL && head_queued_at(DSQ_FILTER_SHARD(other)) + SHARD_LAG_NS >= since)
		return DSQ_FILTER_SHARD(own);
	return DSQ_FILTER_SHARD(other);
}

/* Give @cpu the first task that it may run from any shard but @first. Return true if there is
 * one. */
static bool take_from_any_shard(s32 cpu, u64 first)
{
	u32 i, own = shard_of(cpu);

	bpf_for(i, 0, nr_shards) {
		u64 dsq = DSQ_FILTER_SHARD((own + i) % nr_shards);

		if (dsq == first || !queue_length(dsq) || !scx_bpf_dsq_move_to_local(dsq, 0))
			continue;
		if (i)
			count(SFS_SHARD_MOVES);
		return true;
	}
	return false;
}

/* The same for all shards, beginning with @first. */
static bool shards_dispatch(s32 cpu, u64 first)
{
	if (scx_bpf_dsq_move_to_local(first, 0)) {
		if (first != DSQ_FILTER_SHARD(shard_of(cpu)))
			count(SFS_SHARD_MOVES);
		return true;
	}
	return nr_shards > 1 && take_from_any_shard(cpu, first);
}

#endif /* __SFS_SHARD_BPF_H */
