/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rank: the learned policy. The loader knows the service times of each function. For each amount
 * of CPU time that an invocation has used, they give the expected cost of its completion: its
 * rank, the Gittins index of the distribution. The loader learns and computes ranks
 * (sfs_policy::learn); this file looks them up.
 *
 * Invocations wait in one queue, ordered by deadline: their arrival on the sharing clock, plus
 * `ageing` times the cost of their completion. So a newer invocation overtakes one that needs
 * more, but only until equal sharing would have given the older one `ageing` times its cost. A
 * new arrival also preempts the CPU that runs the worst rank, if its own rank is better. Where
 * most invocations of a function soon sleep, a new one is ranked by the CPU time until then: so
 * its I/O begins early, and overlaps with the work of others.
 * docs/policy.md has the reasons and figures.
 *
 * Until service times are known, the loader's default table ranks by attained service. If the
 * loader can no longer hand over what it learns, `default_table` is SFS_NO_TABLE: new work then
 * goes to FILTER or FAIR as if this file did not exist, and ranked work that already waits goes
 * before all later work in FILTER.
 */
#ifndef __SFS_RANK_BPF_H
#define __SFS_RANK_BPF_H

/* Longest slice: while a rank does not worsen, nothing else ends the slice. */
#define RANKED_SLICE_NS NSEC_PER_SEC

/* Work that has claimed a CPU goes this far ahead in the queue, in ns of the sharing clock; and if
 * it has been cut short since. */
#define PREEMPTS            (1ULL << 50)
#define GOES_ON             (PREEMPTS - PREEMPTS / 4)

#define DSQ_RANKED          0x30000ULL
#define DSQ_RANKED_CPU(cpu) (0x300000000ULL | (u32)(cpu))

/* Rank tables, shared by similar functions. The loader writes a table before it refers to it. A
 * reader that sees a half-written table ranks one invocation wrongly for one turn. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SFS_RANK_TABLES);
	__type(key, u32);
	__type(value, struct sfs_rank_table);
} rank_tables SEC(".maps");

/* The table of each function. A function without an entry has the default table. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, u64);   /* identity */
	__type(value, u32); /* table */
} function_tables SEC(".maps");

static bool is_ranked(void)
{
	return policy == SFS_POLICY_LEARNED && default_table < SFS_RANK_TABLES;
}

/* Return true if @p waits for its turn in rank order. */
static bool has_rank(const struct task_struct *p, const struct task_ctx *tctx,
		     const struct invocation *inv)
{
	return is_ranked() && inv && inv->state != INV_NONE && is_function(p, tctx);
}

static const struct sfs_rank_table *table_of(const struct invocation *inv)
{
	u64 function = inv->function;
	u32 *known = bpf_map_lookup_elem(&function_tables, &function);
	u32 table = known ? *known : default_table;

	return bpf_map_lookup_elem(&rank_tables, &table);
}

/* Return the CPU time that counts for @inv's rank. If @inv is over and the unit is on its way to
 * the next invocation, this is the CPU time used on that way: a unit may never get there. */
static u64 attained(const struct invocation *inv)
{
	if (inv->open && inv->state == INV_GRACE)
		return 0;
	return inv->open ? inv->used_ns : time_delta(inv->used_ns, inv->ended_ns);
}

/* Sleep pays for a third as much CPU time: a quarter of a CPU is free. */
#define SLEEP_PER_CPU_TIME 3

/* A task that has slept for so much CPU time, and owes no more than this, mostly sleeps: a server
 * has bursts of requests. */
#define OWED_NS PROMPT_BURST_NS

/*
 * A task of @inv's unit wakes up at @now. A server begins no invocation that anything sees, as long
 * as requests reach it over connections that exist, or timers wake it up. If all its CPU time
 * counted for its rank, it would wait behind all functions: a process that took 3 ms of 13 was seen
 * to wait for 0.4 s, and one that starts functions for 0.7 s. So its rank is looked up for the CPU
 * time that it has not slept for as well, and the better one counts. Sleep pays for a third as much
 * CPU time or, if that is more, for what equal sharing would have given the task meanwhile (only
 * the learned policy has that clock). A task that computes for more than that gains little by naps.
 * The first sleep of an invocation pays nothing: functions often wait once. If another thread
 * begins the unit's next invocation meanwhile, used_ns may be less than paid_ns: the task then
 * counts as one that owes much, until its next wake-up.
 */
static void pay_by_sleep(struct task_ctx *tctx, const struct invocation *inv, u64 now)
{
	u64 clock = often.sharing_clock,
	    paid = time_delta(now, tctx->slept_at) / SLEEP_PER_CPU_TIME;
	u64 shared = time_delta(clock, tctx->slept_clock);

	if (tctx->paid_seq != inv->seq) {
		tctx->paid_seq = inv->seq;
		tctx->paid_ns = 0;
		tctx->mostly_sleeps = false;
		return;
	}
	tctx->paid_ns += paid > shared ? paid : shared;
	if (tctx->paid_ns > inv->used_ns)
		tctx->paid_ns = inv->used_ns;
	tctx->paid_clock = clock;
	tctx->mostly_sleeps = tctx->paid_ns >= OWED_NS && inv->used_ns - tctx->paid_ns <= OWED_NS;
}

/* Return the longest slice with which all waiting tasks get one within the guard. */
static u64 longest_slice(void)
{
	u64 share = fair_round_share(queue_length(DSQ_RANKED));

	return share < RANKED_SLICE_NS ? share : RANKED_SLICE_NS;
}

/* Set @tctx's rank if @used of CPU time counts for it, and the slice, @most at most, after which it
 * worsens. */
static void rank_at(struct task_ctx *tctx, const struct invocation *inv,
		    const struct sfs_rank_table *table, u64 used, u64 most)
{
	u32 bucket = bucket_of(used), worse;
	u64 end;

	tctx->rank = bucket;
	tctx->slice = most;
	if (!table || bucket >= SFS_BUCKETS)
		return;
	tctx->rank = table->rank[bucket];
	worse = table->worse[bucket];
	if (!inv->burst_ns && bucket < table->burst && table->burst < tctx->rank)
		tctx->rank = worse = table->burst; /* it soon sleeps: the burst counts */
	if (worse >= SFS_BUCKETS)
		return;
	end = bucket_start(worse);
	if (end < used + NSEC_PER_MSEC)
		end = used + NSEC_PER_MSEC; /* the tick is not finer */
	if (end - used < most)
		tctx->slice = end - used;
}

/* Set @tctx's rank if only @unpaid of its unit's CPU time counts for it, and its slice. A task that
 * mostly sleeps is likely to need as much again as usual. Once it has had that, it is expected to
 * need as much again as since the wake-up. */
static void rank_at_unpaid(struct task_ctx *tctx, const struct invocation *inv,
			   const struct sfs_rank_table *table, u64 unpaid, u64 most)
{
	u64 usual = tctx->usual_ns, used = tctx->turn_used_ns, left;

	if (!tctx->mostly_sleeps) {
		rank_at(tctx, inv, table, unpaid, most);
		return;
	}
	left = used < usual ? usual - used : used;
	tctx->rank = bucket_of(left);
	if (left < NSEC_PER_MSEC)
		left = NSEC_PER_MSEC;
	tctx->slice = left < most ? left : most;
}

/* Set @tctx's rank, and the slice after which it worsens: the better one of all of the unit's CPU
 * time, and of what it has not slept for. Return the first of them. */
__global_func u32 look_up_rank(struct task_ctx *tctx __arg_nonnull,
			       const struct invocation *inv __arg_nonnull)
{
	const struct sfs_rank_table *table = table_of(inv);
	u64 used = attained(inv), most = longest_slice(), slice;
	u32 rank;

	if (inv->service_ns) { /* a hint gives the whole service time */
		tctx->rank = bucket_of(inv->service_ns > used ? inv->service_ns - used : 0);
		tctx->slice = most;
		return tctx->rank;
	}
	rank_at(tctx, inv, table, used, most);
	rank = tctx->rank;
	slice = tctx->slice;
	if (!tctx->paid_ns || tctx->paid_seq != inv->seq)
		return rank;
	rank_at_unpaid(tctx, inv, table, time_delta(inv->used_ns, tctx->paid_ns), most);
	if (tctx->rank >= rank) {
		tctx->rank = rank;
		tctx->slice = slice;
	}
	return rank;
}

/* Return how far ahead of the sharing clock a queue key may be: as far as the clock advances
 * within twice the guard at the present load. Beyond that the order is by arrival, which keeps
 * waits clear of the kernel's watchdog. */
static u64 farthest_key(void)
{
	s64 present = often.present;

	return 2 * SFS_WATCHDOG_GUARD_NS * nr_function_cpus / (present > 0 ? present : 1);
}

/* Return the time from an arrival to the deadline of work of rank @rank, in ns of the sharing
 * clock. */
static u64 aged_cost(u32 rank)
{
	return ageing_tenths * bucket_start(rank) / 10;
}

/*
 * A task that has claimed a CPU keeps it for the slice of that claim, in CPU time of its own. In
 * between it may be cut short: by a short turn, by a real-time task, or by a kick that was meant for
 * a task that another CPU has taken. Then it goes on before all work but new claims. By its deadline
 * it would wait for what it has preempted, which is often older and, if overdue, runs to its end:
 * 0.85 s were seen.
 */
static bool has_claimed(const struct task_ctx *tctx)
{
	return time_before(tctx->charged_ns, tctx->claim_end);
}

static void end_claim(struct task_ctx *tctx)
{
	tctx->claim_end = 0;
	give_back(tctx);
}

/* The task stops while it could run. If an arrival has claimed its CPU, it goes by its deadline,
 * unless its own turn is paid for (claim.bpf.h). */
static void note_cut_short(struct task_ctx *tctx)
{
	if (!has_claimed(tctx) || (tctx->outranked && !tctx->taken_ns))
		end_claim(tctx);
}

/* Give the task what is left of its claim. */
static void keep_claim(struct task_ctx *tctx, const struct invocation *inv)
{
	u64 left = tctx->claim_end - tctx->charged_ns;

	tctx->queue_key -= GOES_ON;
	if (!tctx->taken_ns && tctx->slice <= left)
		return;
	tctx->slice = left;
	tctx->slice_end = inv->used_ns + left;
}

/*
 * Update a task's rank, slice and deadline. An overdue task that has had the longest slice goes
 * behind the other overdue tasks, so that they take turns.
 */
static void update_rank(struct task_ctx *tctx, const struct invocation *inv)
{
	bool turned = tctx->ranked_used_ns + NSEC_PER_MSEC >= longest_slice();
	u64 now = often.sharing_clock, deadline;
	u32 rank = look_up_rank(tctx, inv);

	tctx->slice_end = inv->used_ns + tctx->slice;
	deadline = (inv->open ? inv->born : now) + aged_cost(rank);
	if (tctx->rank < rank && time_before(tctx->paid_clock + aged_cost(tctx->rank), deadline))
		deadline = tctx->paid_clock + aged_cost(tctx->rank);
	if (turned) {
		tctx->ranked_used_ns = 0;
		if (time_before(deadline, now))
			deadline = now;
	}
	tctx->deadline = deadline;
	tctx->queue_key = deadline;
	if (time_after(deadline, now + farthest_key()))
		tctx->queue_key = now + farthest_key();
	if (has_claimed(tctx))
		keep_claim(tctx, inv);
}

/* ------------------------------------------------------------------- queues */

/* Claim a CPU for @p, which arrives at @now. If it takes it from overdue work, its slice is what is
 * paid for, also if its rank worsens before. Return the CPU, or -1. */
static s32 claim_cpu(const struct task_struct *p, struct task_ctx *tctx,
		     const struct invocation *inv, s32 pinned, u64 now)
{
	u64 turn = overtaking_turn(tctx->rank);
	s32 cpu = claim_cpu_for(p, tctx->rank, pinned, turn, now);

	if (cpu < 0)
		return cpu;
	if (cpu & OVERTAKES) {
		tctx->taken_ns = tctx->slice = turn;
		tctx->slice_end = inv->used_ns + turn;
	}
	tctx->claim_end = tctx->charged_ns + tctx->slice;
	tctx->queue_key -= PREEMPTS;
	return cpu & ~OVERTAKES;
}

/*
 * Queue @p by its deadline. If it has just arrived (@arrives), it may preempt: it then goes
 * before all waiting tasks, and the CPU that it has claimed is kicked to look at the queue.
 * (Inserted into that CPU's local queue instead, with SCX_ENQ_PREEMPT, it was seen to wait for
 * 100 ms on 6.18.) If another CPU takes it first, the claimed CPU keeps its task. A CPU with a
 * short turn is not kicked: what it was to resume gives way (gives_way()). A task displaced by a
 * real-time task goes by its deadline, unless it has claimed its CPU: it may have run for long, and
 * short arrivals must not wait for it.
 */
static void ranked_enqueue(struct task_struct *p, struct task_ctx *tctx,
			   const struct invocation *inv, bool arrives, u64 enq_flags, u64 now)
{
	s32 pinned = pinned_cpu(p), cpu = -1;
	struct cpu_ctx *cctx;
	u64 slice;

	if (arrives)
		end_claim(tctx); /* it was taken out of the queue */
	update_rank(tctx, inv);
	if (arrives)
		cpu = claim_cpu(p, tctx, inv, pinned, now);
	slice = within_quota(tctx, tctx->slice);
	tctx->turn = TURN_RANKED;
	tctx->queued_at = now;
	if (is_displaced(tctx, enq_flags))
		show_interrupted(p, tctx);
	save_vtime(p, tctx);
	note_pinned(pinned);
	note_waiting(tctx, pinned < 0 ? DSQ_RANKED : DSQ_RANKED_CPU(pinned));
	scx_bpf_dsq_insert_vtime(p, pinned < 0 ? DSQ_RANKED : DSQ_RANKED_CPU(pinned), slice,
				 tctx->queue_key, enq_flags);
	if (cpu < 0) {
		kick_idle_cpu(p, pinned);
		return;
	}
	count(SFS_PREEMPTIONS);
	cctx = lookup_cpu_ctx(cpu);
	if (!cctx || !cctx->is_short_turn)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Return the queue whose head has the earlier deadline on @cpu, and that deadline in @deadline; 0
 * if both are empty. */
static u64 ranked_first_queue(s32 cpu, u64 *deadline)
{
	struct task_struct *shared = NULL, *pinned = NULL;

	if (queue_length(DSQ_RANKED))
		shared = first_of(DSQ_RANKED);
	if (own_queue_length(cpu, DSQ_RANKED_CPU(cpu)))
		pinned = first_of(DSQ_RANKED_CPU(cpu));
	if (pinned && (!shared || time_before(pinned->scx.dsq_vtime, shared->scx.dsq_vtime))) {
		*deadline = pinned->scx.dsq_vtime;
		return DSQ_RANKED_CPU(cpu);
	}
	if (!shared)
		return 0;
	*deadline = shared->scx.dsq_vtime;
	return DSQ_RANKED;
}

/*
 * Return true if a task that has claimed a CPU, @cpu or another, waits in rank order before @key.
 * Other keys are at most days behind the clock.
 */
__global_func bool claimer_waiting(s32 cpu, u64 key)
{
	u64 first;

	return ranked_first_queue(cpu, &first) && time_before(first, key) &&
	       time_before(first + PREEMPTS / 2, often.sharing_clock);
}

/* Return true if @cpu can certainly run the first task in rank order. */
__global_func bool ranked_head_waiting(s32 cpu)
{
	return own_queue_length(cpu, DSQ_RANKED_CPU(cpu)) || head_waits_for(DSQ_RANKED, cpu);
}

/* Give @cpu the task with the earliest deadline that it may run. Return true if
 * there is one. */
__global_func bool ranked_dispatch(s32 cpu)
{
	u64 deadline, first;

	if (policy != SFS_POLICY_LEARNED)
		return false;
	first = ranked_first_queue(cpu, &deadline);
	if (!first)
		return false;
	return scx_bpf_dsq_move_to_local(first, 0) ||
	       scx_bpf_dsq_move_to_local(first == DSQ_RANKED ? DSQ_RANKED_CPU(cpu) : DSQ_RANKED, 0);
}

/*
 * Give @cpu ranked work that has waited since before ranks were given up. It is older than all
 * work that waits in FILTER, and no new work joins it. Return true if there is some.
 */
static bool ranked_dispatch_rest(s32 cpu)
{
	return policy == SFS_POLICY_LEARNED && !is_ranked() && ranked_dispatch(cpu);
}

/* Return true if @tctx's task, at the end of its slice, still comes first. */
static bool ranked_keeps_cpu(struct task_ctx *tctx, const struct invocation *inv, s32 cpu)
{
	u64 deadline;

	update_rank(tctx, inv);
	return !ranked_first_queue(cpu, &deadline) || !time_before(deadline, tctx->queue_key);
}

/* Return true if the slice that @tctx's task got by rank is used up. */
static bool ranked_slice_is_over(const struct task_ctx *tctx, const struct invocation *inv)
{
	return tctx->turn == TURN_RANKED && (!inv || inv->used_ns >= tctx->slice_end);
}

/* ----------------------------------------------------------------- presence */

static void join_present(struct task_ctx *tctx, u64 provisional)
{
	if (begin_count(&tctx->present, 1 | provisional))
		__sync_fetch_and_add(&often.present, 1);
}

static void leave_present(struct task_ctx *tctx)
{
	if (end_count(&tctx->present))
		__sync_fetch_and_sub(&often.present, 1);
}

/* A present task has used @delta of CPU time: advance the clock by the equal part of each present
 * task. */
static void advance_sharing_clock(const struct task_ctx *tctx, u64 delta)
{
	s64 present = often.present;

	if (tctx->present)
		__sync_fetch_and_add(&often.sharing_clock, delta / (present > 0 ? present : 1));
}

/* Return true if functions wait for @cpu, in any queue. */
__global_func bool functions_wait(s32 cpu)
{
	return filter_waiting(cpu) || queue_length(DSQ_FAIR) ||
	       own_queue_length(cpu, DSQ_FAIR_CPU(cpu)) ||
	       (policy == SFS_POLICY_LEARNED &&
		(queue_length(DSQ_RANKED) || own_queue_length(cpu, DSQ_RANKED_CPU(cpu))));
}

#endif /* __SFS_RANK_BPF_H */
