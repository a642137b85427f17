/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FAIR: shares what FILTER leaves by virtual time, honouring weights, with a
 * bounded wait at its head.
 */
#ifndef __SFS_FAIR_BPF_H
#define __SFS_FAIR_BPF_H

/*
 * Virtual time of FAIR: that of the work started last. Two CPUs may write it
 * at the same time, and the smaller value may win; it is caught up with at the
 * next start, and only ever bounds the credit of sleepers.
 */
static volatile u64 fair_vtime_now;

/*
 * A task's virtual time is kept within this distance of fair_vtime_now when it
 * is queued, counted in FAIR turns. Behind: a sleeper has saved up one turn, no
 * more (see fair_saved_up()). Ahead: a task of the least weight waits a few rounds,
 * not for ever (the kernel ejects a scheduler under which a task waits for 30 s).
 */
#define FAIR_TURNS_AHEAD	16

/*
 * While FILTER keeps all CPUs busy, each of them gives FAIR one short turn in
 * each half of fair_max_wait_ns; the other half covers the wait for the tick
 * and for the turn of another FAIR task. A turn is a 25th of the bound, so
 * that FAIR takes 8 % of a saturated machine, close to the 5 % that the kernel
 * reserves for the fair class under real-time load.
 */
#define FAIR_DUE_TURN_FRACTION	25

/* dispatch() looks so often at most for what is due. */
#define FAIR_LOOK_INTERVAL_NS	NSEC_PER_MSEC

/* A turn in fair-only mode is this much shorter than in FILTER mode. */
#define FAIR_ONLY_TURN_FRACTION	5

/* Return how many tasks wait in FAIR, but for those that one CPU alone may run. */
static u32 fair_waiting(void)
{
	return queue_length(DSQ_FAIR) + queue_length(DSQ_OUTSIDE);
}

/* Return how many of those that one CPU alone may run wait for @cpu. */
static u32 fair_waiting_for(s32 cpu)
{
	return own_queue_length(cpu, DSQ_FAIR_CPU(cpu)) +
	       own_queue_length(cpu, DSQ_OUTSIDE_CPU(cpu));
}

/* Return the time that each waiting task may take for FAIR's round to end
 * within the guard, given @waiting tasks. */
static u64 fair_round_share(u32 waiting)
{
	return SFS_WATCHDOG_GUARD_NS * nr_function_cpus / (waiting + 1);
}

/*
 * Return the length of the next turn while @waiting tasks wait. In fair-only mode the
 * short functions run here as well: turns are then as short as the tick allows (4 ms at
 * HZ=250, for the default of 20 ms), like those of the kernel's fair class.
 */
static u64 fair_turn_ns(u32 waiting)
{
	u64 share = fair_round_share(waiting);
	u64 turn = fair_slice_ns;

	if (mode == SFS_MODE_FAIR_ONLY || policy == SFS_POLICY_FAIR)
		turn /= FAIR_ONLY_TURN_FRACTION;
	return share < turn ? share : turn;
}

/* Return the length of the task's next turn while @waiting tasks wait. */
__global_func u64 fair_turn_of(const struct task_ctx *tctx __arg_nonnull, u32 waiting)
{
	return within_quota(tctx, tenants_turn(tctx, fair_turn_ns(waiting)));
}

/* Return the time after which FAIR is due on a CPU that runs FILTER work. */
static u64 fair_due_interval(u32 waiting)
{
	u64 share = fair_round_share(waiting), half = fair_max_wait_ns / 2;

	return share < half ? share : half;
}

/* Return the length of a turn before which FILTER waits. */
static u64 due_turn_ns(const struct task_ctx *tctx)
{
	u64 turn = fair_max_wait_ns / FAIR_DUE_TURN_FRACTION;

	return tctx ? within_quota(tctx, turn) : turn;
}

/*
 * The kernel orders a queue by one word of the task. Work that waits by rank has its key there,
 * of another clock: its virtual time is kept aside until it runs, or is queued elsewhere.
 */
static void save_vtime(const struct task_struct *p, struct task_ctx *tctx)
{
	if (tctx->has_key)
		return;
	tctx->fair_vtime = p->scx.dsq_vtime;
	tctx->has_key = true;
}

/* Put @p's virtual time back into its place; @p waits in no queue. */
static void restore_vtime(struct task_struct *p, struct task_ctx *tctx)
{
	if (!tctx->has_key)
		return;
	tctx->has_key = false;
	scx_bpf_task_set_dsq_vtime(p, tctx->fair_vtime);
}

/* Return @p's virtual time, wherever it is. */
static u64 vtime_of(const struct task_struct *p, const struct task_ctx *tctx)
{
	u64 vtime = p->scx.dsq_vtime;

	return tctx && tctx->has_key ? tctx->fair_vtime : vtime;
}

/* @p is to run in FAIR: find out with which weight. */
static void fair_join(struct task_struct *p, struct task_ctx *tctx)
{
	join_group(p, tctx);
	tctx->fair_weight = group_weight(p, tctx);
}

/* Return the virtual time that @delta of CPU time comes to. */
static u64 weighted(const struct task_ctx *tctx, u64 delta)
{
	u64 weight = tctx->fair_weight ?: FAIR_WEIGHT;

	return delta * FAIR_WEIGHT / weight;
}

static void advance_vtime(struct task_struct *p, const struct task_ctx *tctx, u64 delta)
{
	scx_bpf_task_set_dsq_vtime(p, p->scx.dsq_vtime + weighted(tctx, delta));
}

/*
 * Charge @p for @delta of CPU time in FAIR, scaled by its weight. What it has
 * used in FILTER counts as well, since it has had that much more than those who
 * wait in FAIR; but only after a first turn, since many that overrun S do so by
 * little and end within it.
 */
static void fair_charge(struct task_struct *p, struct task_ctx *tctx, u64 delta)
{
	advance_vtime(p, tctx, delta);
	if (tctx->tenant)
		tctx->booked_ns -= delta;
	if (!tctx->filter_used_ns)
		return;
	tctx->fair_used_ns += delta;
	if (tctx->fair_used_ns < fair_slice_ns)
		return;
	advance_vtime(p, tctx, tctx->filter_used_ns);
	tctx->filter_used_ns = 0;
	tctx->fair_used_ns = 0;
}

/*
 * Return how far ahead of the present virtual time a task may be: so far that what
 * one turn of it comes to is not forgotten, however little its weight, but not
 * farther than FAIR's round may take.
 */
__global_func u64 fair_turns_ahead(const struct task_ctx *tctx, u32 waiting)
{
	u64 share = fair_round_share(waiting);
	u64 own = tctx ? weighted(tctx, 2 * fair_slice_ns) : 0;
	u64 usual = FAIR_TURNS_AHEAD * fair_slice_ns;
	u64 most = own > usual ? own : usual;

	return most < share ? most : share;
}

/*
 * Return how far behind the present virtual time a task may be: a turn, or what a turn
 * of its own comes to, if that is more. Virtual time moves on while a task runs; were
 * its turn cut down when it is queued again, groups of a few light tasks each would get
 * less than their weight.
 */
static u64 fair_saved_up(const struct task_ctx *tctx)
{
	u64 own = tctx ? weighted(tctx, fair_slice_ns) : 0;

	return own > fair_slice_ns ? own : fair_slice_ns;
}

/*
 * Return @p's virtual time, brought into the window around the present one; @waiting tasks
 * wait. What its tenant has had more than it was due comes first: a boundary, or a fork, makes
 * nobody forget that, and nor does the window (the guard is what keeps the kernel's watchdog
 * away from those in debt).
 */
static u64 fair_vtime_of(const struct task_struct *p, const struct task_ctx *tctx, u32 waiting)
{
	u64 now = fair_vtime_now, vtime = vtime_of(p, tctx), paid = now;
	u64 earliest = now - fair_saved_up(tctx);
	u64 latest = now + fair_turns_ahead(tctx, waiting);

	if (time_before(vtime, earliest))
		vtime = earliest;
	else if (time_after(vtime, latest))
		vtime = latest;
	if (tctx)
		paid += debt_in_vtime(tctx);
	return paid != now && time_before(vtime, paid) ? paid : vtime;
}

/* @p is about to have a turn of @turn in FAIR: update its weight and reserve the turn in its
 * tenant's line. Return its virtual time. */
__global_func u64 fair_assign_vtime(struct task_struct *p __arg_trusted,
			       struct task_ctx *tctx __arg_nonnull, u64 turn)
{
	u64 vtime, line;

	fair_join(p, tctx);
	vtime = fair_vtime_of(p, tctx, fair_waiting());
	line = book_turn(tctx, turn, fair_vtime_now);
	return line && time_before(vtime, line) ? line : vtime;
}

/* @p is to run in FAIR at once. Return how long its turn may be. */
static u64 fair_take_turn(struct task_struct *p, struct task_ctx *tctx)
{
	u64 turn = fair_turn_of(tctx, fair_waiting());

	scx_bpf_task_set_dsq_vtime(p, fair_assign_vtime(p, tctx, turn));
	return turn;
}

/* Return where @p, which runs and has used up its turn, would be placed. */
__global_func u64 fair_next_vtime(const struct task_struct *p __arg_trusted,
				    const struct task_ctx *tctx __arg_nonnull)
{
	u64 vtime = fair_vtime_of(p, tctx, fair_waiting()), line = line_of(tctx, fair_vtime_now);

	return line && time_before(vtime, line) ? line : vtime;
}

/* Return the queue of FAIR in which @p is to wait; @pinned is the one CPU that it may
 * use, or -1. What is no function has queues of its own (prompt.bpf.h). */
static u64 fair_queue_for(const struct task_struct *p, const struct task_ctx *tctx, s32 pinned)
{
	if (!tctx || is_function(p, tctx))
		return pinned < 0 ? DSQ_FAIR : DSQ_FAIR_CPU(pinned);
	return pinned < 0 ? DSQ_OUTSIDE : DSQ_OUTSIDE_CPU(pinned);
}

/* Queue @p in FAIR, and get an idle CPU to look. */
static void fair_enqueue(struct task_struct *p, struct task_ctx *tctx, u64 enq_flags, u64 now)
{
	s32 pinned = pinned_cpu(p);
	u32 waiting = fair_waiting();
	u64 turn = fair_turn_ns(waiting), dsq = fair_queue_for(p, tctx, pinned), vtime;

	if (tctx) {
		tctx->turn = TURN_FAIR;
		tctx->queued_at = now;
		turn = fair_turn_of(tctx, waiting);
		vtime = fair_assign_vtime(p, tctx, turn);
		note_waiting(tctx, dsq);
	} else {
		vtime = fair_vtime_of(p, NULL, waiting);
		note_unknown_waiting(dsq);
	}
	note_pinned(pinned);
	scx_bpf_dsq_insert_vtime(p, dsq, turn, vtime, enq_flags);
	if (!kick_idle_cpu(p, pinned) && tctx && (enq_flags & SCX_ENQ_WAKEUP))
		preempt_for_outside(p, tctx, now);
}

/* Return true if the head of @dsq is there to pay a debt. */
static bool head_is_in_debt(u64 dsq)
{
	struct task_struct *p = first_of(dsq);
	struct task_ctx *tctx = p ? try_lookup_task_ctx(p) : NULL;

	return tctx && is_in_debt(tctx);
}

/* Return @dsq if its head has waited for longer than @longest, which is then how long; else
 * @best. */
static u64 longer_of(u64 best, u64 dsq, u64 now, u64 *longest)
{
	u64 wait = head_wait(dsq, now);

	if (wait <= *longest)
		return best;
	if (wait < SHARE_PATIENCE_NS && debts_are_known(now) && head_is_in_debt(dsq))
		return best;
	*longest = wait;
	return dsq;
}

/*
 * Return the FAIR queue that must get @cpu now, though FILTER has work for it and it
 * has served FAIR at @fair_served_at: the one whose head has waited longest, if that is
 * long enough; else 0. Not virtual time decides here: a pinned head, which no other CPU
 * can serve, could come second to the shared queue for ever.
 */
__global_func u64 fair_due_queue(s32 cpu, u64 fair_served_at, u64 now)
{
	u32 waiting = fair_waiting() + fair_waiting_for(cpu);
	u64 interval, longest = 0, dsq;

	if (!waiting)
		return 0;
	interval = fair_due_interval(waiting);
	if (time_delta(now, fair_served_at) < interval)
		return 0;
	dsq = longer_of(0, DSQ_FAIR, now, &longest);
	dsq = longer_of(dsq, DSQ_FAIR_CPU(cpu), now, &longest);
	dsq = longer_of(dsq, DSQ_OUTSIDE, now, &longest);
	dsq = longer_of(dsq, DSQ_OUTSIDE_CPU(cpu), now, &longest);
	return longest < interval ? 0 : dsq;
}

/* Tasks looked at in one go when those of a tenant in debt are put back. */
#define PUT_BACK_BATCH	8

/*
 * What waits at the head of @dsq has its place there since before its tenant got into debt:
 * put it where it would be queued now. Otherwise a tenant with many tasks would have a turn
 * for each of them first. What has used up its credit keeps its place, which its weight has
 * given it. Should the move fail, another CPU has just taken the task.
 */
__global_func int put_debtors_back(u64 dsq, u64 now)
{
	struct task_struct *p;
	int looked_at = 0;

	bpf_for_each(scx_dsq, p, dsq, 0) {
		struct task_ctx *tctx = try_lookup_task_ctx(p);
		u64 vtime;

		if (++looked_at > PUT_BACK_BATCH || !tctx || !is_in_debt(tctx) ||
		    has_waited_long(tctx, now) || !has_credit(lookup_invocation(p, tctx)))
			break;
		vtime = fair_vtime_of(p, tctx, fair_waiting());
		if (!time_before(p->scx.dsq_vtime, vtime))
			break;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, vtime);
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dsq, 0);
	}
	return 0;
}

/* Return @dsq if its head, of @waiting, comes before @vtime, which is then its head's, or if
 * there is no @best; else @best. */
static u64 earlier_of(u64 best, u64 dsq, u32 waiting, u64 *vtime)
{
	struct task_struct *head;

	if (!waiting)
		return best;
	head = first_of(dsq);
	if (!head || (best && !time_before(head->scx.dsq_vtime, *vtime)))
		return best;
	*vtime = head->scx.dsq_vtime;
	return dsq;
}

/* The same as below among what is no function. */
static u64 outside_first_queue(s32 cpu, u64 *vtime)
{
	u64 own = DSQ_OUTSIDE_CPU(cpu);
	u64 dsq = earlier_of(0, DSQ_OUTSIDE, queue_length(DSQ_OUTSIDE), vtime);

	return earlier_of(dsq, own, own_queue_length(cpu, own), vtime);
}

/*
 * Return the queue whose head comes first in virtual time on @cpu, and that
 * head's virtual time in @vtime; 0 if there is none. The head of a shared
 * queue may be one that @cpu must not run; the choice is then off by the tasks
 * before the first that it may.
 */
static u64 fair_first_queue(s32 cpu, u64 *vtime)
{
	u64 own = DSQ_FAIR_CPU(cpu), dsq = outside_first_queue(cpu, vtime);

	dsq = earlier_of(dsq, DSQ_FAIR, queue_length(DSQ_FAIR), vtime);
	return earlier_of(dsq, own, own_queue_length(cpu, own), vtime);
}

/* Return @vtime, or that of the first who waits in FAIR for @cpu, if that is earlier. */
__global_func u64 before_all_waiting(u64 vtime, s32 cpu)
{
	u64 first = 0;

	return fair_first_queue(cpu, &first) && time_before(first, vtime) ? first : vtime;
}

/*
 * A FAIR task starts to run on @cpu: virtual time has come to where it was placed, but not
 * beyond who still waits. Not all that starts has come to the head of a queue: a change of its
 * nice value queues a task that runs at the end of its tenant's line, and lets it go on; a
 * real-time task gives it its CPU back in mid-turn. Did virtual time follow those, each would
 * take from the others what they have not had yet.
 */
static void fair_running(const struct task_struct *p, s32 cpu)
{
	u64 vtime = p->scx.dsq_vtime;

	if (!time_before(fair_vtime_now, vtime))
		return;
	vtime = before_all_waiting(vtime, cpu);
	if (time_before(fair_vtime_now, vtime))
		fair_vtime_now = vtime;
}

/* Give @cpu the first task of @dsq that it may run, if that is not @but. */
static bool move_from(u64 dsq, u64 but)
{
	return dsq != but && scx_bpf_dsq_move_to_local(dsq, 0);
}

/* The same for one of @cpu's own queues. */
static bool move_from_own(s32 cpu, u64 dsq, u64 but)
{
	return own_queue_length(cpu, dsq) && move_from(dsq, but);
}

/* Give @cpu the first task of @dsq, one of its FAIR queues, that it may run, or else of
 * another. Return true if there is one. */
__global_func bool fair_dispatch_from(s32 cpu, u64 dsq)
{
	return move_from(dsq, 0) || move_from_own(cpu, DSQ_OUTSIDE_CPU(cpu), dsq) ||
	       move_from_own(cpu, DSQ_FAIR_CPU(cpu), dsq) || move_from(DSQ_OUTSIDE, dsq) ||
	       move_from(DSQ_FAIR, dsq);
}

/* Give @cpu the first FAIR task that it may run. Return true if there is one. */
static bool fair_dispatch(s32 cpu)
{
	u64 vtime = 0, dsq;

	if (!may_have_own(cpu)) {
		if (!queue_length(DSQ_FAIR))
			return move_from(DSQ_OUTSIDE, 0);
		if (!queue_length(DSQ_OUTSIDE) && move_from(DSQ_FAIR, 0))
			return true;
	}
	dsq = fair_first_queue(cpu, &vtime);
	return dsq && fair_dispatch_from(cpu, dsq);
}

/* The same for what is no function. */
__global_func bool outside_dispatch(s32 cpu)
{
	u64 vtime = 0, dsq;

	if (!may_have_own(cpu))
		return move_from(DSQ_OUTSIDE, 0);
	dsq = outside_first_queue(cpu, &vtime);
	return dsq && (move_from(dsq, 0) || move_from_own(cpu, DSQ_OUTSIDE_CPU(cpu), dsq) ||
		       move_from(DSQ_OUTSIDE, dsq));
}

/* Return true if a task with virtual time @own comes before all that is no function and
 * waits for @cpu. */
__global_func bool comes_before_outside(u64 own, s32 cpu)
{
	u64 vtime = 0;

	return !outside_first_queue(cpu, &vtime) || time_before(own, vtime);
}

/* Return true if a task with virtual time @own, which has used up its turn, still comes
 * before all that waits in FAIR, so that switching away from it would only cost time. */
__global_func bool fair_keeps_cpu(u64 own, s32 cpu)
{
	u64 vtime = 0;

	return !fair_first_queue(cpu, &vtime) || time_before(own, vtime);
}

#endif /* __SFS_FAIR_BPF_H */
