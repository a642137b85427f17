/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FILTER: the global first-in-first-out queue in which invocations spend their credit, and its
 * overload handling.
 */
#ifndef __SFS_FILTER_BPF_H
#define __SFS_FILTER_BPF_H

/* Maximum number of tasks checked in one go when a backlog is moved. */
#define RELIEVE_BATCH 8
#define SWITCH_BATCH  1024

/* Return the FILTER queue for @p; @pinned is the only CPU that it may use, or -1. */
static u64 filter_queue_for(const struct task_struct *p, s32 pinned)
{
	return pinned < 0 ? shard_queue_for(p) : DSQ_FILTER_CPU(pinned);
}

/* Queue @p at the end of FILTER and kick a CPU for it: an idle one, or one that runs FAIR work.
 * Two kinds of tasks go to the front: a task displaced by a real-time task was there already, and
 * a task requeued after a long wait would be there by now. */
static void filter_enqueue(struct task_struct *p, struct task_ctx *tctx,
			   const struct invocation *inv, u64 enq_flags, u64 now)
{
	s32 pinned = pinned_cpu(p);
	u64 dsq = filter_queue_for(p, pinned);

	tctx->turn = TURN_FILTER;
	tctx->queued_at = now;
	note_pinned(pinned);
	if (is_displaced(tctx, enq_flags) || has_waited_long(tctx, now))
		enq_flags |= SCX_ENQ_HEAD;
	note_waiting(tctx, dsq);
	scx_bpf_dsq_insert(p, dsq, within_quota(tctx, credit_left(inv)), enq_flags);
	if (!kick_idle_cpu(p, pinned))
		preempt_fair_cpu(p, pinned);
}

/* ---------------------------------------------------------------- overload */

/* Count the task in the demand on FILTER, or stop counting it. There is no demand with
 * SFS_POLICY_FAIR. */
static void join_demand(struct task_ctx *tctx, u64 provisional)
{
	if (policy != SFS_POLICY_FAIR && begin_count(&tctx->in_demand, 1 | provisional))
		__sync_fetch_and_add(&often.demand, 1);
}

static void leave_demand(struct task_ctx *tctx)
{
	if (end_count(&tctx->in_demand))
		__sync_fetch_and_sub(&often.demand, 1);
}

/* Return the wait in FILTER at which overload begins. */
static u64 overload_wait(void)
{
	u64 wait = overload_enabled ? overload_wait_ns : SFS_WATCHDOG_GUARD_NS;

	return wait < SFS_WATCHDOG_GUARD_NS ? wait : SFS_WATCHDOG_GUARD_NS;
}

/*
 * An invocation has waited for @wait in FILTER, or still waits. If that is too long, record
 * overload and tell the loader; tell it again if it does not answer. Only the loader clears the
 * record, by switching the mode or by finding that S has grown.
 */
static void check_overload(u64 wait, u64 now)
{
	u64 told = overload_told_at;

	if (mode != SFS_MODE_FILTER || wait < overload_wait())
		return;
	if (overload_since && time_delta(now, told) < NSEC_PER_SEC)
		return;
	if (__sync_val_compare_and_swap(&overload_told_at, told, now) != told)
		return;
	if (!overload_since)
		overload_since = now;
	if (overload_enabled)
		send_event(SFS_EVENT_OVERLOAD_BEGUN, wait, now);
}

/* The same for the head of @dsq, which has no CPU yet. */
static void check_head(u64 dsq, u64 now)
{
	struct task_struct *p;
	struct task_ctx *tctx;

	if (!queue_length(dsq))
		return;
	p = first_of(dsq);
	tctx = p ? try_lookup_task_ctx(p) : NULL;
	if (tctx && tctx->queued_at)
		check_overload(time_delta(now, tctx->queued_at), now);
}

/*
 * Return the delay that a new invocation would see in FILTER: the work of the tasks before it, at
 * the average CPU time of FILTER work, spread over the CPUs. In fair-only mode no task waits in
 * FILTER, so the delay cannot be measured there.
 */
static u64 expected_delay(void)
{
	s64 before = often.demand - (s64)nr_function_cpus;
	u64 work = often.credit_used_avg_ns ?: slice_ns;

	if (before <= 0)
		return 0;
	return before * work / (nr_function_cpus ?: 1);
}

/* In fair-only mode: tell the loader when the expected delay is back to normal, and again until
 * it answers. */
static void check_recovery(u64 now)
{
	u64 delay, told = recovery_told_at;

	if (mode != SFS_MODE_FAIR_ONLY || time_delta(now, told) < loader_grace_ns)
		return;
	delay = expected_delay();
	if (delay > recover_wait_ns)
		return;
	if (__sync_val_compare_and_swap(&recovery_told_at, told, now) == told)
		send_event(SFS_EVENT_OVERLOAD_OVER, delay, now);
}

/* Return true if the task at the head of FILTER should be in FAIR: its wait means overload
 * (checked if @late), or its tenant has got into debt since the task was queued. */
static bool must_go_to_fair(const struct task_ctx *tctx, bool late, u64 now)
{
	return is_still_in_debt(tctx, now) ||
	       (late && time_delta(now, tctx->queued_at) >= overload_wait());
}

/*
 * Move tasks that must go to FAIR from the head of @filter to @fair. @late: the loader has not
 * answered "overload begun" in time, so the rule is applied without it.
 *
 * tctx is written without the task's run-queue lock. If the move fails, another CPU has just
 * taken the task. The task then runs for a FILTER slice but in a FAIR turn, once.
 * has_key is cleared after the move. If a CPU has begun to run the task before that, it has
 * restored the earlier vtime: the task's new place is lost, but not the tenant's line.
 */
__global_func int relieve_filter(u64 filter, u64 fair, bool late, u64 now)
{
	struct task_struct *p;
	int looked_at = 0;

	bpf_for_each(scx_dsq, p, filter, 0) {
		struct task_ctx *tctx = try_lookup_task_ctx(p);
		u64 turn, change;

		if (++looked_at > RELIEVE_BATCH || !tctx)
			break;
		if (!must_go_to_fair(tctx, late, now))
			break;
		tctx->turn = TURN_FAIR;
		turn = fair_turn_of(tctx, fair_waiting());
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, turn);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, fair_assign_vtime(p, tctx, turn));
		change = note_waiting(tctx, fair);
		if (!scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, fair, 0)) {
			undo_waiting(tctx, change);
			continue;
		}
		tctx->has_key = false;
		if (is_in_debt(tctx))
			note_denied(tctx);
		else
			count(SFS_RELIEVED);
	}
	return 0;
}

static bool loader_is_late(u64 now)
{
	u64 since = overload_since;

	return since && mode == SFS_MODE_FILTER && time_delta(now, since) > loader_grace_ns;
}

/* ---------------------------------------------------------------- dispatch */

/* Return true if FILTER has waiting work that @cpu might run. */
__global_func bool filter_waiting(s32 cpu)
{
	return own_queue_length(cpu, DSQ_FILTER_CPU(cpu)) || shards_waiting(cpu);
}

/* Return true if @cpu can certainly run the next FILTER task. (Of the shards, only its own is
 * checked. tick() finds work in the others.) */
static bool filter_head_waiting(s32 cpu)
{
	return own_queue_length(cpu, DSQ_FILTER_CPU(cpu)) ||
	       head_waits_for(DSQ_FILTER_SHARD(shard_of(cpu)), cpu);
}

/*
 * Give @cpu the FILTER task that it may run and that has waited longest. Return true if there is
 * one. (If @cpu must not run the shared head, a pinned task may wait for one more task than it
 * should.)
 */
__global_func bool filter_dispatch(s32 cpu)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);
	bool pinned;
	u64 first;

	if (!cctx)
		return false;
	first = first_shard_queue(cpu, cctx);
	pinned = own_queue_length(cpu, DSQ_FILTER_CPU(cpu));
	if (pinned && head_queued_at(DSQ_FILTER_CPU(cpu)) <= head_queued_at(first) &&
	    scx_bpf_dsq_move_to_local(DSQ_FILTER_CPU(cpu), 0))
		return true;
	return shards_dispatch(cpu, first) ||
	       (pinned && scx_bpf_dsq_move_to_local(DSQ_FILTER_CPU(cpu), 0));
}

#endif /* __SFS_FILTER_BPF_H */
