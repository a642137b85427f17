/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prompt: daemons get a CPU as soon as they wake up. The processes that every request passes on
 * its way to a function and back (gateway, sidecar, container runtime) are not functions, have no
 * credit, and would wait in FAIR for as long as FILTER is busy.
 *
 * Only the wake-up is prompt, for a short turn and within a budget. A task that wants more, such
 * as a server that requests keep busy, continues by virtual time like all tasks in FAIR, but in a
 * separate queue (DSQ_OUTSIDE), which is served before functions.
 *
 * A token bucket per task bounds the CPU time that one task takes in prompt turns. A bucket per
 * CPU bounds the CPU time that all of them take from functions in both ways: half of the CPU.
 * Once that is used up, they wait in FAIR like any other task.
 */
#ifndef __SFS_PROMPT_BPF_H
#define __SFS_PROMPT_BPF_H

/* Longest prompt turn, as for a kernel thread. After it, other prompt tasks are served before the
 * task continues. */
#define PROMPT_SLICE_NS (4 * NSEC_PER_MSEC)

/* Size of a bucket. A task, or a CPU, that was quiet can use this much at once. */
#define PROMPT_BURST_NS (20 * NSEC_PER_MSEC)

/* A task's bucket fills at a quarter of a CPU, a CPU's at half of it. */
#define PROMPT_TASK_FRACTION 4
#define PROMPT_CPU_FRACTION  2

/* Maximum debt of a CPU's bucket: turns end at a tick, when the bucket may be empty. Wake-ups may
 * borrow as much; otherwise CPU hogs that are not functions would keep it empty. */
#define PROMPT_DEBT_NS (4 * NSEC_PER_MSEC)

/* No turn begins with less than this: it would cost more than it gives. */
#define PROMPT_LEAST_NS (NSEC_PER_MSEC / 10)

/* If nothing tells which processes are functions, tasks that use no more than this between two
 * sleeps, on average, count as daemons, and so do those that mostly sleep (pay_by_sleep()). */
#define PROMPT_SHORT_NS (2 * NSEC_PER_MSEC)

/* Initial average of a new process: three short runs make it a daemon, one does not. A function
 * may sleep once as it begins, for a page. It could then keep a CPU from daemons for a whole
 * turn, and all CPUs at once if many functions begin together. */
#define PROMPT_FIRST_NS (2 * PROMPT_SHORT_NS)

/* Add to @bucket the tokens due since it was last filled. */
static void fill(struct token_bucket *bucket, u64 fraction, u64 now)
{
	s64 most = PROMPT_BURST_NS;
	u64 more = time_delta(now, bucket->filled_at) / fraction;

	bucket->filled_at = now;
	if (more < PROMPT_BURST_NS + 2 * PROMPT_DEBT_NS && bucket->tokens_ns + (s64)more < most)
		bucket->tokens_ns += more;
	else
		bucket->tokens_ns = most;
}

/* Take @amount out of @bucket, which may then have a debt of up to @debt. */
static void take(struct token_bucket *bucket, u64 amount, s64 debt)
{
	bucket->tokens_ns -= amount;
	if (bucket->tokens_ns < -debt)
		bucket->tokens_ns = -debt;
}

/* Return true if @p, which wakes up, counts as one of the daemons that serve functions. */
static bool is_daemon(const struct task_struct *p, const struct task_ctx *tctx)
{
	if (is_system(p))
		return false;
	return !is_function(p, tctx) ||
	       (!only_sandboxes && (tctx->usual_ns <= PROMPT_SHORT_NS || tctx->mostly_sleeps));
}

/* Return the CPU time that prompt turns may take beyond the CPU's tokens: none if other tasks
 * have waited for them. */
static s64 borrowable(u64 now)
{
	return head_wait(DSQ_OUTSIDE, now) < PROMPT_SLICE_NS ? PROMPT_DEBT_NS : 0;
}

/* @p wakes up: set how long it may run promptly. A task that may be a function (nothing tells)
 * gets one turn at most, unless it mostly sleeps. The CPU bucket checked is that of the CPU where
 * it wakes up; the CPU where it runs pays. */
static void grant_prompt_turn(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(scx_bpf_task_cpu(p));
	bool one_turn = is_function(p, tctx) && !tctx->mostly_sleeps;
	s64 most = one_turn ? PROMPT_SLICE_NS : PROMPT_BURST_NS;

	tctx->prompt_ns = 0;
	if (!cctx || !is_daemon(p, tctx))
		return;
	fill(&tctx->prompt, PROMPT_TASK_FRACTION, now);
	fill(&cctx->prompt, PROMPT_CPU_FRACTION, now);
	if (tctx->prompt.tokens_ns < most)
		most = tctx->prompt.tokens_ns;
	if (cctx->prompt.tokens_ns < most) {
		s64 left = cctx->prompt.tokens_ns + (is_function(p, tctx) ? 0 : borrowable(now));

		most = left < most ? left : most;
	}
	if (most >= (s64)PROMPT_LEAST_NS)
		tctx->prompt_ns = most;
}

/* @p wakes up. */
static void begin_activity(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	tctx->turn_used_ns = 0;
	tctx->leaves = false;
	grant_prompt_turn(p, tctx, now);
}

/* The task goes to sleep at @now. The new sample counts for a quarter: one longer run, or an
 * interrupt charged to the task, does not turn a daemon into a hog. */
static void end_activity(struct task_ctx *tctx, u64 now)
{
	tctx->slept_at = now;
	tctx->slept_clock = often.sharing_clock;
	tctx->usual_ns += (s64)(tctx->turn_used_ns - tctx->usual_ns) >> 2;
}

/* Charge @p for @delta of CPU time in a prompt turn. */
static void charge_prompt(const struct task_struct *p, struct task_ctx *tctx, u64 delta)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(scx_bpf_task_cpu(p));

	take(&tctx->prompt, delta, 0);
	if (cctx)
		take(&cctx->prompt, delta, 2 * PROMPT_DEBT_NS);
}

/* Return true if functions wait for @cpu (rank.bpf.h). */
bool functions_wait(s32 cpu);

/* Charge @p's CPU for @delta of CPU time outside of FILTER, used by a task that is not a
 * function. If no function waits, nothing is charged. That check is expensive, so it is made for
 * an accumulated sum. */
static void charge_outside(const struct task_struct *p, u64 delta)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (!cctx)
		return;
	cctx->outside_used_ns += delta;
	if (cctx->outside_used_ns < PROMPT_LEAST_NS)
		return;
	if (functions_wait(cpu))
		take(&cctx->prompt, cctx->outside_used_ns, PROMPT_DEBT_NS);
	cctx->outside_used_ns = 0;
}

/* Return true if tasks that are not functions may run before functions on the CPU. */
static bool may_serve_outside(struct cpu_ctx *cctx, u64 now)
{
	fill(&cctx->prompt, PROMPT_CPU_FRACTION, now);
	return cctx->prompt.tokens_ns > 0;
}

/* Return true if such tasks wait that @cpu, whose context is @cctx, should serve now. */
static bool outside_is_due(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	return may_serve_outside(cctx, now) &&
	       (queue_length(DSQ_OUTSIDE) || own_queue_length(cpu, DSQ_OUTSIDE_CPU(cpu)));
}

/* Return true if the task has a short turn: only other short turns may come before it. */
static bool is_short_turn(const struct task_ctx *tctx)
{
	return tctx->turn == TURN_SYSTEM || tctx->turn == TURN_PROMPT;
}

/* Return true if the task's turn, if it got one now, would be a prompt turn. */
static bool is_prompt(const struct task_ctx *tctx)
{
	return tctx->turn_used_ns < tctx->prompt_ns;
}

/* Return the length of the task's next prompt turn. */
static u64 prompt_turn_ns(const struct task_ctx *tctx)
{
	u64 left = time_delta(tctx->prompt_ns, tctx->turn_used_ns);

	return within_quota(tctx, left < PROMPT_SLICE_NS ? left : PROMPT_SLICE_NS);
}

/* Real-time and deadline tasks have a priority below this. */
#define MAX_RT_PRIO 100

/*
 * Return true if a real-time task has @cpu: a kick has no effect there, and tasks in its local
 * queue are stuck. The kernel reports a real-time task that displaces a task of ours (in
 * mid-switch, before it is the current one), but not one that finds the CPU idle.
 */
__global_func bool is_taken(s32 cpu)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);
	struct task_struct *curr;
	bool taken;

	if (!cctx || cctx->is_taken)
		return cctx;
	bpf_rcu_read_lock();
	curr = __COMPAT_scx_bpf_cpu_curr(cpu);
	taken = curr && curr->prio < MAX_RT_PRIO;
	bpf_rcu_read_unlock();
	return taken;
}

/*
 * Claim @cpu for a short turn. Fail if it has a short turn, waits for one, or is out of reach.
 * With @spare_due_turns, fail also if its turn is over soon and FILTER waits for that. The claim
 * holds until a task starts to run there. Two CPUs that claim it at the same time preempt its
 * task once more than needed.
 */
static bool claim_for_short_turn(s32 cpu, bool spare_due_turns)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (!cctx || cctx->is_short_turn || (spare_due_turns && cctx->turn_is_due) || is_taken(cpu))
		return false;
	cctx->is_short_turn = true;
	return true;
}

/* Number of CPUs checked for preemption, besides the task's own, but no more than there are. Each
 * check takes the next CPU that the task may use. So on small machines all are checked: a wake-up
 * that finds none waits for the next tick of any CPU. */
#define CPUS_LOOKED_AT 8

/*
 * Return the CPU that @p is to get: its own, which has its data and, most often, the interrupt
 * that woke it up. But FAIR work on any CPU is preempted before an invocation in FILTER. If all
 * CPUs have short turns, return -1: @p waits for the end of one, which is near. A CPU that is
 * preempted often is preempted for kernel threads only.
 */
__global_func s32 cpu_to_preempt(const struct task_struct *p __arg_trusted, u64 now)
{
	s32 own = scx_bpf_task_cpu(p), cpu, nr = nr_cpu_ids;
	bool spare = !is_system(p), may_use_own;
	int i;

	may_use_own =
		bpf_cpumask_test_cpu(own, p->cpus_ptr) && !(spare && is_preempted_often(own, now));
	if (may_use_own && claim_fair_cpu(own))
		return own;
	cpu = claim_any_fair_cpu(p, spare, now);
	if (cpu >= 0)
		return cpu;
	if (may_use_own && claim_for_short_turn(own, true))
		return own;
	bpf_for(i, 0, nr < CPUS_LOOKED_AT ? nr : CPUS_LOOKED_AT) {
		cpu = bpf_cpumask_any_distribute(p->cpus_ptr);
		if (cpu < nr_cpu_ids && !(spare && is_preempted_often(cpu, now)) &&
		    claim_for_short_turn(cpu, true))
			return cpu;
	}
	return may_use_own && claim_for_short_turn(own, false) ? own : -1;
}

/* Kick a CPU for @p, whose turn is short, unless all CPUs have other short turns or have been
 * preempted often. */
static void preempt_for_short_turn(const struct task_struct *p, const struct task_ctx *tctx,
				   u64 now)
{
	s32 cpu = cpu_to_preempt(p, now);

	if (cpu < 0)
		return;
	if (!is_system(p))
		count_preemption(cpu,
				 is_function(p, tctx) ? PREEMPT_FUNCTION_INTERVAL_NS :
							PREEMPT_INTERVAL_NS,
				 now);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * Return true if @p, which wakes up with @wake_flags and finds no idle CPU, should get its
 * waker's CPU. The waker has announced that it goes to sleep next (the other end of a pipe or
 * socket waits for the answer), so no task need be preempted. If it does not sleep, another CPU
 * finds @p at its next tick. Functions are not trusted in this: they may run for long.
 */
static bool is_handed_over(const struct task_struct *p, u64 wake_flags)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct task_ctx *tctx;

	if (!(wake_flags & SCX_WAKE_SYNC) || is_system(waker))
		return false;
	tctx = try_lookup_task_ctx(waker);
	return tctx && !is_function(waker, tctx) &&
	       bpf_cpumask_test_cpu(bpf_get_smp_processor_id(), p->cpus_ptr);
}

/* @p, not a function, has woken up without a prompt turn: kick its CPU if that may serve it.
 * Other CPUs look at their next tick. */
static void preempt_for_outside(const struct task_struct *p, const struct task_ctx *tctx, u64 now)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (!cctx || is_function(p, tctx) || tctx->handed_over || cctx->turn_is_due ||
	    cctx->is_short_turn)
		return;
	if (may_serve_outside(cctx, now))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * Return true if a short turn waits that @cpu may give. A CPU that is kicked for one may miss it:
 * if another task was in its local queue, such as the one that the previous short turn displaced,
 * dispatch() is not called.
 */
static bool short_turn_waiting(s32 cpu)
{
	return head_waits_for(DSQ_SYSTEM, cpu) || head_waits_for(DSQ_PROMPT, cpu);
}

/* The task, whose turn is short, waits in @cpu's local queue. No other CPU looks there, though
 * another task may run on @cpu. */
static void note_first(struct task_ctx *tctx, s32 cpu)
{
	tctx->first_on = cpu + 1;
	__sync_fetch_and_add(&lookup_cpu_ctx(cpu)->nr_first, 1);
}

/* The task does not wait there, or no longer does. */
static void note_first_no_more(struct task_ctx *tctx)
{
	u32 on = tctx->first_on;

	if (!on)
		return;
	tctx->first_on = 0;
	__sync_fetch_and_sub(&lookup_cpu_ctx(on - 1)->nr_first, 1);
}

/*
 * Return true if a task waits first in the local queue of @cctx's CPU, on which this runs.
 * insert_first() ends the turn there. But the kernel looks at the local queue before it calls
 * dispatch(), and dispatch() unlocks the run queue to fetch a task from another one. A task that
 * arrives in that moment finds nothing to preempt. The task that dispatch() then lets run would
 * keep the CPU for a turn, up to all of its credit.
 */
static bool first_waiting(const struct cpu_ctx *cctx)
{
	return cctx->nr_first && queue_length(SCX_DSQ_LOCAL);
}

/*
 * Return true if the task, which runs on @cpu, has another prompt turn and no short turn waits
 * for @cpu. (insert_first() also ends the turn, but a tick that was due before the CPU has
 * seen that would give the task another turn, repeatedly: a kernel worker was seen to wait
 * for 25 ms.) The task should not even end its turn then: the task that it displaced is in the
 * local queue, and the kernel picks that before it asks where this one goes. This one would wait
 * for the rest of an invocation.
 */
static bool prompt_goes_on(const struct task_ctx *tctx, s32 cpu)
{
	return tctx->turn == TURN_PROMPT && is_prompt(tctx) && !lookup_cpu_ctx(cpu)->nr_first &&
	       !short_turn_waiting(cpu);
}

/*
 * Return true if short turns have @cpu to themselves for now: one runs, or is first to run. The
 * next one waits behind these in a queue. If it also went first in the local queue, each one
 * would overtake the one before: when many tasks woke up (one CPU, 400 killed processes), a
 * kernel thread was seen to wait for 260 ms.
 */
static bool has_short_turns(s32 cpu)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	return cctx->is_short_turn || cctx->nr_first || short_turn_waiting(cpu);
}

/*
 * A task that is pinned to @cpu has a short turn. Return true if it must wait where dispatch() looks
 * first, not in the local queue: @cpu is in dispatch(), which unlocks the run queue to fetch a task
 * from another one. That task would come behind the short turn, and wait there for all of it beside
 * idle CPUs. Note that for @cpu: what it has fetched gives way (gives_way()), and finds another CPU
 * in enqueue(); a task that it has run does not go on (keep_running()).
 */
static bool meets_dispatch(s32 cpu)
{
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	if (!cctx->is_dispatching)
		return false;
	cctx->short_turn_is_local = true;
	return true;
}

/*
 * Give @p its own CPU, before all tasks that wait there. The kernel asks select_cpu() for no
 * pinned task, so the CPU may still count as idle. Until it switches, it would be chosen for
 * another task, which would wait in the local queue for the whole turn of @p. A task for which it
 * has been chosen already begins its turn, and gives way to @p at once: on its way off the CPU it
 * comes to enqueue(), which finds it another one. (No CPU looks into this one's local queue.)
 * In cpu_release() the CPU's current task is the one that has just been displaced, and queued: to
 * preempt it would take the slice that it was queued with.
 */
static void insert_first(struct task_struct *p, struct task_ctx *tctx, u64 slice, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = lookup_cpu_ctx(cpu);

	scx_bpf_test_and_clear_cpu_idle(cpu);
	note_first(tctx, cpu);
	if (!cctx->runs && queue_length(SCX_DSQ_LOCAL_ON | cpu))
		cctx->short_turn_is_local = true; /* see gives_way() */
	else
		enq_flags |= cctx->in_release ? SCX_ENQ_HEAD : SCX_ENQ_HEAD | SCX_ENQ_PREEMPT;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, enq_flags);
}

/* Give @p a CPU at once. As in system_enqueue(), the kicked CPU finds it in a queue at which
 * every CPU looks first. */
static void prompt_enqueue(struct task_struct *p, struct task_ctx *tctx, u64 enq_flags, u64 now)
{
	u64 slice = prompt_turn_ns(tctx);
	s32 pinned = pinned_cpu(p);

	count(SFS_PROMPT_WAKEUPS);
	tctx->turn = TURN_PROMPT;
	tctx->queued_at = 0;
	fair_leave(p, tctx);
	if (pinned >= 0 && !has_short_turns(pinned) && !meets_dispatch(pinned)) {
		insert_first(p, tctx, slice, enq_flags);
		return;
	}
	note_waiting(tctx, DSQ_PROMPT);
	scx_bpf_dsq_insert(p, DSQ_PROMPT, slice, enq_flags);
	if (pinned >= 0) {
		/* The short turn may be over. */
		scx_bpf_kick_cpu(pinned, SCX_KICK_IDLE);
		return;
	}
	if (!kick_idle_cpu(p, -1) && !tctx->handed_over)
		preempt_for_short_turn(p, tctx, now);
}

/* Give this CPU a daemon that waits for a kicked CPU. Return true if there is one. */
static bool prompt_dispatch(void)
{
	return queue_length(DSQ_PROMPT) && scx_bpf_dsq_move_to_local(DSQ_PROMPT, 0);
}

#endif /* __SFS_PROMPT_BPF_H */
