/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Claim: what an arrival may preempt by rank. Each CPU shows the rank and the deadline of what it
 * runs. An arrival that finds no free CPU claims the one with the worst rank, if its own rank is
 * better. Work past its deadline, overdue, is left alone: this bounds the ageing (rank.bpf.h). Only
 * a small budget of CPU time may be taken from it.
 */
#ifndef __SFS_CLAIM_BPF_H
#define __SFS_CLAIM_BPF_H

#define RANK_NONE 0xffffU /* the CPU runs no work that rank may preempt */

/*
 * The ranked work that each CPU runs. Written by that CPU. Another CPU that wants to preempt it
 * claims it by exchanging the rank for RANK_NONE. A stale entry costs a useless preemption, or
 * one that comes a tick late.
 */
struct running {
	u64 deadline;
	u32 rank;
};
static volatile struct running running[SFS_MAX_CPUS];

static void set_running(s32 cpu, u32 rank, u64 deadline)
{
	volatile struct running *r = &running[cpu & (SFS_MAX_CPUS - 1)];

	r->deadline = deadline;
	r->rank = rank;
}

/* Show the task, if it has a rank, as what @cpu runs. A turn that was taken from overdue work counts
 * as overdue: an arrival that preempts it must pay too, or one after the other would take such
 * turns for nothing. */
static void show_ranked(s32 cpu, const struct task_ctx *tctx)
{
	if (tctx->turn == TURN_RANKED)
		set_running(cpu, tctx->rank, tctx->taken_ns ? 0 : tctx->deadline);
}

/* @p has been interrupted, and its CPU resumes it next. So an arrival may claim that CPU as if @p
 * ran: on one CPU the process that starts an invocation always runs at that moment. */
static void show_interrupted(const struct task_struct *p, const struct task_ctx *tctx)
{
	show_ranked(scx_bpf_task_cpu(p), tctx);
}

/* Claim @cpu if it runs work of rank @rank that may be preempted. */
static bool claim_rank(u32 cpu, u32 rank)
{
	volatile struct running *r = &running[cpu & (SFS_MAX_CPUS - 1)];

	return __sync_val_compare_and_swap(&r->rank, rank, RANK_NONE) == rank;
}

/* Return true if @cpu was claimed from the ranked work that it ran. */
static bool is_claimed(u32 cpu)
{
	return running[cpu & (SFS_MAX_CPUS - 1)].rank == RANK_NONE;
}

/*
 * Work past its deadline, overdue, is not preempted: this bounds the ageing. But where all CPUs run
 * such work, short arrivals would wait for all that is left of it: 0.1 to 0.2 s were seen. So they
 * may take a part of all CPUs from it, one of SFS_OVERTAKE_PART, and SFS_OVERTAKE_NS of that in
 * advance. Overdue work always has the rest.
 */

/* A claim's CPU runs overdue work. */
#define OVERTAKES 0x10000

/* By this time that part of all CPUs will have paid for what was taken from overdue work. */
static volatile u64 overtaken_until;

/* Return the turn that work of rank @rank may take from overdue work: twice the cost of its
 * completion. The least is for functions of which nothing is known. */
static u64 overtaking_turn(u32 rank)
{
	u64 turn = 2 * bucket_start(rank);

	if (turn < SFS_OVERTAKE_LEAST_NS)
		return SFS_OVERTAKE_LEAST_NS;
	return turn < SFS_OVERTAKE_MOST_NS ? turn : SFS_OVERTAKE_MOST_NS;
}

/* Return how long that part of all CPUs pays for @turn. If a CPU goes offline meanwhile, more goes
 * back than was paid, once. */
static u64 taken_time(u64 turn)
{
	return turn * SFS_OVERTAKE_PART / (nr_function_cpus ?: 1);
}

/* Return true if @turn may be taken from overdue work at @now. The whole turn is paid for at once.
 * If another CPU asks at the same time, one of them gets nothing. */
static bool may_overtake(u64 turn, u64 now)
{
	u64 before = overtaken_until, from = time_before(before, now) ? now : before,
	    until = from + taken_time(turn);

	return !time_after(until, now + SFS_OVERTAKE_NS) &&
	       __sync_val_compare_and_swap(&overtaken_until, before, until) == before;
}

/* A task's turn is over: what it has taken from overdue work and not used goes back. */
static void give_back(struct task_ctx *tctx)
{
	u64 taken = tctx->taken_ns;

	if (!taken)
		return;
	tctx->taken_ns = 0;
	__sync_fetch_and_sub(&overtaken_until, taken_time(taken));
}

/* The CPUs that run the worst ranks among work that is due, and among overdue work; -1: none
 * that is worse than that of the arrival. */
struct worst {
	s32 due_cpu, overdue_cpu;
	u32 due, overdue;
};

/* Put @cpu in @worst if it runs a worse rank. */
static void compare_rank(struct worst *worst, u32 cpu, u64 clock)
{
	volatile struct running *r = &running[cpu & (SFS_MAX_CPUS - 1)];
	u32 rank = r->rank;

	if (rank == RANK_NONE)
		return;
	if (!time_before(clock, r->deadline)) {
		if (rank > worst->overdue) {
			worst->overdue = rank;
			worst->overdue_cpu = cpu;
		}
	} else if (rank > worst->due) {
		worst->due = rank;
		worst->due_cpu = cpu;
	}
}

/* Claim the worst CPU for an arrival with a turn of @turn at @now; with OVERTAKES if its work is
 * overdue. If that claim fails because the CPU has just switched, the budget has paid for nothing.
 * Return -1 if there is no CPU. */
static s32 claim_worst(const struct worst *worst, u64 turn, u64 now)
{
	if (worst->due_cpu >= 0)
		return claim_rank(worst->due_cpu, worst->due) ? worst->due_cpu : -1;
	if (worst->overdue_cpu < 0 || !may_overtake(turn, now))
		return -1;
	return claim_rank(worst->overdue_cpu, worst->overdue) ? worst->overdue_cpu | OVERTAKES : -1;
}

/*
 * Among the CPUs that @p may use, claim the one that runs the worst rank, if worse than @than: one
 * whose work is due or, within the budget for @turn at @now, overdue. Return it as claim_worst().
 * This looks at every CPU: two words each, with few readers, written at switches only.
 */
__global_func s32 claim_worst_cpu(const struct task_struct *p __arg_trusted, u32 than, u64 turn,
				  u64 now)
{
	struct worst worst = { .due_cpu = -1, .overdue_cpu = -1, .due = than, .overdue = than };
	u64 clock = often.sharing_clock;
	u32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		if (running[cpu & (SFS_MAX_CPUS - 1)].rank > than &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			compare_rank(&worst, cpu, clock);
	}
	return claim_worst(&worst, turn, now);
}

/* Claim a CPU that @p, new or just woken up, may preempt at @now, for a turn of @turn if its work
 * is overdue. Return it as claim_worst(). */
static s32 claim_cpu_for(const struct task_struct *p, u32 rank, s32 pinned, u64 turn, u64 now)
{
	struct worst worst = { .due_cpu = -1, .overdue_cpu = -1, .due = rank, .overdue = rank };

	if (pinned < 0) {
		s32 cpu = claim_any_fair_cpu(p, false, 0);

		return cpu >= 0 ? cpu : claim_worst_cpu(p, rank, turn, now);
	}
	if (claim_fair_cpu(pinned))
		return pinned;
	compare_rank(&worst, pinned, often.sharing_clock);
	return claim_worst(&worst, turn, now);
}

#endif /* __SFS_CLAIM_BPF_H */
