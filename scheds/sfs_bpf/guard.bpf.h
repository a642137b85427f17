/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guard: no task waits in our queues for so long that it comes near the limit of the kernel's
 * watchdog. A queue ordered by key accounts for this when it assigns a key, with the load at that
 * time. Load changes, so once a second the guard moves tasks that have waited for half of the
 * guard time to the front. And no task waits forever beside an idle CPU: a CPU that went idle
 * between the search for one and the insertion into a queue is found here, if no CPU has a tick
 * that finds it earlier.
 */
#ifndef __SFS_GUARD_BPF_H
#define __SFS_GUARD_BPF_H

#define GUARD_INTERVAL_NS NSEC_PER_SEC

/* Time limit for looking at queues, enough for tens of thousands of tasks. */
#define GUARD_ROUND_NS (5 * NSEC_PER_MSEC)

/* A key this far back comes before any other key, on the clock of either order. */
#define FRONT (1ULL << 52)

struct guard_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct guard_timer);
} guard_timers SEC(".maps");

/* The wait of a task without a context is unknown and counts as too long. There are few such
 * tasks. */
static bool waits_too_long(struct task_struct *p, u64 now)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	return !tctx || has_waited_long(tctx, now);
}

/*
 * Move tasks that have waited too long in @dsq to its front, at key @front. A task that another
 * CPU takes at this moment is not moved, and need not be.
 */
__global_func int guard_queue(u64 dsq, u64 front, u64 now)
{
	struct task_struct *p;

	if (scx_bpf_dsq_nr_queued(dsq) <= 0)
		return 0;
	bpf_rcu_read_lock(); /* up to 6.16 a timer is as sleepable as the code that set it up */
	bpf_for_each(scx_dsq, p, dsq, 0) {
		if (time_delta(clock_now(), now) > GUARD_ROUND_NS)
			break;
		if (!waits_too_long(p, now))
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, front);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dsq, 0))
			count(SFS_GUARDED);
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Kick an idle CPU for the tasks in @dsq, if there is one that its head may use. */
__global_func int kick_for(u64 dsq)
{
	struct task_struct *head;

	if (scx_bpf_dsq_nr_queued(dsq) <= 0)
		return 0;
	bpf_rcu_read_lock();
	head = first_of(dsq);
	if (head)
		wake_idle_cpu(head);
	bpf_rcu_read_unlock();
	return 0;
}

/* The same for @cpu's own queues. */
static void kick_for_own(s32 cpu)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (!queue_length(DSQ_FILTER_CPU(cpu)) && !queue_length(DSQ_FAIR_CPU(cpu)) &&
	    !queue_length(DSQ_OUTSIDE_CPU(cpu)) && !queue_length(DSQ_RANKED_CPU(cpu)))
		return;
	if (cctx)
		cctx->may_have_own = true;
	if (scx_bpf_test_and_clear_cpu_idle(cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Return true if any CPU is idle. */
static bool some_cpu_idles(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool none = bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return !none;
}

/*
 * Kick idle CPUs for the queues shared by all CPUs, including FILTER's shards from @first up to
 * but not including @end. Each queue is checked by itself: the affinity of one head may allow
 * busy CPUs only. Whoever queues a task wakes an idle CPU for it; this is for tasks that races
 * leave over.
 */
__global_func int kick_idle_cpus(u32 first, u32 end)
{
	u32 shard;

	if (!some_cpu_idles())
		return 0;
	kick_for(DSQ_SYSTEM);
	kick_for(DSQ_PROMPT);
	kick_for(DSQ_OUTSIDE);
	kick_for(DSQ_FAIR);
	kick_for(DSQ_RANKED);
	bpf_for(shard, first, end)
		kick_for(DSQ_FILTER_SHARD(shard));
	return 0;
}

static int on_guard_timer(void *map, u32 *key, struct guard_timer *t)
{
	u64 fair = fair_vtime_now - FRONT, ranked = often.sharing_clock - FRONT, now = clock_now();
	u32 cpu;

	guard_queue(DSQ_FAIR, fair, now);
	guard_queue(DSQ_OUTSIDE, fair, now);
	guard_queue(DSQ_RANKED, ranked, now);
	bpf_for(cpu, 0, nr_cpu_ids) {
		guard_queue(DSQ_FAIR_CPU(cpu), fair, now);
		guard_queue(DSQ_OUTSIDE_CPU(cpu), fair, now);
		kick_for_own(cpu);
		guard_queue(DSQ_RANKED_CPU(cpu), ranked, now);
	}
	kick_idle_cpus(0, nr_shards);
	release_left_over();
	bpf_timer_start(&t->timer, GUARD_INTERVAL_NS, 0);
	return 0;
}

static s32 init_guard_timer(void)
{
	u32 zero = 0;
	struct guard_timer *t = bpf_map_lookup_elem(&guard_timers, &zero);

	if (!t)
		return -ENOENT;
	bpf_timer_init(&t->timer, &guard_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&t->timer, on_guard_timer);
	return bpf_timer_start(&t->timer, GUARD_INTERVAL_NS, 0);
}

#endif /* __SFS_GUARD_BPF_H */
