/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quota: cpu.max of control groups. The CPU time that a group uses, in FILTER or in FAIR, is
 * charged to it and to each group above it that has a quota. Once a group has used up its
 * quota, its tasks are parked in a queue of that group until its period is over. They are not
 * parked inside the kernel, where they may hold a lock that others wait for. They are parked
 * on their return to user mode, as in the kernel's fair class (6.18).
 */
#ifndef __SFS_QUOTA_BPF_H
#define __SFS_QUOTA_BPF_H

/* Queue for the tasks of a group that has used up its quota. */
#define DSQ_PARKED(id) (0x1000000000000000ULL | (id))

/* Throttled groups that one run of the timer looks at. */
#define REVIEW_BATCH 512

/* Longest run of the timer, in ns. Nothing else runs on its CPU meanwhile. */
#define RELEASE_ROUND_NS (NSEC_PER_MSEC / 2)

/* The timer looks for finished periods at least every RELEASE_INTERVAL_NS. It pauses between
 * runs for RELEASE_PAUSE_NS, and as long again for each GROUPS_A_PAUSE groups that it has
 * looked at. So it uses a few per cent of one CPU if a look takes 0.2 us, and a third of one
 * CPU if each run is cut off (RELEASE_ROUND_NS). */
#define RELEASE_INTERVAL_NS (5 * NSEC_PER_MSEC)
#define RELEASE_PAUSE_NS    NSEC_PER_MSEC
#define GROUPS_A_PAUSE      128

/* Ids of groups that are throttled. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, SFS_DEFAULT_MAX_GROUPS);
	__type(value, u64);
} throttled_groups SEC(".maps");

struct release_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct release_timer);
} release_timers SEC(".maps");

/* Find the nearest group at or above @p's that has a quota. */
static void update_limit(struct task_struct *p, struct task_ctx *tctx)
{
	u32 generation = limits_generation;
	u64 id;
	int i;

	if (!nr_limited) {
		tctx->limit = 0;
		return;
	}
	id = noted_group(p, tctx);
	if (id == tctx->limit_group && generation == tctx->limit_generation)
		return;
	tctx->limit_group = id;
	tctx->limit_generation = generation;
	tctx->limit = 0;
	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);

		if (!g)
			return;
		if (g->quota_ns) {
			tctx->limit = id;
			return;
		}
		id = g->parent;
	}
}

/* Give @g the quota of the periods that have begun since it last got one. */
static void replenish(struct group *g, u64 now)
{
	u64 start = g->period_start, periods;
	s64 back, most;

	if (!g->period_ns || time_delta(now, start) < g->period_ns)
		return;
	periods = time_delta(now, start) / g->period_ns;
	if (__sync_val_compare_and_swap(&g->period_start, start, start + periods * g->period_ns) !=
	    start)
		return;
	back = periods * g->quota_ns;
	most = g->used_ns + (s64)g->burst_ns;
	if (back > most)
		back = most;
	__sync_fetch_and_sub(&g->used_ns, back);
}

/* Make the timer look at group @id. */
static void list_throttled(struct group *g, u64 id)
{
	if (!__sync_lock_test_and_set(&g->listed, 1))
		bpf_map_push_elem(&throttled_groups, &id, 0);
}

/* Charge @delta to the groups with a quota, from @id upwards. */
__global_func int charge_groups(u64 id, u64 delta, u64 now)
{
	int i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);
		s64 used;

		if (!g)
			return 0;
		if (g->quota_ns) {
			replenish(g, now);
			used = __sync_fetch_and_add(&g->used_ns, (s64)delta) + (s64)delta;
			if (used >= (s64)g->quota_ns &&
			    !__sync_lock_test_and_set(&g->throttled, 1)) {
				count(SFS_THROTTLED);
				list_throttled(g, id);
			}
		}
		id = g->parent;
	}
	return 0;
}

/* Return the id of the nearest group, from @id upwards, that has used up its quota,
 * or 0. */
__global_func u64 throttled_by(u64 id)
{
	int i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);

		if (!g)
			return 0;
		if (g->throttled)
			return id;
		id = g->parent;
	}
	return 0;
}

/* A task's return to user mode, at the end of which it can be held back. */
struct kernel_exit {
	struct bpf_task_work work;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64); /* the task's address */
	__type(value, struct kernel_exit);
} kernel_exits SEC(".maps");

/* The first exists in kernels from 7.0 on, the second in 6.18. */
extern int bpf_task_work_schedule_resume(struct task_struct *p, struct bpf_task_work *work,
					 void *map,
					 bpf_task_work_callback_t callback) __weak __ksym;
extern int bpf_task_work_schedule_resume_impl(struct task_struct *p, struct bpf_task_work *work,
					      void *map, bpf_task_work_callback_t callback,
					      void *aux) __weak __ksym;
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/*
 * The current task is about to return to user mode. It gives up its CPU, and stops there if
 * its group still has no quota. A preemptible kernel switches away in this callback, inside a
 * read-side section of RCU Tasks Trace. Unloading a BPF program then waits until there is
 * quota again (SFS_WATCHDOG_GUARD_NS at most). The kick is a read-side section of RCU itself:
 * it disables preemption, or the task would be held in it, and no grace period would end. If
 * the task loses its CPU before the kick, the kick hits the CPU's next task, which continues
 * at once.
 */
static int at_kernel_exit(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	if (!tctx || !throttled_by(tctx->limit))
		return 0;
	tctx->exits_at = clock_now();
	tctx->may_be_held = true;
	bpf_preempt_disable();
	scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
	bpf_preempt_enable();
	return 0;
}

/* Make @p call at_kernel_exit() on its return to user mode. Return 0 if it will. */
static int watch_kernel_exit(struct task_struct *p)
{
	u64 key = (u64)p;
	struct kernel_exit fresh = {}, *way = bpf_map_lookup_elem(&kernel_exits, &key);

	if (!way) {
		bpf_map_update_elem(&kernel_exits, &key, &fresh, BPF_NOEXIST);
		way = bpf_map_lookup_elem(&kernel_exits, &key);
	}
	if (!way)
		return -ENOMEM;
	if (bpf_ksym_exists(bpf_task_work_schedule_resume))
		return bpf_task_work_schedule_resume(p, &way->work, &kernel_exits, at_kernel_exit);
	if (bpf_ksym_exists(bpf_task_work_schedule_resume_impl))
		return bpf_task_work_schedule_resume_impl(p, &way->work, &kernel_exits,
							  at_kernel_exit, NULL);
	return -ENOENT;
}

/*
 * @p is running, and its group has no quota. It is held back when it leaves the kernel. If
 * nothing can report that moment (before 6.18, or without memory), it is held back wherever
 * it stops next, as in the fair class of those kernels. If a callback is pending already
 * (-EBUSY), @p may be leaving the kernel right now.
 */
static void hold_back(struct task_struct *p, struct task_ctx *tctx)
{
	int err = watch_kernel_exit(p);

	tctx->has_kernel_exit = true;
	if (err == -EBUSY)
		return;
	tctx->may_be_held = err;
	tctx->exits_at = 0;
}

/* The kick of at_kernel_exit() takes the CPU within this time, even if a hypervisor takes the CPU
 * away in between. */
#define EXIT_KICK_NS NSEC_PER_MSEC

/*
 * @p leaves its CPU. If it is going to sleep, or the kick is long past, it is in the kernel, not
 * about to leave it: in bypass mode (while the machine is suspended) the kernel lets tasks run that
 * have no quota, and a kick stops none of them.
 */
static void note_exit_is_over(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (tctx->exits_at && (p->__state || time_delta(now, tctx->exits_at) > EXIT_KICK_NS))
		tctx->may_be_held = false;
}

/* @p is gone. */
static void forget_kernel_exit(const struct task_struct *p, const struct task_ctx *tctx)
{
	u64 key = (u64)p;

	if (tctx->has_kernel_exit)
		bpf_map_delete_elem(&kernel_exits, &key);
}

/* Return @turn, or the rest of the nearest quota if that is less. */
static u64 within_quota(const struct task_ctx *tctx, u64 turn)
{
	struct group *g = lookup_group(tctx->limit);
	s64 left;

	if (!g || !g->quota_ns)
		return turn;
	left = (s64)g->quota_ns - g->used_ns;
	if (left < (s64)NSEC_PER_MSEC)
		left = NSEC_PER_MSEC; /* the tick is no finer */
	return (u64)left < turn ? left : turn;
}

/* Park @p until group @id has quota again. */
static void park(struct task_struct *p, struct task_ctx *tctx, u64 id, u64 enq_flags, u64 now)
{
	tctx->queued_at = now;
	scx_bpf_dsq_insert(p, DSQ_PARKED(id), NSEC_PER_MSEC, enq_flags);
}

/* Return true if the first task in DSQ_PARKED(@id) has waited so long that the kernel's
 * watchdog becomes a danger: a quota may be too small for its tasks. */
static bool parked_too_long(u64 id, u64 now)
{
	struct task_struct *p = first_of(DSQ_PARKED(id));
	struct task_ctx *tctx = p ? try_lookup_task_ctx(p) : NULL;

	return tctx && tctx->queued_at && time_delta(now, tctx->queued_at) > SFS_WATCHDOG_GUARD_NS;
}

/*
 * Look at one throttled group. Return 0 if its tasks may continue, else their remaining wait in
 * ns. An enqueue() that saw the group throttled may park a task just after the group's
 * release, and one release may not move all tasks. So the timer looks at a group until
 * nothing is parked in it.
 */
static u64 review_throttled(u64 id, u64 now)
{
	struct group *g = lookup_group(id);
	u64 left;

	if (!g)
		return RELEASE_INTERVAL_NS;
	__sync_lock_test_and_set(&g->listed, 0);
	if (!g->throttled && scx_bpf_dsq_nr_queued(DSQ_PARKED(id)) <= 0)
		return RELEASE_INTERVAL_NS;
	list_throttled(g, id);
	replenish(g, now);
	if (!g->throttled || !g->quota_ns || g->used_ns < (s64)g->quota_ns ||
	    parked_too_long(id, now)) {
		__sync_lock_test_and_set(&g->throttled, 0);
		return 0;
	}
	left = time_delta(g->period_start + g->period_ns, now);
	return left < RELEASE_PAUSE_NS ? RELEASE_PAUSE_NS : left;
}

/* Move the tasks parked in group @id to the queues where they belong (sfs.bpf.c). */
int release_group(u64 id, u64 until);

/*
 * Start the timer that releases throttled groups, unless it is set. Another start would put off
 * its next run, so frequent changes of quotas would keep all throttled groups waiting.
 */
static void start_release_timer(void)
{
	u32 zero = 0;
	struct release_timer *t = bpf_map_lookup_elem(&release_timers, &zero);

	if (t && !__sync_lock_test_and_set(&release_is_set, 1))
		bpf_timer_start(&t->timer, RELEASE_INTERVAL_NS, 0);
}

/*
 * Start the timer if it has stopped, and a group is listed nevertheless: a charge may see the
 * last quota just before it goes, and list the group after the last run. Called by the guard.
 */
static void release_left_over(void)
{
	u64 id;

	if (!bpf_map_peek_elem(&throttled_groups, &id))
		start_release_timer();
}

/* Look at each throttled group once. Those that stay throttled are listed again behind the
 * others. */
static int on_release_timer(void *map, u32 *key, struct release_timer *t)
{
	u64 now = clock_now(), until = now + RELEASE_ROUND_NS;
	u64 next = RELEASE_INTERVAL_NS, when, id, first = 0, pause;
	bool nothing_listed = false;
	u32 looked_at = 0;
	int i, err;

	__sink(looked_at); /* otherwise the verifier follows each of its values */

	bpf_for(i, 0, REVIEW_BATCH) {
		if (i == REVIEW_BATCH - 1 || clock_now() > until) {
			next = 0; /* there may be more */
			break;
		}
		err = bpf_map_pop_elem(&throttled_groups, &id);
		if (err) {
			nothing_listed = !first && err == -ENOENT;
			break;
		}
		if (id == first) {
			bpf_map_push_elem(&throttled_groups, &id, 0);
			break;
		}
		first = first ?: id;
		looked_at++;
		bpf_rcu_read_lock(); /* up to 6.16, as sleepable as the program that set it up */
		when = review_throttled(id, now);
		bpf_rcu_read_unlock();
		if (!when)
			release_group(id, until);
		if (when < next)
			next = when;
	}
	pause = RELEASE_PAUSE_NS * (1 + looked_at / GROUPS_A_PAUSE);
	/* Not "no group was looked at": if this CPU is held up at the start (by an interrupt or
	 * a hypervisor), the run ends before its first group. */
	if (nr_limited || !nothing_listed) {
		bpf_timer_start(&t->timer, next < pause ? pause : next, 0);
		return 0;
	}
	__sync_lock_test_and_set(&release_is_set, 0);
	if (nr_limited) /* a quota is new, and has relied on this run */
		start_release_timer();
	return 0;
}

static s32 init_release_timer(void)
{
	u32 zero = 0;
	struct release_timer *t = bpf_map_lookup_elem(&release_timers, &zero);

	if (!t)
		return -ENOENT;
	bpf_timer_init(&t->timer, &release_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, on_release_timer);
}

#endif /* __SFS_QUOTA_BPF_H */
