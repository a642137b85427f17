/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FAIR: shares the CPU time that FILTER leaves, by virtual time and weight. The wait of its head
 * is bounded.
 */
#ifndef __SFS_FAIR_BPF_H
#define __SFS_FAIR_BPF_H

/*
 * Virtual time of FAIR: the vtime of the task that started last. If two CPUs write it at the same
 * time, the smaller value may win. The next start corrects that, and the value only bounds the
 * credit of sleepers.
 */
static volatile u64 fair_vtime_now;

/*
 * When a task is queued, its vtime is kept within this distance of fair_vtime_now, counted in
 * FAIR turns. Behind: a sleeper saves up one turn at most (see fair_saved_up()). Ahead: a task of
 * the lowest weight waits a few rounds, not forever (the kernel ejects a scheduler under which a
 * task waits for 30 s).
 */
#define FAIR_TURNS_AHEAD 16

/*
 * While FILTER keeps all CPUs busy, each CPU gives FAIR one short turn in each half of
 * fair_max_wait_ns. The other half covers the wait for the tick and for the turn of another FAIR
 * task. A turn is 1/25 of the bound, so FAIR takes 8 % of a saturated machine, close to the 5 %
 * that the kernel reserves for the fair class under real-time load.
 */
#define FAIR_DUE_TURN_FRACTION 25

/* Minimum time between two looks of dispatch() for due FAIR work. */
#define FAIR_LOOK_INTERVAL_NS NSEC_PER_MSEC

/* Turns in fair-only mode are shorter than in FILTER mode by this factor. */
#define FAIR_ONLY_TURN_FRACTION 5

/* Return the number of tasks waiting in FAIR, without those pinned to one CPU. */
static u32 fair_waiting(void)
{
	return queue_length(DSQ_FAIR) + queue_length(DSQ_OUTSIDE);
}

/* Return the number of tasks waiting in FAIR that are pinned to @cpu. */
static u32 fair_waiting_for(s32 cpu)
{
	return own_queue_length(cpu, DSQ_FAIR_CPU(cpu)) +
	       own_queue_length(cpu, DSQ_OUTSIDE_CPU(cpu));
}

/* Return the CPU time that each of @waiting tasks may take so that FAIR's round ends within the
 * guard. */
static u64 fair_round_share(u32 waiting)
{
	return SFS_WATCHDOG_GUARD_NS * nr_function_cpus / (waiting + 1);
}

/*
 * Return the length of the next turn while @waiting tasks wait. In fair-only mode short functions
 * also run here. Turns are then as short as the tick allows (4 ms at HZ=250, for the default
 * of 20 ms), like those of the kernel's fair class.
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

/* Return the length of a due turn, for which FILTER waits. */
static u64 due_turn_ns(const struct task_ctx *tctx)
{
	u64 turn = fair_max_wait_ns / FAIR_DUE_TURN_FRACTION;

	return tctx ? within_quota(tctx, turn) : turn;
}

/*
 * The kernel orders a DSQ by one word of the task. While ranked work waits, that word holds its
 * key, which is on another clock. Its vtime is saved here until it runs or is queued elsewhere.
 */
static void save_vtime(const struct task_struct *p, struct task_ctx *tctx)
{
	if (tctx->has_key)
		return;
	tctx->fair_vtime = p->scx.dsq_vtime;
	tctx->has_key = true;
}

/* Restore @p's vtime; @p waits in no queue. */
static void restore_vtime(struct task_struct *p, struct task_ctx *tctx)
{
	if (!tctx->has_key)
		return;
	tctx->has_key = false;
	scx_bpf_task_set_dsq_vtime(p, tctx->fair_vtime);
}

/* Return @p's vtime, saved or not. */
static u64 vtime_of(const struct task_struct *p, const struct task_ctx *tctx)
{
	u64 vtime = p->scx.dsq_vtime;

	return tctx && tctx->has_key ? tctx->fair_vtime : vtime;
}

/* Return the virtual time for @delta of CPU time, by the task's weight. */
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
 * Charge @p for @delta of CPU time in FAIR, scaled by its weight. The CPU time that it used in
 * FILTER also counts, because it has had that much more than the tasks waiting in FAIR. It is
 * charged only after a first turn: many tasks that overrun S do so by little and end within that
 * turn.
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
 * Return how far ahead of the present virtual time a task may be. One turn of the task must not
 * be forgotten, however low its weight. But the distance is at most the time that FAIR's round
 * may take.
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
 * Return how far behind the present virtual time a task may be: one turn, or the weighted length
 * of its own turn if that is more. Virtual time moves on while a task runs. If requeueing cut
 * down its turn, groups of a few light tasks each would get less than their weight.
 */
static u64 fair_saved_up(const struct task_ctx *tctx)
{
	u64 own = tctx ? weighted(tctx, fair_slice_ns) : 0;

	return own > fair_slice_ns ? own : fair_slice_ns;
}

/*
 * Return @p's vtime, clamped to the window around the present one; @waiting tasks wait. A debt of
 * its tenant takes precedence: no boundary, fork or window removes it (the guard keeps tasks in
 * debt away from the kernel's watchdog).
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

/* @p, which its group counts, is about to get a turn of @turn in FAIR: update its weight and
 * reserve the turn in its tenant's line. Return its vtime. */
__global_func u64 fair_assign_vtime(struct task_struct *p __arg_trusted,
				    struct task_ctx *tctx __arg_nonnull, u64 turn)
{
	u64 vtime, line;

	tctx->fair_weight = group_weight(p, tctx);
	vtime = fair_vtime_of(p, tctx, fair_waiting());
	line = book_turn(tctx, turn, fair_vtime_now);
	return line && time_before(vtime, line) ? line : vtime;
}

/* @p will run in FAIR at once. Return the length of its turn. */
static u64 fair_take_turn(struct task_struct *p, struct task_ctx *tctx)
{
	u64 turn = fair_turn_of(tctx, fair_waiting());

	join_group(p, tctx);
	scx_bpf_task_set_dsq_vtime(p, fair_assign_vtime(p, tctx, turn));
	return turn;
}

/* Return the vtime at which @p, which runs and has used up its turn, would be queued. */
__global_func u64 fair_next_vtime(const struct task_struct *p __arg_trusted,
				  const struct task_ctx *tctx __arg_nonnull)
{
	u64 vtime = fair_vtime_of(p, tctx, fair_waiting()), line = line_of(tctx, fair_vtime_now);

	return line && time_before(vtime, line) ? line : vtime;
}

/* Return the FAIR queue for @p; @pinned is the only CPU that it may use, or -1. Tasks that are
 * not functions have queues of their own (prompt.bpf.h). */
static u64 fair_queue_for(const struct task_struct *p, const struct task_ctx *tctx, s32 pinned)
{
	if (!tctx || is_function(p, tctx))
		return pinned < 0 ? DSQ_FAIR : DSQ_FAIR_CPU(pinned);
	return pinned < 0 ? DSQ_OUTSIDE : DSQ_OUTSIDE_CPU(pinned);
}

/* Queue @p in FAIR and kick an idle CPU. */
static void fair_enqueue(struct task_struct *p, struct task_ctx *tctx, u64 enq_flags, u64 now)
{
	s32 pinned = pinned_cpu(p);
	u32 waiting = fair_waiting();
	u64 turn = fair_turn_ns(waiting), dsq = fair_queue_for(p, tctx, pinned), vtime;

	if (tctx) {
		tctx->turn = TURN_FAIR;
		tctx->queued_at = now;
		turn = fair_turn_of(tctx, waiting);
		join_group(p, tctx);
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

/* Return true if the tenant of @dsq's head is in debt. */
static bool head_is_in_debt(u64 dsq)
{
	struct task_struct *p = first_of(dsq);
	struct task_ctx *tctx = p ? try_lookup_task_ctx(p) : NULL;

	return tctx && is_in_debt(tctx);
}

/* Return @dsq, and the wait of its head in @longest, if that wait exceeds @longest; else @best. */
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
 * Return the FAIR queue that must get @cpu now, although FILTER has work for it: the queue whose
 * head has waited longest, if that is long enough; else 0. @cpu last served FAIR at
 * @fair_served_at. The choice is not by virtual time: a pinned head, which no other CPU can
 * serve, could come second to the shared queue forever.
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

/* Maximum number of tasks checked in one go when tasks of a tenant in debt are put back. */
#define PUT_BACK_BATCH 8

/*
 * Move tasks at the head of @dsq that were queued before their tenant got into debt to where they
 * would be queued now. Otherwise a tenant with many tasks would first have a turn for each of
 * them. A task that has used up its credit keeps its place, which follows from its weight. If the
 * move fails, another CPU has just taken the task.
 */
__global_func int put_debtors_back(u64 dsq, u64 now)
{
	struct task_struct *p;
	int looked_at = 0;

	bpf_for_each(scx_dsq, p, dsq, 0) {
		struct task_ctx *tctx = try_lookup_task_ctx(p);
		u64 vtime;

		if (++looked_at > PUT_BACK_BATCH || !tctx || !is_still_in_debt(tctx, now) ||
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

/* @waiting tasks wait in @dsq. Return @dsq, and its head's vtime in @vtime, if that is earlier
 * than @vtime or there is no @best; else @best. */
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

/* Like fair_first_queue(), but only for tasks that are not functions. */
static u64 outside_first_queue(s32 cpu, u64 *vtime)
{
	u64 own = DSQ_OUTSIDE_CPU(cpu);
	u64 dsq = earlier_of(0, DSQ_OUTSIDE, queue_length(DSQ_OUTSIDE), vtime);

	return earlier_of(dsq, own, own_queue_length(cpu, own), vtime);
}

/*
 * Return the queue whose head comes first in virtual time on @cpu, and that head's vtime in
 * @vtime; 0 if there is none. @cpu may not be allowed to run the head of a shared queue. The
 * choice is then off by the tasks before the first one that it may run.
 */
static u64 fair_first_queue(s32 cpu, u64 *vtime)
{
	u64 own = DSQ_FAIR_CPU(cpu), dsq = outside_first_queue(cpu, vtime);

	dsq = earlier_of(dsq, DSQ_FAIR, queue_length(DSQ_FAIR), vtime);
	return earlier_of(dsq, own, own_queue_length(cpu, own), vtime);
}

/* Return @vtime, or the vtime of the first task waiting in FAIR for @cpu if that is earlier. */
__global_func u64 before_all_waiting(u64 vtime, s32 cpu)
{
	u64 first = 0;

	return fair_first_queue(cpu, &first) && time_before(first, vtime) ? first : vtime;
}

/*
 * A FAIR task starts to run on @cpu. Virtual time advances to the task's vtime, but not beyond
 * that of a waiting task. Not every task that starts was the head of a queue: a change of its
 * nice value queues a running task at the end of its tenant's line and lets it continue, and a task
 * gets its CPU back from a real-time task in mid-turn. If virtual time followed such tasks, each
 * would take from the others CPU time that they have not had yet.
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

/* Give this CPU the first task of @dsq that it may run, unless @dsq is @but. */
static bool move_from(u64 dsq, u64 but)
{
	return dsq != but && scx_bpf_dsq_move_to_local(dsq, 0);
}

/* The same for one of @cpu's own queues. */
static bool move_from_own(s32 cpu, u64 dsq, u64 but)
{
	return own_queue_length(cpu, dsq) && move_from(dsq, but);
}

/* Give @cpu the first task that it may run from @dsq, one of its FAIR queues, or else from
 * another one. Return true if there is one. */
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

/* The same for tasks that are not functions. */
__global_func bool outside_dispatch(s32 cpu)
{
	u64 vtime = 0, dsq;

	if (!may_have_own(cpu))
		return move_from(DSQ_OUTSIDE, 0);
	dsq = outside_first_queue(cpu, &vtime);
	return dsq && (move_from(dsq, 0) || move_from_own(cpu, DSQ_OUTSIDE_CPU(cpu), dsq) ||
		       move_from(DSQ_OUTSIDE, dsq));
}

/* Return true if a task with vtime @own comes before all tasks that are not functions and wait
 * for @cpu. */
__global_func bool comes_before_outside(u64 own, s32 cpu)
{
	u64 vtime = 0;

	return !outside_first_queue(cpu, &vtime) || time_before(own, vtime);
}

/* Return true if a task with vtime @own, which has used up its turn, still comes before all tasks
 * waiting in FAIR. A switch away from it would then only cost time. */
__global_func bool fair_keeps_cpu(u64 own, s32 cpu)
{
	u64 vtime = 0;

	return !fair_first_queue(cpu, &vtime) || time_before(own, vtime);
}

#endif /* __SFS_FAIR_BPF_H */
