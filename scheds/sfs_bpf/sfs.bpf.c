/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sfs: a sched_ext scheduler for machines that run serverless functions: the
 * kernel half. Based on SFS, "Smart OS Scheduling for Serverless Functions"
 * (Fu, Liu, Wang, Cheng, Chen; SC'22).
 *
 * This file has the callbacks in the order in which they see an invocation:
 *
 *   fork -> init_task, enable
 *   wake -> select_cpu (an idle CPU takes it at once), runnable (the boundary),
 *           enqueue (FILTER with credit, FAIR without)
 *   run  -> dispatch (kernel threads and daemons that have just woken up, then FILTER
 *           before FAIR, unless FAIR is due), running,
 *           tick (credit used up? FAIR due? FILTER waiting?), stopping (charge),
 *           cpu_release (a real-time task takes the CPU: tasks go elsewhere)
 *   end  -> stopping (of the last thread)
 *
 * Each idea has its own file:
 *
 *   boundary    events that begin an invocation: fork, exec, accept, ...
 *   invocation  credit and demotion
 *   sandbox     which tasks are functions
 *   function    the identity of a function, and its published statistics
 *   filter, shard, fair, rank, prompt
 *               the queues: FILTER, its split on large machines, FAIR, the learned
 *               policy, daemons
 *   group, quota, hierarchy
 *               cpu.weight, cpu.max, and the cgroups that set them
 *   share, evidence
 *               the share due to each tenant, and the invocations to learn from
 *   guard       keeps waits clear of the kernel's watchdog
 *   queue, placement, telemetry, state
 *               lengths of queues, choice of CPUs, counters, shared state
 *
 * The loader tunes S and switches the mode (userspace/scx_sfs).
 */
#include <scx/common.bpf.h>
#include <scx/compat.bpf.h>
#include "intf.h"
#include "buckets.h"

char _license[] SEC("license") = "GPL";

#include "state.bpf.h"
#include "telemetry.bpf.h"
#include "sandbox.bpf.h"
#include "function.bpf.h"
#include "invocation.bpf.h"
#include "queue.bpf.h"
#include "placement.bpf.h"
#include "group.bpf.h"
#include "quota.bpf.h"
#include "hierarchy.bpf.h"
#include "share.bpf.h"
#include "evidence.bpf.h"
#include "boundary.bpf.h"
#include "prompt.bpf.h"
#include "leave.bpf.h"
#include "fair.bpf.h"
#include "shard.bpf.h"
#include "filter.bpf.h"
#include "claim.bpf.h"
#include "rank.bpf.h"
#include "guard.bpf.h"

/* ------------------------------------------------------------------- turns */

/* @p works for another invocation than at its last charge. Its CPU time for the last
 * one, in FILTER or in FAIR, does not count against this one. */
static void forget_last_invocation(struct task_struct *p, struct task_ctx *tctx,
				   const struct invocation *inv)
{
	if (tctx->seq)
		scx_bpf_task_set_dsq_vtime(p, fair_vtime_now);
	tctx->seq = inv->seq;
	tctx->filter_used_ns = 0;
	tctx->fair_used_ns = 0;
	tctx->ranked_used_ns = 0;
}

static void charge_fair_turn(struct task_struct *p, struct task_ctx *tctx, u64 delta)
{
	fair_charge(p, tctx, delta);
	if (!is_function(p, tctx))
		charge_outside(p, delta);
}

static void charge_ranked(struct task_ctx *tctx, u64 delta)
{
	tctx->ranked_used_ns += delta;
	tctx->taken_ns = time_delta(tctx->taken_ns, delta);
}

/* Charge @p for its CPU time from the last charge until @now. */
static void charge(struct task_struct *p, struct task_ctx *tctx, struct invocation *inv, u64 now)
{
	u64 total = p->se.sum_exec_runtime;
	u64 delta = time_delta(total, tctx->charged_ns);
	u32 turn = charged_turn(tctx);

	tctx->charged_ns = total;
	if (inv && tctx->seq != inv->seq)
		forget_last_invocation(p, tctx, inv);
	tctx->turn_used_ns += delta;
	if (turn == TURN_FAIR)
		charge_fair_turn(p, tctx, delta);
	else if (turn == TURN_FILTER)
		tctx->filter_used_ns += delta;
	else if (turn == TURN_RANKED)
		charge_ranked(tctx, delta);
	else if (turn == TURN_PROMPT)
		charge_prompt(p, tctx, delta);
	advance_sharing_clock(tctx, delta);
	if (tctx->tenant && delta)
		charge_tenant(tenant(tctx), delta, now, turn == TURN_FILTER || turn == TURN_RANKED);
	if (inv && inv->state != INV_NONE)
		charge_invocation(inv, delta);
	if (tctx->limit && !is_system(p))
		charge_groups(tctx->limit, delta, now);
	if (!has_credit(inv))
		leave_demand(tctx);
}

/* Return the turn (enum turn) that @p gets if it is queued now. */
static u32 next_turn(const struct task_struct *p, const struct task_ctx *tctx,
		     const struct invocation *inv)
{
	if (is_system(p))
		return tctx->turn_used_ns < SYSTEM_SLICE_NS ? TURN_SYSTEM : TURN_FAIR;
	if (is_in_debt(tctx))
		return TURN_FAIR;
	if (is_prompt(tctx))
		return TURN_PROMPT;
	if (has_rank(p, tctx, inv))
		return TURN_RANKED;
	if (policy == SFS_POLICY_FAIR)
		return TURN_FAIR;
	return has_credit(inv) && mode == SFS_MODE_FILTER ? TURN_FILTER : TURN_FAIR;
}

/* Return the length of such a turn. @waiting tasks wait in FAIR, which matters only to a FAIR
 * turn. */
static u64 turn_ns(u32 turn, const struct task_ctx *tctx, const struct invocation *inv, u32 waiting)
{
	if (turn == TURN_SYSTEM)
		return SYSTEM_SLICE_NS;
	if (turn == TURN_PROMPT)
		return prompt_turn_ns(tctx);
	if (turn == TURN_RANKED)
		return within_quota(tctx, tctx->slice);
	if (turn == TURN_FILTER && inv)
		return within_quota(tctx, credit_left(inv));
	return fair_turn_of(tctx, waiting);
}

/* Return the group whose used-up quota throttles @p, or 0. An exiting task is not
 * throttled: it may hold something that others wait for. */
static u64 out_of_quota(const struct task_struct *p, const struct task_ctx *tctx)
{
	if (!tctx->limit || is_system(p) || (p->flags & PF_EXITING))
		return 0;
	return throttled_by(tctx->limit);
}

/* Return the same if @p, which is not running, may be held back at this point. */
static u64 must_park(const struct task_struct *p, const struct task_ctx *tctx)
{
	return tctx->may_be_held ? out_of_quota(p, tctx) : 0;
}

/* @p is about to run, without a queue, for a turn of kind @turn. Return its length. */
static u64 take_turn(struct task_struct *p, struct task_ctx *tctx, const struct invocation *inv,
		     u32 turn)
{
	tctx->turn = turn;
	if (turn == TURN_FAIR)
		return fair_take_turn(p, tctx);
	fair_leave(p, tctx);
	if (turn == TURN_RANKED && inv)
		update_rank(tctx, inv);
	return turn_ns(turn, tctx, inv, 0);
}

/* Return true if work waits that @cpu should serve before functions. */
static bool functions_come_second(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	return short_turn_waiting(cpu) || (cctx && outside_is_due(cpu, cctx, now));
}

/*
 * Return true if @p was preempted in the middle of its turn, by work that goes first, and
 * should resume afterwards. (A task that already waits in a queue stays behind the tasks
 * before it: it comes here again at each change of its nice value or affinity.) Ranked work
 * does not resume while a claim of a CPU by earlier work is pending: it may be this CPU. The kick
 * for the claim, and the note of it, are lost if the CPU had a tick and a task in its local queue
 * in between, because dispatch() is not called then.
 */
static bool is_interrupted(const struct task_struct *p, const struct task_ctx *tctx,
			   const struct invocation *inv, u32 turn, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (turn == TURN_FAIR || turn != tctx->turn || tctx->yielded || tctx->outranked ||
	    tctx->waits_since || (enq_flags & (SCX_ENQ_WAKEUP | SCX_ENQ_LAST | SCX_ENQ_REENQ)) ||
	    tctx->stopped_on != cpu)
		return false;
	return turn != TURN_RANKED ||
	       (!ranked_slice_is_over(tctx, inv) && !claimer_waiting(cpu, tctx->queue_key));
}

/*
 * Return true if @p, which was interrupted, resumes on its CPU as soon as the task that
 * preempted it gives the CPU back. Not if more tasks wait that go before @p: the kernel picks
 * from the local queue before it calls dispatch(), so @p would run for an instant between
 * each two of them, or until the next tick. Not if another CPU is idle, since it would not
 * look there, nor if a whole FAIR turn comes first. Not if a pinned task has preempted @p: it may
 * run for several turns, and cannot go to a CPU that becomes idle meanwhile (turn_is_over()). @p
 * then waits first in line for any CPU.
 */
static bool resumes_at_once(const struct task_struct *p, const struct task_ctx *tctx, u64 now)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (is_short_turn(tctx))
		return true;
	return cctx && !cctx->next_turn_is_due && !functions_come_second(cpu, now) &&
	       (pinned_cpu(p) >= 0 || (!cctx->nr_first && !may_run_elsewhere(p)));
}

/* ------------------------------------------------------------------ wake-up */

/* Return true if the task is new and not a function. A container runtime starts such tasks
 * for a function, and every request that starts a sandbox waits for them. */
static bool serves_functions(const struct task_struct *p, const struct task_ctx *tctx, bool is_new)
{
	return is_new && !is_function(p, tctx);
}

/* @p is about to become runnable, as in note_runnable(). */
static struct invocation *begin_runnable(struct task_struct *p, struct task_ctx *tctx, bool wakeup,
					 u64 now)
{
	bool is_new = tctx->fresh;
	struct invocation *inv = note_runnable(p, tctx, wakeup, now);

	if (wakeup && inv && is_function(p, tctx))
		pay_by_sleep(tctx, inv, now);
	if (wakeup || serves_functions(p, tctx, is_new))
		begin_activity(p, tctx, now);
	return inv;
}

/*
 * Choose a CPU, an idle one if there is one, even if the waker says that it is about to sleep: a
 * function may well keep its CPU for the rest of its credit. enqueue() decides whether @p gets it.
 */
s32 BPF_STRUCT_OPS(sfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	bool is_idle = false;
	s32 cpu;

	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~(u64)SCX_WAKE_SYNC, &is_idle);
	if (tctx) {
		tctx->handed_over = !is_idle && is_handed_over(p, wake_flags);
		tctx->chose_idle_cpu = is_idle;
	}
	return cpu;
}

/* @p is runnable: count it in its tenant, FILTER's demand and the sharing clock. @provisional is
 * PROVISIONAL or 0. */
static void count_runnable(struct task_struct *p, struct task_ctx *tctx,
			   const struct invocation *inv, u64 provisional, u64 now)
{
	if (is_function(p, tctx))
		join_share(p, tctx, provisional, now);
	if (has_credit(inv))
		join_demand(tctx, provisional);
	if (policy == SFS_POLICY_LEARNED && inv && is_function(p, tctx))
		join_present(tctx, provisional);
}

static void join_runnable(struct task_struct *p, struct task_ctx *tctx,
			  const struct invocation *inv, u64 now)
{
	if (is_function(p, tctx))
		join_group(p, tctx);
	count_runnable(p, tctx, inv, 0, now);
}

/* The same for @p, which waits for quota, without its run queue locked. It is also counted in its
 * group if it is not a function: it will wait in FAIR. */
static void join_runnable_for_now(struct task_struct *p, struct task_ctx *tctx,
				  const struct invocation *inv, u64 now)
{
	if (!tctx->active)
		count_in_group(p, tctx, group_of(p), PROVISIONAL);
	count_runnable(p, tctx, inv, PROVISIONAL, now);
}

/* Undo join_runnable_for_now(), as far as nobody has counted or uncounted the task since. */
static void take_back_counts(struct task_ctx *tctx)
{
	u64 id;

	if (take_back_count(&tctx->in_demand))
		__sync_fetch_and_sub(&often.demand, 1);
	if (take_back_count(&tctx->present))
		__sync_fetch_and_sub(&often.present, 1);
	id = take_back_count(&tctx->tenant);
	if (id)
		leave_tenant(id, clock_now());
	uncount_in_group(take_back_count(&tctx->active));
}

/* The task is queued, and not for quota: release_group() must not take its counts back. */
static void keep_counts(struct task_ctx *tctx)
{
	keep_count(&tctx->in_demand);
	keep_count(&tctx->present);
	keep_count(&tctx->tenant);
	keep_count(&tctx->active);
}

/* The task is no longer runnable, or is parked. */
static void leave_runnable(struct task_ctx *tctx)
{
	leave_demand(tctx);
	leave_group(tctx);
	leave_share(tctx);
	leave_present(tctx);
	if (mode == SFS_MODE_FAIR_ONLY)
		check_recovery(clock_now());
}

/* @p becomes runnable: a new invocation, a return from I/O, or only a change of its
 * attributes (only a return from I/O comes with SCX_ENQ_WAKEUP). */
void BPF_STRUCT_OPS(sfs_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	bool wakeup = enq_flags & SCX_ENQ_WAKEUP;
	struct invocation *inv;
	u64 now = clock_now();

	if (!tctx)
		return;
	inv = begin_runnable(p, tctx, wakeup, now);
	if (wakeup && is_system(p))
		count(SFS_SYSTEM_WAKEUPS);
	else if (wakeup && has_credit(inv))
		count(SFS_IO_RETURNS);
	join_runnable(p, tctx, inv, now);
}

/*
 * Give @p a CPU at once. If it may use several, it waits in a queue at which every CPU looks
 * first, and one of them is kicked. In the local queue of one CPU, with SCX_ENQ_PREEMPT, it would
 * wait for the end of what runs there, for example of a system call that cannot be preempted,
 * while other CPUs idle. (Seen on 6.18: 6 ms.)
 */
static void system_enqueue(struct task_struct *p, struct task_ctx *tctx, u64 enq_flags, u64 now)
{
	s32 pinned = pinned_cpu(p);

	tctx->turn = TURN_SYSTEM;
	tctx->queued_at = 0;
	if (pinned >= 0 && !meets_dispatch(pinned)) {
		insert_first(p, tctx, SYSTEM_SLICE_NS, enq_flags);
		return;
	}
	note_waiting(tctx, DSQ_SYSTEM);
	scx_bpf_dsq_insert(p, DSQ_SYSTEM, SYSTEM_SLICE_NS, enq_flags);
	if (pinned >= 0)
		scx_bpf_kick_cpu(pinned, SCX_KICK_IDLE); /* dispatch() may have looked already */
	else if (!kick_idle_cpu(p, -1))
		preempt_for_short_turn(p, tctx, now);
}

/* Give this CPU a kernel thread that waits for a kicked CPU. Return true if there is
 * one. */
static bool system_dispatch(void)
{
	return queue_length(DSQ_SYSTEM) && scx_bpf_dsq_move_to_local(DSQ_SYSTEM, 0);
}

/* Return true if the task is new or has woken up, and was not taken off a CPU. */
static bool arrives(const struct task_ctx *tctx, u64 enq_flags)
{
	return (enq_flags & SCX_ENQ_WAKEUP) || tctx->stopped_on < 0;
}

/*
 * dispatch() has made no decision about @p, because its group had no quota, and its CPU
 * is about to idle (SCX_ENQ_LAST). If the group has got quota in between, @p waits in a
 * queue like other tasks, and the CPU must look at it.
 */
static void look_again_for_last(const struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_LAST)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), 0);
}

/*
 * @p, which was interrupted, resumes on its CPU. A short turn goes before all tasks that it has
 * displaced, on the first free CPU: in the local queue no idle CPU would find it. A pinned task
 * waits in the local queue of its CPU, unless another one waits first there. If the kernel has
 * already picked from that queue, without calling dispatch(), running() makes the picked task
 * give the CPU back.
 */
static void resume(struct task_struct *p, struct task_ctx *tctx, u64 slice, u64 enq_flags)
{
	u64 dsq = tctx->turn == TURN_SYSTEM ? DSQ_SYSTEM : DSQ_PROMPT;
	s32 pinned = pinned_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(pinned);

	if (!is_short_turn(tctx)) {
		show_interrupted(p, tctx);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, enq_flags);
		return;
	}
	if (pinned < 0 || cctx->nr_first) {
		note_waiting(tctx, dsq);
		scx_bpf_dsq_insert(p, dsq, slice, enq_flags | SCX_ENQ_HEAD);
		kick_idle_cpu(p, pinned);
		return;
	}
	note_first(tctx, pinned);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, enq_flags | SCX_ENQ_HEAD);
	cctx->short_turn_is_local |= !cctx->dispatch_called;
}

/*
 * Return true if @p gets the CPU that select_cpu() has chosen for it because it was idle.
 * select_cpu() does not lock the run queue. Another task, or a real-time one, may have begun to run
 * there since, or be the next to begin, or dispatch() is about to fetch one. @p then waits where
 * other CPUs look: in the local queue it could wait for a whole turn, or for a system call that
 * cannot be preempted, beside idle CPUs.
 */
static bool gets_idle_cpu(const struct task_struct *p, const struct task_ctx *tctx)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	return tctx->chose_idle_cpu && !cctx->runs && !cctx->is_dispatching &&
	       !queue_length(SCX_DSQ_LOCAL_ON | cpu) && !is_taken(cpu);
}

/* If @p need not wait, insert it into the local queue and return true: it has found an idle CPU,
 * or was @interrupted and resumes. */
static bool goes_at_once(struct task_struct *p, struct task_ctx *tctx, const struct invocation *inv,
			 u32 turn, bool interrupted, u64 enq_flags, u64 now)
{
	u64 slice;

	if (gets_idle_cpu(p, tctx)) {
		tctx->queued_at = now;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, take_turn(p, tctx, inv, turn), enq_flags);
		return true;
	}
	if (!interrupted || !resumes_at_once(p, tctx, now))
		return false;
	slice = take_turn(p, tctx, inv, turn);
	tctx->queued_at = 0;
	resume(p, tctx, slice, enq_flags);
	return true;
}

/* @p waits in the queue for its @turn. */
static void wait_in_queue(struct task_struct *p, struct task_ctx *tctx, struct invocation *inv,
			  u32 turn, bool interrupted, u64 enq_flags, u64 now)
{
	if (must_leave(p, tctx, turn, enq_flags)) {
		leave_first(p, tctx, turn, enq_flags);
	} else if (turn == TURN_SYSTEM) {
		system_enqueue(p, tctx, enq_flags, now);
	} else if (turn == TURN_PROMPT) {
		prompt_enqueue(p, tctx, enq_flags, now);
	} else if (turn == TURN_RANKED && inv) {
		ranked_enqueue(p, tctx, inv, arrives(tctx, enq_flags), enq_flags, now);
	} else if (turn == TURN_FILTER && inv) {
		filter_enqueue(p, tctx, inv, enq_flags | (interrupted ? SCX_ENQ_HEAD : 0), now);
	} else {
		if (has_credit(inv) && is_in_debt(tctx))
			note_denied(tctx);
		fair_enqueue(p, tctx, enq_flags, now);
	}
	if (!tctx->waits_since)
		tctx->waits_since = now;
	note_starving(p, tctx, now);
}

/* @p's group @group has used up its quota: @p waits apart until it has quota again. */
static void wait_for_quota(struct task_struct *p, struct task_ctx *tctx, u64 group, u64 enq_flags,
			   u64 now)
{
	leave_runnable(tctx); /* else overload would not end while it waits */
	park(p, tctx, group, enq_flags, now);
	if (!tctx->waits_since)
		tctx->waits_since = now;
	tctx->starved_since = 0;
}

void BPF_STRUCT_OPS(sfs_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	struct invocation *inv;
	u64 now = clock_now(), parked;
	bool interrupted;
	u32 turn;

	if (!tctx) {
		count(SFS_NO_CONTEXT);
		fair_enqueue(p, NULL, enq_flags, now);
		look_again_for_last(p, enq_flags);
		return;
	}
	note_waits_no_more(tctx); /* it was in a queue if only its attributes change */
	note_first_no_more(tctx);
	restore_vtime(p, tctx);
	inv = lookup_invocation(p, tctx);
	turn = next_turn(p, tctx, inv);
	parked = must_park(p, tctx);
	interrupted = !parked && is_interrupted(p, tctx, inv, turn, enq_flags);

	if (parked)
		wait_for_quota(p, tctx, parked, enq_flags, now);
	else if (goes_at_once(p, tctx, inv, turn, interrupted, enq_flags, now))
		tctx->waits_since = 0;
	else
		wait_in_queue(p, tctx, inv, turn, interrupted, enq_flags, now);
	if (!parked) {
		keep_counts(tctx);
		tctx->may_be_held = false; /* it may be anywhere in the kernel when it stops next */
		look_again_for_last(p, enq_flags);
	}
	tctx->chose_idle_cpu = false;
	tctx->yielded = false;
	tctx->outranked = false;
	tctx->handed_over = false;
}

/* ---------------------------------------------------------------------- run */

/*
 * @p begins a turn on its CPU; @fair tells whether it is a FAIR turn. FILTER must wait for
 * its end if dispatch() has chosen it as due, or if @p is not a function and such tasks have
 * not had their part of this CPU.
 */
static void begin_fair_turn(struct task_struct *p, const struct task_ctx *tctx,
			    struct cpu_ctx *cctx, bool fair, u64 now)
{
	bool outside = fair && tctx && !is_function(p, tctx), due = fair && cctx->next_turn_is_due;

	if (outside && !due)
		due = may_serve_outside(cctx, now);
	cctx->next_turn_is_due = false;
	cctx->turn_is_due = due;
	mark_fair_cpu(scx_bpf_task_cpu(p), fair && !due);
	if (!fair)
		return;
	fair_running(p, scx_bpf_task_cpu(p));
	if (!outside)
		cctx->fair_served_at = now;
	/* Without a slice it has been told to stop, and only goes on for a moment: from Linux 6.19 on
	 * each switch out of a section without migration begins so. */
	if (due && p->scx.slice)
		scx_bpf_task_set_slice(p, due_turn_ns(tctx));
}

/* Give this CPU the short turn that has met dispatch() (meets_dispatch()). Return true if there is
 * one. */
__global_func int take_short_turn(void)
{
	return system_dispatch() || prompt_dispatch();
}

/* Let @prev run for another turn without a context switch, unless a short turn has come since
 * dispatch() has looked. */
static void keep_running(struct task_struct *prev, struct task_ctx *tctx,
			 const struct invocation *inv, u32 turn, struct cpu_ctx *cctx)
{
	s32 cpu = scx_bpf_task_cpu(prev);

	if (first_waiting(cctx) || (cctx->short_turn_is_local && take_short_turn()))
		return; /* without a slice @prev is queued and the first picked */
	scx_bpf_task_set_slice(prev, take_turn(prev, tctx, inv, turn));
	tctx->may_be_held = false;
	cctx->dispatch_called = false;
	cctx->is_short_turn = has_short_turn(tctx);
	begin_fair_turn(prev, tctx, cctx, turn == TURN_FAIR, cctx->asked_at);
	show_ranked(cpu, tctx);
	tctx->yielded = false;
	tctx->outranked = false;
}

/* @prev's CPU has no other work: @prev continues, whatever it is. Without a decision it
 * would be queued and its CPU would go idle. */
static void keep_last(struct task_struct *prev, struct task_ctx *tctx, const struct invocation *inv,
		      struct cpu_ctx *cctx)
{
	u32 turn;

	if (!tctx) {
		scx_bpf_task_set_slice(prev, fair_turn_ns(fair_waiting()));
		return;
	}
	turn = next_turn(prev, tctx, inv);
	keep_running(prev, tctx, inv, turn == TURN_SYSTEM ? TURN_FAIR : turn, cctx);
}

/* Return true if @prev, which has used up its turn, is not a function and comes before the
 * other such tasks, and these have not had their part of @cpu yet. */
static bool outside_keeps_cpu(struct task_struct *prev, const struct task_ctx *tctx,
			      struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	return !is_function(prev, tctx) && !tctx->yielded && may_serve_outside(cctx, now) &&
	       comes_before_outside(fair_vtime_of(prev, tctx, fair_waiting()), cpu);
}

/* Return true if @prev is FILTER work that only FAIR's bound may stop. */
static bool filter_keeps_cpu(const struct task_ctx *tctx, const struct invocation *inv, s32 cpu)
{
	if (tctx->turn != TURN_FILTER || !has_credit(inv) || mode != SFS_MODE_FILTER ||
	    is_in_debt(tctx))
		return false;
	return !tctx->yielded || !filter_waiting(cpu);
}

/* Where a task goes when its group has quota again. */
struct release {
	u64 dsq;
	u64 vtime; /* its place there, if `ordered` */
	u64 slice_ns;
	u64 change;   /* of the queue that counts it */
	bool stays;   /* parked, in `dsq` of another group */
	bool ordered; /* by `vtime`, not by arrival */
	s32 pinned;   /* the one CPU that may run it, or -1 */
};

/* Set queue and place in @to for @tctx's turn: in FILTER, in rank order or in FAIR. */
static void release_to_turn(struct task_struct *p, struct task_ctx *tctx, struct invocation *inv,
			    struct release *to)
{
	if (tctx->turn == TURN_FILTER) {
		to->dsq = filter_queue_for(p, to->pinned);
	} else if (tctx->turn == TURN_RANKED && inv) {
		save_vtime(p, tctx);
		to->dsq = to->pinned < 0 ? DSQ_RANKED : DSQ_RANKED_CPU(to->pinned);
		to->vtime = tctx->queue_key;
		to->ordered = true;
	} else {
		to->dsq = fair_queue_for(p, tctx, to->pinned);
		to->vtime = fair_assign_vtime(p, tctx, to->slice_ns);
		to->ordered = true;
	}
}

/* @p's group has quota again. Make @p runnable, and set in @to where it goes. */
static void plan_release(struct task_struct *p, struct task_ctx *tctx, struct release *to, u64 now)
{
	u64 other = must_park(p, tctx); /* a group above may have used up its quota */
	struct invocation *inv;

	if (other) {
		to->dsq = DSQ_PARKED(other);
		to->stays = true;
		return;
	}
	to->pinned = pinned_cpu(p);
	inv = lookup_invocation(p, tctx);
	join_runnable_for_now(p, tctx, inv, now);
	tctx->turn = next_turn(p, tctx, inv);
	if (is_short_turn(tctx))
		tctx->turn = TURN_FAIR; /* it has waited already */
	tctx->may_be_held = false;
	tctx->queued_at = now;
	tctx->waits_since = now;
	note_starving(p, tctx, now);
	if (tctx->turn == TURN_RANKED && inv)
		update_rank(tctx, inv); /* before its slice is used */
	to->slice_ns = turn_ns(tctx->turn, tctx, inv, fair_waiting());
	release_to_turn(p, tctx, inv, to);
	to->change = note_waiting(tctx, to->dsq);
}

/* The same, verified apart from the caller's loop. Return false if @p has no context. */
__global_func bool plan_release_once(struct task_struct *p __arg_trusted,
				     struct release *to __arg_nonnull, u64 now)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	if (!tctx)
		return false;
	bpf_rcu_read_lock();
	plan_release(p, tctx, to, now);
	bpf_rcu_read_unlock();
	return true;
}

/* The task that was to be released has left the queue meanwhile. */
__global_func int undo_release(struct task_struct *p __arg_trusted,
			       const struct release *to __arg_nonnull)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	if (!tctx)
		return 0;
	undo_waiting(tctx, to->change);
	take_back_counts(tctx);
	return 0;
}

/* Move a parked task whose group has quota again to its queue. See relieve_filter()
 * about the race. */
static void release_task(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 now)
{
	struct release to = {};
	bool moved;

	if (!plan_release_once(p, &to, now))
		return;
	if (to.stays) {
		scx_bpf_dsq_move(it, p, to.dsq, 0);
		return;
	}
	scx_bpf_dsq_move_set_slice(it, to.slice_ns);
	if (to.ordered) {
		scx_bpf_dsq_move_set_vtime(it, to.vtime);
		moved = scx_bpf_dsq_move_vtime(it, p, to.dsq, 0);
	} else {
		moved = scx_bpf_dsq_move(it, p, to.dsq, 0);
	}
	if (!moved)
		undo_release(p, &to);
	note_pinned(to.pinned); /* after the move: no run queue is locked here */
	kick_idle_cpu(p, to.pinned);
}

/* Release the tasks of group @id, which has quota again; stop at the time @until. */
__global_func int release_group(u64 id, u64 until)
{
	struct task_struct *p;

	bpf_rcu_read_lock(); /* up to 6.16 a timer is as sleepable as its creator */
	bpf_for_each(scx_dsq, p, DSQ_PARKED(id), 0) {
		u64 now = clock_now();

		if (now > until)
			break;
		release_task(BPF_FOR_EACH_ITER, p, now);
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Return true if tasks wait in @cpu's own queues. */
static bool own_waiting(s32 cpu, struct cpu_ctx *cctx)
{
	if (!cctx->may_have_own)
		return false;
	if (queue_length(DSQ_FILTER_CPU(cpu)) || fair_waiting_for(cpu) ||
	    queue_length(DSQ_RANKED_CPU(cpu)))
		return true;
	cctx->may_have_own = false;
	return false;
}

/* Return true if FILTER is empty, except for tasks pinned to @cpu. */
static bool filter_is_empty(s32 cpu)
{
	return !shards_waiting(cpu) && (policy != SFS_POLICY_LEARNED || !queue_length(DSQ_RANKED));
}

/* Return the FAIR queue that must get @cpu now (fair_due_queue()). A look at the heads is
 * expensive, and a bound of tenths of a second leaves room: one look per ms is enough. */
static u64 look_for_due(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	u64 due;

	if (time_delta(now, cctx->fair_looked_at) < FAIR_LOOK_INTERVAL_NS)
		return 0;
	due = fair_due_queue(cpu, cctx->fair_served_at, now);
	if (!due)
		cctx->fair_looked_at = now;
	return due;
}

/* Move work that must go to FAIR there, from the head of FILTER for @cpu and of the ranked
 * queue. At the head of FAIR, put work of a tenant in debt behind other work. */
static void relieve_queues(s32 cpu, u64 now)
{
	bool late = loader_is_late(now);

	if (!late && !debts_are_known(now))
		return;
	relieve_filter(DSQ_FILTER_SHARD(shard_of(cpu)), DSQ_FAIR, late, now);
	if (may_have_own(cpu))
		relieve_filter(DSQ_FILTER_CPU(cpu), DSQ_FAIR_CPU(cpu), late, now);
	if (policy == SFS_POLICY_LEARNED)
		relieve_filter(DSQ_RANKED, DSQ_FAIR, false, now);
	put_debtors_back(DSQ_FAIR, now);
	if (may_have_own(cpu))
		put_debtors_back(DSQ_FAIR_CPU(cpu), now);
}

/* Least time between two questions of one CPU to the kernel, for tasks that no count shows. */
#define UNCOUNTED_LOOK_INTERVAL_NS NSEC_PER_MSEC

/*
 * A CPU is about to idle, because no work for it is counted. It asks the kernel first, at most once
 * in a while: a wrong count must not let CPUs idle while work waits. No such count is known. Each
 * question costs a search for six queues, some 1,500 instructions, whenever a CPU idles. A task that
 * all CPUs overlook is found by the guard, which asks the kernel too (kick_idle_cpus()).
 */
__global_func int take_uncounted(struct cpu_ctx *cctx __arg_nonnull)
{
	if (time_delta(cctx->asked_at, cctx->uncounted_looked_at) < UNCOUNTED_LOOK_INTERVAL_NS)
		return 0;
	cctx->uncounted_looked_at = cctx->asked_at;
	return scx_bpf_dsq_move_to_local(DSQ_SYSTEM, 0) ||
	       scx_bpf_dsq_move_to_local(DSQ_PROMPT, 0) ||
	       scx_bpf_dsq_move_to_local(DSQ_OUTSIDE, 0) ||
	       scx_bpf_dsq_move_to_local(DSQ_FILTER, 0) ||
	       scx_bpf_dsq_move_to_local(DSQ_RANKED, 0) || scx_bpf_dsq_move_to_local(DSQ_FAIR, 0);
}

/* Find work for @cpu, whose context is @cctx. @prev, which it has run, may still be runnable. */
static __always_inline void find_work(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev)
{
	struct task_ctx *tctx = NULL;
	struct invocation *inv = NULL;
	u64 now = clock_now(), due;
	bool wants_more, fair_waits, parked = false;

	cctx->dispatch_called = true;
	cctx->asked_at = now;
	wants_more = prev && (prev->scx.flags & SCX_TASK_QUEUED);
	if (wants_more)
		tctx = try_lookup_task_ctx(prev);
	if (prev && tctx) {
		inv = lookup_invocation(prev, tctx);
		charge(prev, tctx, inv, now);
		parked = must_park(prev, tctx);
	}

	if (system_dispatch() || prompt_dispatch())
		return;
	if (prev && tctx && !parked && is_short_turn(tctx) && !tctx->yielded &&
	    next_turn(prev, tctx, inv) == tctx->turn) {
		keep_running(prev, tctx, inv, tctx->turn, cctx);
		return;
	}
	fair_waits = fair_waiting() || own_waiting(cpu, cctx);
	if (!fair_waits && filter_is_empty(cpu)) {
		if (wants_more && !parked)
			keep_last(prev, tctx, inv, cctx);
		else
			take_uncounted(cctx);
		return;
	}
	relieve_queues(cpu, now);
	due = fair_waits ? look_for_due(cpu, cctx, now) : 0;
	if (due && fair_dispatch_from(cpu, due)) {
		cctx->next_turn_is_due = true;
		cctx->fair_served_at = now;
		count(SFS_FAIR_TURNS_DUE);
		return;
	}
	if (prev && tctx && !parked && outside_keeps_cpu(prev, tctx, cctx, cpu, now)) {
		keep_running(prev, tctx, inv, TURN_FAIR, cctx);
		return;
	}
	if (fair_waits && outside_is_due(cpu, cctx, now) && outside_dispatch(cpu)) {
		cctx->next_turn_is_due = true;
		return;
	}
	if (prev && tctx && !parked && filter_keeps_cpu(tctx, inv, cpu)) {
		keep_running(prev, tctx, inv, TURN_FILTER, cctx);
		return;
	}
	if (prev && tctx && !parked && has_rank(prev, tctx, inv) && !tctx->yielded &&
	    !is_in_debt(tctx) && !filter_waiting(cpu)) {
		if (ranked_keeps_cpu(tctx, inv, cpu)) {
			keep_running(prev, tctx, inv, TURN_RANKED, cctx);
			return;
		}
		tctx->outranked = true;
	}
	if (ranked_dispatch_rest(cpu) || filter_dispatch(cpu) || ranked_dispatch(cpu))
		return;
	if (prev && tctx && !parked && !tctx->yielded &&
	    (tctx->turn != TURN_RANKED || is_in_debt(tctx)) &&
	    fair_keeps_cpu(fair_next_vtime(prev, tctx), cpu)) {
		keep_last(prev, tctx, inv, cctx);
		return;
	}
	if (fair_dispatch(cpu))
		return;
	if (wants_more && !parked)
		keep_last(prev, tctx, inv, cctx);
	else
		take_uncounted(cctx);
}

/* @cpu needs work. @prev, which it has run, may still be runnable. */
void BPF_STRUCT_OPS(sfs_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (!cctx)
		return;
	cctx->is_dispatching = true;
	find_work(cpu, cctx, prev);
	cctx->is_dispatching = false;
}

/*
 * Return true if the task that now begins to run on @cpu, for a turn of kind @turn with @key, was picked from
 * the local queue without a call of dispatch(), which would have chosen another one. A task in rank
 * order that was interrupted waits there: an arrival that claimed the CPU meanwhile would otherwise
 * wait for the whole of its slice. On one CPU that was each arrival, since the process that starts
 * it runs there.
 */
static bool gives_way(struct cpu_ctx *cctx, s32 cpu, u32 turn, u64 key, u64 now)
{
	bool passed = cctx->short_turn_is_local, asked = cctx->dispatch_called;

	cctx->short_turn_is_local = false;
	cctx->dispatch_called = false;
	if (cctx->is_short_turn || ((asked || cctx->turn_is_due) && !passed))
		return false;
	if (passed || short_turn_waiting(cpu) || functions_come_second(cpu, now))
		return true;
	if (turn == TURN_RANKED)
		return claimer_waiting(cpu, key);
	return turn == TURN_FAIR && (filter_head_waiting(cpu) || ranked_head_waiting(cpu));
}

/* At load the kernel considers each CPU idle until it has been idle once. A busy CPU would be
 * given a task, which would wait for the next tick. */
static void note_first_run(struct cpu_ctx *cctx, s32 cpu)
{
	if (cctx->has_run)
		return;
	cctx->has_run = true;
	scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* @p begins to run. */
void BPF_STRUCT_OPS(sfs_running, struct task_struct *p)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);
	u64 now = clock_now(), wait;
	u32 turn = tctx ? tctx->turn : TURN_FAIR;

	if (!cctx)
		return;
	note_first_run(cctx, cpu);
	cctx->runs = true;
	cctx->is_short_turn = tctx && has_short_turn(tctx);
	if (tctx)
		restore_vtime(p, tctx);
	begin_fair_turn(p, tctx, cctx, turn == TURN_FAIR, now);
	if (gives_way(cctx, cpu, turn, tctx ? tctx->queue_key : 0, now))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	else if (cctx->is_short_turn && queue_length(DSQ_SYSTEM))
		kick_for(DSQ_SYSTEM); /* the task meant for this CPU may find an idle one */
	if (!tctx)
		return;

	wait = tctx->queued_at ? time_delta(now, tctx->queued_at) : 0;
	tctx->queued_ns += wait;
	if ((tctx->turn == TURN_FILTER || tctx->turn == TURN_RANKED) && tctx->queued_at) {
		count_filter_start(wait);
		if (tctx->turn == TURN_FILTER)
			check_overload(wait, now);
	}
	show_ranked(cpu, tctx);
	note_waits_no_more(tctx);
	note_first_no_more(tctx);
	tctx->queued_at = 0;
	tctx->stopped_on = -1;
	tctx->waits_since = 0;
	tctx->charged_ns = p->se.sum_exec_runtime;
	if (out_of_quota(p, tctx))
		hold_back(p, tctx);
}

/* Return true if earlier work that has claimed a CPU still waits at a tick of @cpu, and may run
 * there. A claim takes microseconds, unless a race has lost the kick for it: that work would wait
 * for the end of a slice. A claim that is under way costs one switch. */
static bool claim_is_lost(const struct task_ctx *tctx, s32 cpu)
{
	return claimer_waiting(cpu, tctx->queue_key) && ranked_head_waiting(cpu);
}

/* Return true if @p, which runs on @cpu, must give it up before its slice ends. No idle CPU
 * finds a task that waits in the local queue, so @p goes to an idle CPU instead. */
static bool turn_is_over(const struct task_struct *p, const struct task_ctx *tctx,
			 const struct invocation *inv, struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	if (!is_short_turn(tctx) && (short_turn_waiting(cpu) || first_waiting(cctx)))
		return true;
	if (!is_short_turn(tctx) && !cctx->turn_is_due && outside_is_due(cpu, cctx, now))
		return true;
	if (queue_length(SCX_DSQ_LOCAL) && may_run_elsewhere(p))
		return true;
	if (tctx->turn != TURN_FAIR && is_in_debt(tctx) && functions_wait(cpu))
		return true;
	if (tctx->turn == TURN_FILTER)
		return !has_credit(inv) || mode != SFS_MODE_FILTER ||
		       (loader_is_late(now) && filter_waiting(cpu)) ||
		       fair_due_queue(cpu, cctx->fair_served_at, now);
	if (tctx->turn == TURN_RANKED)
		return !is_ranked() || claim_is_lost(tctx, cpu) ||
		       fair_due_queue(cpu, cctx->fair_served_at, now);
	return tctx->turn == TURN_FAIR && !cctx->turn_is_due &&
	       (filter_waiting(cpu) || ranked_head_waiting(cpu));
}

/* Charge @p, which runs on @cpu, and end its turn if another task should have the CPU. */
static void review_turn(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			u64 now)
{
	struct invocation *inv = note_runnable(p, tctx, false, now); /* it may have been moved */

	charge(p, tctx, inv, now);
	if (!tctx->tenant)
		join_runnable(p, tctx, inv, now); /* its sandbox may be known only now */
	if (out_of_quota(p, tctx))
		hold_back(p, tctx);
	if (turn_is_over(p, tctx, inv, cctx, cpu, now) || must_park(p, tctx))
		scx_bpf_task_set_slice(p, 0);
	else if (prompt_goes_on(tctx, cpu))
		scx_bpf_task_set_slice(p, prompt_turn_ns(tctx));
	if (tctx->turn == TURN_RANKED && inv) {
		look_up_rank(tctx, inv);
		show_ranked(cpu, tctx);
	}
}

/*
 * Once a tick, each busy CPU checks for conditions that no event reports: credit
 * that several threads use at the same time, the wait of FAIR's and of FILTER's
 * head, and work that waits although a CPU is idle or runs FAIR work, because a
 * race has lost the kick for it.
 */
void BPF_STRUCT_OPS(sfs_tick, struct task_struct *p)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);
	u64 now = clock_now();
	u32 shard = shard_of(cpu);

	if (!cctx)
		return;
	if (tctx)
		review_turn(p, tctx, cctx, cpu, now);
	check_head(DSQ_FILTER_SHARD(shard), now);
	check_head(DSQ_FILTER_CPU(cpu), now);
	check_recovery(now);
	kick_idle_cpus(shard, shard + 1);
}

/* @p has ended. */
static void leave_for_good(struct task_struct *p, struct task_ctx *tctx, struct invocation *inv)
{
	if (tctx->has_left)
		return;
	tctx->has_left = true;
	leave_invocation(p, tctx, inv);
}

/* @p leaves its CPU; @runnable tells whether it is still runnable. */
void BPF_STRUCT_OPS(sfs_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);
	struct invocation *inv;
	u64 now = clock_now();

	mark_fair_cpu(cpu, false);
	cctx->runs = false;
	if (!tctx)
		return;
	if (tctx->turn == TURN_RANKED) {
		tctx->outranked |= is_claimed(cpu);
		set_running(cpu, RANK_NONE, 0);
	}
	inv = lookup_invocation(p, tctx);
	charge(p, tctx, inv, now);
	if (runnable)
		note_cut_short(tctx);
	else
		end_claim(tctx);
	if (cctx && tctx->turn == TURN_FAIR && is_function(p, tctx))
		cctx->fair_served_at = now;
	if (cctx)
		cctx->is_short_turn = false;
	tctx->stopped_on = runnable ? cpu : -1;
	note_served(p, tctx, runnable);
	note_exit_is_over(p, tctx, now);
	if (runnable)
		return;
	end_activity(tctx, now);
	if (!inv)
		return;
	if (p->__state == SFS_TASK_DEAD)
		leave_for_good(p, tctx, inv);
	else
		note_sleep(p, tctx, inv, now);
}

/*
 * A task of a higher scheduling class takes @cpu. The task that it displaces, and tasks in the
 * local queue, go back into queues that other CPUs look at.
 */
void BPF_STRUCT_OPS(sfs_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (!cctx)
		return;
	cctx->is_taken = true;
	cctx->in_release = true;
	scx_bpf_reenqueue_local();
	cctx->in_release = false;
}

/* @cpu is back under this scheduler. */
void BPF_STRUCT_OPS(sfs_cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (cctx)
		cctx->is_taken = false;
}

/* @p is no longer runnable. */
void BPF_STRUCT_OPS(sfs_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	if (!tctx)
		return;
	note_waits_no_more(tctx);
	note_first_no_more(tctx);
	leave_runnable(tctx);
}

/* @from yields: it goes behind the tasks waiting in its queue. */
bool BPF_STRUCT_OPS(sfs_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = try_lookup_task_ctx(from);

	if (tctx) {
		tctx->yielded = true;
		tctx->prompt_ns = 0;
	}
	scx_bpf_task_set_slice(from, 0);
	return false;
}

/* -------------------------------------------------------------- life of tasks */

/* Create @p's context. Without memory for it the fork still succeeds, unless @p is under a
 * quota: a task without a context cannot be throttled. */
s32 BPF_STRUCT_OPS_SLEEPABLE(sfs_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;
	struct invocation *inv;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return bpf_core_field_exists(args->cgroup) && is_limited(args->cgroup) ? -ENOMEM :
											 0;
	tctx->stopped_on = -1;
	tctx->usual_ns = args->fork ? PROMPT_FIRST_NS : 0;
	tctx->fresh = args->fork;
	tctx->found_at_load = !args->fork && was_function(p);
	tctx->forked = args->fork || tctx->found_at_load;
	if (unit == SFS_UNIT_CGROUP)
		return 0; /* it joins its sandbox when first runnable */

	bpf_rcu_read_lock();
	inv = lookup_invocation(p, tctx);
	if (inv)
		__sync_fetch_and_add(&inv->nr_threads, 1);
	bpf_rcu_read_unlock();
	return 0;
}

/* A failed fork takes its thread off the count again, and so does a task that has ended in
 * another scheduling class. A live task continues under the next scheduler. */
void BPF_STRUCT_OPS(sfs_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	struct invocation *inv;

	if (!tctx)
		return;
	forget_kernel_exit(p, tctx);
	if (!args->cancelled && p->__state != SFS_TASK_DEAD)
		return;
	inv = lookup_invocation(p, tctx);
	if (inv)
		leave_for_good(p, tctx, inv);
}

/* @p joins this scheduler. */
void BPF_STRUCT_OPS(sfs_enable, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, fair_vtime_now);
}

/* ------------------------------------------------------------ control groups */

s32 BPF_STRUCT_OPS_SLEEPABLE(sfs_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	u64 parked = DSQ_PARKED(cgrp->kn->id);
	s32 err = scx_bpf_create_dsq(parked, NUMA_NO_NODE);

	if (err)
		return err;
	err = make_group(cgrp, args);
	if (err)
		scx_bpf_destroy_dsq(parked);
	return err;
}

void BPF_STRUCT_OPS_SLEEPABLE(sfs_cgroup_exit, struct cgroup *cgrp)
{
	u64 id = cgroup_id_of(cgrp);

	forget_tenant(id);
	remove_group(id);
	scx_bpf_destroy_dsq(DSQ_PARKED(id));
}

/* A task without a context cannot move to where a quota applies. */
s32 BPF_STRUCT_OPS_SLEEPABLE(sfs_cgroup_prep_move, struct task_struct *p, struct cgroup *from,
			     struct cgroup *to)
{
	return !try_lookup_task_ctx(p) && is_limited(to) ? -ENOMEM : 0;
}

void BPF_STRUCT_OPS(sfs_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	set_group_weight(cgroup_id_of(cgrp), weight);
}

void BPF_STRUCT_OPS(sfs_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us,
		    u64 burst_us)
{
	struct group *g = lookup_group(cgroup_id_of(cgrp));

	if (g)
		set_limit(g, period_us, quota_us, burst_us);
}

/* ------------------------------------------------------------ mode switching */

/* Move one task from FILTER to FAIR. See relieve_filter() about the race. */
static bool move_to_fair(struct bpf_iter_scx_dsq *it, struct task_struct *p)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	u32 waiting = fair_waiting();
	u64 turn, change;

	if (!tctx)
		return false;
	tctx->turn = TURN_FAIR;
	turn = fair_turn_of(tctx, waiting);
	scx_bpf_dsq_move_set_slice(it, turn);
	scx_bpf_dsq_move_set_vtime(it, fair_assign_vtime(p, tctx, turn));
	change = note_waiting(tctx, DSQ_FAIR);
	if (scx_bpf_dsq_move_vtime(it, p, DSQ_FAIR, 0))
		return true;
	undo_waiting(tctx, change);
	return false;
}

/* Move one task from FAIR to FILTER, if it has credit. If another CPU takes the task
 * just now, it runs for a FAIR slice that counts as FILTER's, within its credit. */
static bool move_to_filter(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 now)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	struct invocation *inv = tctx ? lookup_invocation(p, tctx) : NULL;
	u64 dsq, change;

	if (!tctx || !inv || !has_credit(inv) || is_in_debt(tctx))
		return false;
	tctx->turn = TURN_FILTER;
	tctx->queued_at = now;
	scx_bpf_dsq_move_set_slice(it, credit_left(inv));
	dsq = shard_queue_for(p);
	change = note_waiting(tctx, dsq);
	if (scx_bpf_dsq_move(it, p, dsq, 0))
		return true;
	undo_waiting(tctx, change);
	return false;
}

/* Move at most SWITCH_BATCH tasks from one shard to FAIR. Return their number. */
__global_func u32 move_shard_to_fair(u32 shard)
{
	struct task_struct *p;
	u32 moved = 0;

	__sink(moved); /* or the verifier follows each of its values */
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, DSQ_FILTER_SHARD(shard), 0) {
		if (move_to_fair(BPF_FOR_EACH_ITER, p) && ++moved >= SWITCH_BATCH)
			break;
	}
	bpf_rcu_read_unlock();
	return moved;
}

static u32 move_backlog_to_fair(void)
{
	u32 moved = 0, shard;

	bpf_for(shard, 0, nr_shards) {
		if (moved < SWITCH_BATCH)
			moved += move_shard_to_fair(shard);
	}
	return moved;
}

static u32 move_backlog_to_filter(u64 now)
{
	struct task_struct *p;
	u32 moved = 0;

	__sink(moved); /* or the verifier follows each of its values */
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, DSQ_FAIR, 0) {
		if (move_to_filter(BPF_FOR_EACH_ITER, p, now) && ++moved >= SWITCH_BATCH)
			break;
	}
	bpf_rcu_read_unlock();
	return moved;
}

/*
 * Switch the mode and move the backlog; the loader runs this. The mode changes
 * first: from then on tasks are queued where they belong, and the backlog can
 * only shrink, but for tasks whose enqueue() has read the mode just before. They get FILTER's
 * next turns, which go before FAIR in either mode. Pinned tasks stay where they are: each waits in a
 * queue of its own CPU, which serves it in either mode.
 */
SEC("syscall")
int switch_mode(struct sfs_mode_switch *arg)
{
	u64 now = clock_now();

	if (arg->mode == SFS_MODE_FAIR_ONLY) {
		mode = SFS_MODE_FAIR_ONLY;
		recovery_told_at = now;
		overload_since = 0;
		arg->moved = move_backlog_to_fair();
	} else {
		mode = SFS_MODE_FILTER;
		overload_since = 0;
		arg->moved = move_backlog_to_filter(now);
	}
	arg->left = arg->moved >= SWITCH_BATCH;
	count_n(SFS_MOVED, arg->moved);
	if (debug)
		bpf_printk("sfs: mode %u, %u tasks moved", mode, arg->moved);
	return 0;
}

/* ------------------------------------------------------------------- hints */

/* Apply the hints in the map `hints`; the loader runs this. Tasks that wait in FAIR
 * and have got credit go to FILTER. */
SEC("syscall")
int apply_hints(struct sfs_hint_batch *arg)
{
	struct sfs_hint_batch batch = { .nr = arg->nr };
	u64 now = clock_now();
	bool fair_waits = false;
	u32 i;

	bpf_for(i, 0, SFS_HINT_BATCH) {
		struct sfs_hint *hint = bpf_map_lookup_elem(&hints, &(u32){ i });
		struct task_struct *p;

		if (!hint || i >= batch.nr)
			break;
		p = bpf_task_from_pid(hint->pid);
		if (!p) {
			batch.dead++;
			continue;
		}
		bpf_rcu_read_lock();
		fair_waits |= apply_hint(p, hint, now, &batch);
		bpf_rcu_read_unlock();
		bpf_task_release(p);
	}
	arg->applied = batch.applied;
	arg->dead = batch.dead;
	arg->foreign = batch.foreign;
	arg->stale = batch.stale;
	if (fair_waits && mode == SFS_MODE_FILTER && policy != SFS_POLICY_FAIR)
		move_backlog_to_filter(now);
	return 0;
}

/* ------------------------------------------------------------ lengths of queues */

static u32 filter_length(void)
{
	u32 shard, waiting = 0;

	bpf_for(shard, 0, nr_shards)
		waiting += queue_length(DSQ_FILTER_SHARD(shard));
	return waiting;
}

/* Return how many tasks wait in the queues of single CPUs, of which CPU 0's is @first. */
__global_func u32 own_lengths(u64 first)
{
	u32 cpu, waiting = 0;

	__sink(waiting); /* or the verifier follows each of its values */
	bpf_for(cpu, 0, nr_cpu_ids)
		waiting += queue_length(first | cpu);
	return waiting;
}

/* Measure how many tasks wait in each kind of queue; the loader runs this when it is asked. */
SEC("syscall")
int measure_queues(struct sfs_queue_lengths *arg)
{
	s64 present = often.present;

	arg->filter = filter_length() + own_lengths(DSQ_FILTER_CPU(0));
	arg->ranked = queue_length(DSQ_RANKED) + own_lengths(DSQ_RANKED_CPU(0));
	arg->fair = queue_length(DSQ_FAIR) + own_lengths(DSQ_FAIR_CPU(0));
	arg->outside = queue_length(DSQ_OUTSIDE) + own_lengths(DSQ_OUTSIDE_CPU(0));
	arg->present = present > 0 ? present : 0;
	return 0;
}

/* ------------------------------------------------------------ debugging dumps */

void BPF_STRUCT_OPS(sfs_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("sfs: mode=%s S=%lluus arrivals=%llu\n",
		     mode == SFS_MODE_FILTER ? "filter" : "fair-only", slice_ns / 1000,
		     often.nr_arrivals);
	scx_bpf_dump("sfs: queued: FILTER=%d FAIR=%d; runnable with credit=%lld\n", filter_length(),
		     fair_waiting(), often.demand);
	scx_bpf_dump("sfs: overload from %lluus, over at %lluus, expected delay %lluus\n",
		     overload_wait() / 1000, recover_wait_ns / 1000, expected_delay() / 1000);
}

void BPF_STRUCT_OPS(sfs_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	s32 filter = scx_bpf_dsq_nr_queued(DSQ_FILTER_CPU(cpu));
	s32 fair = fair_waiting_for(cpu);

	if (filter > 0 || fair > 0)
		scx_bpf_dump("sfs: queued for this CPU alone: FILTER=%d FAIR=%d\n", filter, fair);
}

static const char *state_name(u32 state)
{
	switch (state) {
	case INV_CREDIT:
		return "with credit";
	case INV_DEMOTED:
		return "demoted";
	case INV_GRACE:
		return "in its grace";
	case INV_SPENT:
		return "grace used up";
	default:
		return "ended";
	}
}

void BPF_STRUCT_OPS(sfs_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	struct invocation *inv;
	u64 waited = 0;

	if (!tctx) {
		scx_bpf_dump("sfs: no context\n");
		return;
	}
	inv = lookup_invocation(p, tctx);
	if (tctx->queued_at)
		waited = time_delta(clock_now(), tctx->queued_at);
	scx_bpf_dump("sfs: turn=%s waited=%lluus vtime=%lld\n",
		     tctx->turn == TURN_FILTER ? "FILTER" :
		     tctx->turn == TURN_RANKED ? "FILTER, by rank" :
		     tctx->turn == TURN_SYSTEM ? "system" :
		     tctx->turn == TURN_PROMPT ? "prompt" :
						 "FAIR",
		     waited / 1000, (s64)(p->scx.dsq_vtime - fair_vtime_now));
	if (inv && inv->state != INV_NONE)
		scx_bpf_dump("sfs: invocation %u %s%s credit=%lluus used=%lluus threads=%d\n",
			     inv->seq, inv->open ? "" : "over, ", state_name(inv->state),
			     inv->credit_ns / 1000, inv->used_ns / 1000, inv->nr_threads);
}

/* ------------------------------------------------------------- load and exit */

static s32 create_queues(void)
{
	s32 err, cpu;
	u32 shard;

	bpf_for(shard, 0, nr_shards) {
		err = scx_bpf_create_dsq(DSQ_FILTER_SHARD(shard), NUMA_NO_NODE);
		if (err)
			return err;
	}
	err = scx_bpf_create_dsq(DSQ_FAIR, NUMA_NO_NODE);
	err = err ?: scx_bpf_create_dsq(DSQ_OUTSIDE, NUMA_NO_NODE);
	err = err ?: scx_bpf_create_dsq(DSQ_SYSTEM, NUMA_NO_NODE);
	err = err ?: scx_bpf_create_dsq(DSQ_PROMPT, NUMA_NO_NODE);
	if (err)
		return err;
	bpf_for(cpu, 0, nr_cpu_ids) {
		err = scx_bpf_create_dsq(DSQ_FILTER_CPU(cpu), NUMA_NO_NODE);
		if (err)
			return err;
		err = scx_bpf_create_dsq(DSQ_FAIR_CPU(cpu), NUMA_NO_NODE);
		if (err)
			return err;
		err = scx_bpf_create_dsq(DSQ_OUTSIDE_CPU(cpu), NUMA_NO_NODE);
		if (err)
			return err;
		err = scx_bpf_create_dsq(DSQ_RANKED_CPU(cpu), NUMA_NO_NODE);
		if (err)
			return err;
		set_running(cpu, RANK_NONE, 0);
	}
	return scx_bpf_create_dsq(DSQ_RANKED, NUMA_NO_NODE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(sfs_init)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return -ENOMEM;
	mask = bpf_kptr_xchg(&fair_cpus, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return create_queues() ?: init_release_timer() ?: init_guard_timer();
}

void BPF_STRUCT_OPS(sfs_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
	send_event(SFS_EVENT_EXIT, ei->kind, clock_now());
}

/* clang-format off */
SCX_OPS_DEFINE(sfs_ops,
	       .select_cpu	= (void *)sfs_select_cpu,
	       .runnable	= (void *)sfs_runnable,
	       .enqueue		= (void *)sfs_enqueue,
	       .dispatch	= (void *)sfs_dispatch,
	       .running		= (void *)sfs_running,
	       .tick		= (void *)sfs_tick,
	       .cpu_release	= (void *)sfs_cpu_release,
	       .cpu_acquire	= (void *)sfs_cpu_acquire,
	       .stopping	= (void *)sfs_stopping,
	       .quiescent	= (void *)sfs_quiescent,
	       .yield		= (void *)sfs_yield,
	       .init_task	= (void *)sfs_init_task,
	       .exit_task	= (void *)sfs_exit_task,
	       .enable		= (void *)sfs_enable,
	       .cgroup_init	= (void *)sfs_cgroup_init,
	       .cgroup_exit	= (void *)sfs_cgroup_exit,
	       .cgroup_prep_move = (void *)sfs_cgroup_prep_move,
	       .cgroup_set_weight = (void *)sfs_cgroup_set_weight,
	       .cgroup_set_bandwidth = (void *)sfs_cgroup_set_bandwidth,
	       .dump		= (void *)sfs_dump,
	       .dump_cpu	= (void *)sfs_dump_cpu,
	       .dump_task	= (void *)sfs_dump_task,
	       .init		= (void *)sfs_init,
	       .exit		= (void *)sfs_exit,
	       .timeout_ms	= 30000,
	       .name		= "sfs");
/* clang-format on */
