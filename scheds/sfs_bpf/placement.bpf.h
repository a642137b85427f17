/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Placement: which CPU looks at the queues next, and which tasks are tied to one CPU.
 */
#ifndef __SFS_PLACEMENT_BPF_H
#define __SFS_PLACEMENT_BPF_H

/*
 * Return true if @p is in a migration-disabled section. A BPF program is such a section itself,
 * for the task that it interrupts, and cpu_release() calls enqueue() within another one.
 */
static bool must_stay(const struct task_struct *p)
{
	struct cpu_ctx *cctx;

	if (p->migration_disabled != 2 || bpf_get_current_task_btf() != p)
		return is_migration_disabled(p);
	cctx = lookup_cpu_ctx(bpf_get_smp_processor_id());
	return !cctx || !cctx->in_release;
}

/*
 * Return the only CPU that may run @p, or -1 if there are several. For a task in a
 * migration-disabled section this is its current CPU; cpus_ptr and nr_cpus_allowed may disagree
 * there.
 */
__global_func s32 pinned_cpu(const struct task_struct *p __arg_trusted)
{
	s32 cpu;

	if (must_stay(p))
		return scx_bpf_task_cpu(p);
	if (p->nr_cpus_allowed != 1)
		return -1;
	bpf_rcu_read_lock();
	cpu = bpf_cpumask_first(p->cpus_ptr);
	bpf_rcu_read_unlock();
	return cpu;
}

/*
 * A task is about to wait in one of @cpu's own queues, if @cpu is not negative. A CPU finds these
 * queues empty with its run queue locked, and whoever queues a task there holds that lock. A task
 * queued from elsewhere (on its way to another CPU after a change of its affinity) is queued
 * again at its destination.
 */
static void note_pinned(s32 cpu)
{
	struct cpu_ctx *cctx = cpu < 0 ? NULL : lookup_cpu_ctx(cpu);

	if (!cctx)
		return;
	count(SFS_PINNED);
	cctx->may_have_own = true;
}

/* Return true if the machine or this scheduler depends on @p. */
static bool is_system(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) || p->tgid == loader_tgid;
}

/* Return true if a real-time task has taken the CPU from the task in mid-turn. */
static bool is_displaced(const struct task_ctx *tctx, u64 enq_flags)
{
	return (enq_flags & SCX_ENQ_REENQ) && tctx->stopped_on >= 0;
}

/* Claim @cpu for FILTER. Return true if it runs FAIR work and nobody else has
 * claimed it. */
static bool claim_fair_cpu(s32 cpu)
{
	struct bpf_cpumask *mask = fair_cpus;

	return mask && bpf_cpumask_test_cpu(cpu, cast_mask(mask)) &&
	       bpf_cpumask_test_and_clear_cpu(cpu, mask);
}

/* Prompt turns of daemons preempt the tasks of one CPU once in this time on average. */
#define PREEMPT_INTERVAL_NS (NSEC_PER_MSEC / 2)

/* The same for prompt turns of tasks that may be functions: these are many at once. */
#define PREEMPT_FUNCTION_INTERVAL_NS (2 * NSEC_PER_MSEC)

/* So many preemptions may follow one another at once. */
#define PREEMPT_BURST 8

/*
 * Return true if prompt turns have preempted tasks of @cpu so often that the next one waits for the
 * end of a turn, or for a tick. Otherwise each message to a daemon would preempt its sender, and
 * the two would switch for each message, not for each batch (hackbench took three times as long).
 */
static bool is_preempted_often(s32 cpu, u64 now)
{
	return time_after(lookup_cpu_ctx(cpu)->preempted_until, now);
}

/* A prompt turn preempts @cpu's task; @interval is the least time between two of its kind. Two CPUs
 * that count at the same time preempt once more than allowed. */
static void count_preemption(s32 cpu, u64 interval, u64 now)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);
	u64 earliest = now - PREEMPT_BURST * interval, until = cctx->preempted_until;

	cctx->preempted_until = (time_before(until, earliest) ? earliest : until) + interval;
}

/* Claim any CPU that runs FAIR work and may run @p; if @spare, not one that is preempted often.
 * Return it, or -1. */
__global_func s32 claim_any_fair_cpu(const struct task_struct *p __arg_trusted, bool spare, u64 now)
{
	struct bpf_cpumask *mask = fair_cpus;
	u32 cpu;
	int i;

	if (!mask)
		return -1;
	/* Another CPU may claim the found one first, so try again, but not forever. */
	bpf_for(i, 0, 4) {
		cpu = bpf_cpumask_any_and_distribute(cast_mask(mask), p->cpus_ptr);
		if (cpu >= nr_cpu_ids)
			return -1;
		if (spare && is_preempted_often(cpu, now))
			continue;
		if (bpf_cpumask_test_and_clear_cpu(cpu, mask))
			return cpu;
	}
	return -1;
}

/* Mark whether this CPU, @cpu, runs FAIR work that FILTER may preempt. */
static void mark_fair_cpu(s32 cpu, bool preemptible)
{
	struct bpf_cpumask *mask = fair_cpus;

	/* Testing first keeps the shared cache line clean in the usual case. */
	if (!mask || bpf_cpumask_test_cpu(cpu, cast_mask(mask)) == preemptible)
		return;
	if (preemptible)
		bpf_cpumask_set_cpu(cpu, mask);
	else
		bpf_cpumask_clear_cpu(cpu, mask);
}

/* Kick an idle CPU that @p may use: it looks at the queues. Return true if there is one. */
static bool wake_idle_cpu(const struct task_struct *p)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

/*
 * Wake an idle CPU for @p, which is being queued. When called from enqueue(), @p is in the queue
 * only after the program has returned. A CPU that goes idle in between misses it: it is past
 * dispatch() and not marked idle yet, or is woken too early. The tick of any busy CPU then wakes
 * an idle one for waiting tasks. If no CPU has a tick, the guard does so within a second
 * (kick_idle_cpus()).
 */
__global_func bool kick_idle_cpu(const struct task_struct *p __arg_trusted, s32 pinned)
{
	bool found;

	if (pinned >= 0) {
		found = scx_bpf_test_and_clear_cpu_idle(pinned);
		if (found)
			scx_bpf_kick_cpu(pinned, SCX_KICK_IDLE);
		return found;
	}
	bpf_rcu_read_lock();
	found = wake_idle_cpu(p);
	bpf_rcu_read_unlock();
	return found;
}

/* Return true if another CPU that may run @p is idle. */
__global_func bool may_run_elsewhere(const struct task_struct *p __arg_trusted)
{
	const struct cpumask *idle;
	bool may;

	if (pinned_cpu(p) >= 0)
		return false;
	idle = scx_bpf_get_idle_cpumask();
	may = bpf_cpumask_intersects(idle, p->cpus_ptr);
	scx_bpf_put_idle_cpumask(idle);
	return may;
}

/* Preempt FAIR work for @p, which has just been queued in FILTER. */
static void preempt_fair_cpu(const struct task_struct *p, s32 pinned)
{
	s32 cpu = pinned;

	if (pinned < 0)
		cpu = claim_any_fair_cpu(p, false, 0);
	else if (!claim_fair_cpu(pinned))
		return;
	if (cpu < 0)
		return;
	count(SFS_PREEMPTIONS);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Return the first task of a queue, or NULL. */
static struct task_struct *first_of(u64 dsq)
{
	return __COMPAT_scx_bpf_dsq_peek(dsq);
}

/* Return true if the head of @dsq may run on @cpu. */
__global_func bool head_waits_for(u64 dsq, s32 cpu)
{
	struct task_struct *head;
	bool may;

	if (!queue_length(dsq))
		return false;
	bpf_rcu_read_lock();
	head = first_of(dsq);
	may = head && bpf_cpumask_test_cpu(cpu, head->cpus_ptr);
	bpf_rcu_read_unlock();
	return may;
}

/* Return false if no task waits in @cpu's own queues, the usual case. The CPU's note of that
 * costs less than a look at the queues. */
static bool may_have_own(s32 cpu)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	return cctx && cctx->may_have_own;
}

/* Return the number of tasks waiting in @dsq, one of @cpu's own queues. */
static u32 own_queue_length(s32 cpu, u64 dsq)
{
	return may_have_own(cpu) ? queue_length(dsq) : 0;
}

/* Return how long the first task of @dsq has waited; 0 if there is none. */
static u64 head_wait(u64 dsq, u64 now)
{
	struct task_struct *p;
	struct task_ctx *tctx;

	if (!queue_length(dsq))
		return 0;
	p = first_of(dsq);
	if (!p)
		return 0;
	tctx = try_lookup_task_ctx(p);
	/* Without a context the wait is unknown: assume enough to be served. */
	return tctx && tctx->queued_at ? time_delta(now, tctx->queued_at) : fair_max_wait_ns;
}

#endif /* __SFS_PLACEMENT_BPF_H */
