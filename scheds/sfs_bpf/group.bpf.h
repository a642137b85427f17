/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Group: what cpu.weight and cpu.max of a control group ask for. Under sched_ext
 * both mean nothing unless the scheduler sees to them.
 *
 * Weight: FAIR divides a group's share among what is active in it, tasks and
 * groups, level by level, as the kernel's fair class does. Bandwidth: what a group
 * uses, in FILTER or in FAIR, is charged to it and to those above it that have a
 * quota; when one has used it up, its tasks are parked in a queue of its own until
 * its period is over. Not inside the kernel, where they may hold a lock for which others
 * would wait as long, but on their way to user mode, as in the kernel's fair class (6.18).
 */
#ifndef __SFS_GROUP_BPF_H
#define __SFS_GROUP_BPF_H

/* What is in groups farther down than this counts as if it were in the one at this depth: a
 * tenant gets out of no quota by making more of them. */
#define MAX_GROUP_DEPTH	32

/* A walk to the nearest group that is kept goes up so far: all are, but for those that go. */
#define MAX_UNKEPT_DEPTH	4096

/* Where the tasks of a group wait that has used up its quota. */
#define DSQ_PARKED(id)	(0x1000000000000000ULL | (id))

/* Throttled groups looked at by one run of the timer. */
#define REVIEW_BATCH	512

/* A run of the timer goes on for no longer than this: nothing else runs on its CPU
 * meanwhile. */
#define RELEASE_ROUND_NS	(NSEC_PER_MSEC / 2)

/* What nr_active becomes when the group goes: far from 0, whoever counts on. */
#define GROUP_GONE	(-(1LL << 62))

/* A quota, in us, from which on it is none: the kernel says "max" with ~0. */
#define UNLIMITED_US	(1ULL << 44)

/* The timer looks for periods that are over at least this often, in ns, and no more often
 * than after a pause for each so many groups that it has looked at. So it takes a few per cent
 * of one CPU where a look takes 0.2 us, and a third of one where each round is cut off
 * (RELEASE_ROUND_NS). */
#define RELEASE_INTERVAL_NS	(5 * NSEC_PER_MSEC)
#define RELEASE_PAUSE_NS	NSEC_PER_MSEC
#define GROUPS_A_PAUSE		128

/* What a tenant is due, and has had (share.bpf.h). */
struct share {
	s64 tokens_ns;		/* less than nothing: a debt; added to atomically */
	u64 clock;		/* of `sharing`, up to which they have been given; by compare-and-swap */
	u64 filled_at;		/* when that was: written by who has swapped */
	u64 usable_ns;		/* CPU time that its tasks could have used and was not due: the same */
	u64 weight;		/* that `sharing` has of it; 0: it has nothing to run; exchanged */
	s64 runnable;		/* tasks; added to atomically */
	u64 line;		/* where its next turn in FAIR may begin, on FAIR's virtual clock; atomic */
	u64 window;		/* of arrivals: that which `arrivals` is of; racy, as that is */
	u32 arrivals;		/* of it, in that window */
	u32 reports;		/* of it, in that second: the same */
	u64 second;
	/* For whoever asks (docs/tenants.md), added to atomically: CPU time that it has had, and
	 * of that in FILTER or by rank; invocations begun, and times that one with credit was
	 * queued in FAIR for a debt. */
	u64 used_ns;
	u64 filter_ns;
	u64 granted;
	u64 denied;
};

/*
 * A group. active, nr_active and used_ns are added to atomically, counted and
 * throttled exchanged. The others are written by the kernel's cgroup code alone,
 * one call at a time. That a group becomes active and inactive on two CPUs at once
 * may leave its weight counted in its parent, or not, until the next time that it
 * changes: its neighbours get a little less, or more, for so long.
 */
struct group {
	u64 parent;		/* id; 0: this is the root */
	u64 counts_as;		/* id of itself, or of the one at MAX_GROUP_DEPTH above it */
	u64 tenant;		/* whose share it uses: id of itself, or of one above it */
	struct share share;	/* if it is a tenant */
	bool is_tenant;		/* functions have run in it */
	u64 name;		/* of its path, without a number at the end of each; 0: the root's */
	u32 weight;		/* 100 is the default */
	u32 counted;		/* weight that the parent's `active` has of it */
	s64 active;		/* sum of the weights of what is active in it */
	s64 nr_active;		/* how many that are */
	u64 quota_ns;		/* in each period; 0: no limit */
	u64 period_ns;
	u64 burst_ns;		/* quota that may be saved up */
	u64 period_start;
	s64 used_ns;		/* since then, debts of earlier periods included */
	u32 throttled;
	u32 listed;		/* its id is in throttled_groups; exchanged */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SFS_DEFAULT_MAX_GROUPS);
	__type(key, u64);	/* the cgroup's id */
	__type(value, struct group);
} groups SEC(".maps");

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

static volatile u32 nr_limited;		/* groups with a quota */
static volatile u32 limits_generation = 1; /* counts the changes of quotas */
static volatile u64 root_group;		/* id; it has neither weight nor quota */

static struct group *lookup_group(u64 id)
{
	return id ? bpf_map_lookup_elem(&groups, &id) : NULL;
}

/* Return what the nearest group at or above the task group at @address counts as that is kept,
 * or 0. */
__global_func u64 nearest_group(u64 address)
{
	struct task_group *tg = (struct task_group *)address;
	int i;

	bpf_for(i, 0, MAX_UNKEPT_DEPTH) {
		struct group *g;

		if (!tg)
			break;
		g = lookup_group(BPF_CORE_READ(tg, css.cgroup, kn, id));
		if (g)
			return g->counts_as;
		tg = BPF_CORE_READ(tg, parent);
	}
	return 0;
}

/* Return the id of the group whose weight and quota hold for @p; 0: the kernel has no groups
 * for the CPU controller. For one that has gone already, under a task on its way out, that is
 * the nearest above it. */
__global_func u64 group_of(struct task_struct *p __arg_trusted)
{
	struct group *g;
	u64 address = 0;

	if (!bpf_core_field_exists(p->sched_task_group))
		return 0;
	g = lookup_group(only_read(p)->sched_task_group->css.cgroup->kn->id);
	if (g)
		return g->counts_as;
	BPF_CORE_READ_INTO(&address, p, sched_task_group);
	return nearest_group(address);
}

/* Return the same, from the task's note of it if that holds. With @p's run queue locked. */
static u64 noted_group(struct task_struct *p, struct task_ctx *tctx)
{
	u32 generation = groups_generation;
	u64 address;

	if (!bpf_core_field_exists(p->sched_task_group))
		return 0;
	address = (u64)only_read(p)->sched_task_group;
	if (tctx->group_address != address || tctx->groups_generation != generation) {
		tctx->group = group_of(p);
		tctx->group_address = address;
		tctx->groups_generation = generation;
	}
	return tctx->group;
}

/* Return true if @cgrp, or one above it, has a quota. */
static bool is_limited(const struct cgroup *cgrp)
{
	struct group *g = cgrp ? lookup_group(cgroup_id_of(cgrp)) : NULL;
	int i;

	if (g && g->counts_as != cgroup_id_of(cgrp))
		g = lookup_group(g->counts_as);
	bpf_for(i, 0, MAX_GROUP_DEPTH + 1) {
		if (!g || g->quota_ns)
			break;
		g = lookup_group(g->parent);
	}
	return g && g->quota_ns;
}

/* ------------------------------------------------------------------ weight
 * What walks up the hierarchy is verified apart from who calls it.
 */

/* Something of @weight becomes active in group @id. */
__global_func int activate(u64 id, u32 weight)
{
	s64 more = weight;	/* less than nothing where a group's weight has shrunk */
	int i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);

		if (!g || !g->parent)
			return 0;
		__sync_fetch_and_add(&g->active, more);
		if (__sync_fetch_and_add(&g->nr_active, 1))
			return 0;
		more = (s64)g->weight - (s64)__sync_lock_test_and_set(&g->counted, g->weight);
		id = g->parent;
	}
	return 0;
}

/* Something of @weight is no longer active in group @id. */
__global_func int deactivate(u64 id, u32 weight)
{
	int i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);

		if (!g || !g->parent)
			return 0;
		__sync_fetch_and_sub(&g->active, (s64)weight);
		if (__sync_fetch_and_sub(&g->nr_active, 1) != 1)
			return 0;
		weight = __sync_lock_test_and_set(&g->counted, 0);
		id = g->parent;
	}
	return 0;
}

/* @p competes within its group from now on: a function while it is runnable, in whatever
 * queue; what is no function while it is in FAIR, since FILTER is not for it. */
static void join_group(struct task_struct *p, struct task_ctx *tctx)
{
	if (tctx->active_group)
		return;
	tctx->active_group = noted_group(p, tctx);
	tctx->active_weight = p->scx.weight;
	if (tctx->active_group != root_group)
		activate(tctx->active_group, tctx->active_weight);
}

static void leave_group(struct task_ctx *tctx)
{
	if (!tctx->active_group)
		return;
	if (tctx->active_group != root_group)
		deactivate(tctx->active_group, tctx->active_weight);
	tctx->active_group = 0;
}

/* @p is not to run in FAIR now. */
static void fair_leave(const struct task_struct *p, struct task_ctx *tctx)
{
	if (!is_function(p, tctx))
		leave_group(tctx);
}

/* Return what @weight comes to in group @id: itself, if that is the root; its part
 * of the group's weight, and so on, otherwise. */
__global_func u64 weight_in_group(u64 id, u64 weight)
{
	int i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);
		s64 active;

		if (!g || !g->parent)
			break;
		active = g->active;
		if (active > 0)
			weight = weight * g->weight / (u64)active;
		id = g->parent;
	}
	return weight ?: 1;
}

/* The default weight in FAIR. A millionth of it can be told from nothing, which a dozen
 * threads in a group of weight 1 come near, and hours of CPU time times this fit. */
#define FAIR_WEIGHT	(1ULL << 20)

/* Return the weight of @p in FAIR: FAIR_WEIGHT is the default. */
static u64 group_weight(const struct task_struct *p, const struct task_ctx *tctx)
{
	u64 weight = (u64)(p->scx.weight ?: 1) * FAIR_WEIGHT / 100;

	return tctx->active_group == root_group ? weight :
	       weight_in_group(tctx->active_group, weight);
}

/* --------------------------------------------------------------- bandwidth */

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
	if (__sync_val_compare_and_swap(&g->period_start, start,
					start + periods * g->period_ns) != start)
		return;
	back = periods * g->quota_ns;
	most = g->used_ns + (s64)g->burst_ns;
	if (back > most)
		back = most;
	__sync_fetch_and_sub(&g->used_ns, back);
}

/* Have the timer look at group @id. */
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

/* A task's way to user mode, at the end of which it can be held back. */
struct kernel_exit {
	struct bpf_task_work work;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);	/* the task's address */
	__type(value, struct kernel_exit);
} kernel_exits SEC(".maps");

/* As kernels from 7.0 on have it, and as 6.18 does. */
extern int bpf_task_work_schedule_resume(struct task_struct *p, struct bpf_task_work *work,
					 void *map, bpf_task_work_callback_t callback)
	__weak __ksym;
extern int bpf_task_work_schedule_resume_impl(struct task_struct *p, struct bpf_task_work *work,
					      void *map, bpf_task_work_callback_t callback,
					      void *aux) __weak __ksym;

/*
 * The task that runs is about to go to user mode. It gives up its CPU, and stops there if
 * its group still has no quota. A kernel that preempts itself does that in here, inside a
 * read-side section of RCU Tasks Trace, so that whoever unloads a BPF program waits until
 * there is quota again (SFS_WATCHDOG_GUARD_NS at most). If the task loses its CPU before
 * the kick, then the kick is for whoever has it after that, who goes on at once.
 */
static int at_kernel_exit(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	if (!tctx || !throttled_by(tctx->limit))
		return 0;
	tctx->may_be_held = true;
	scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
	return 0;
}

/* Have at_kernel_exit() called by @p. Return 0 if it will be. */
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
		return bpf_task_work_schedule_resume_impl(p, &way->work, &kernel_exits, at_kernel_exit,
							  NULL);
	return -ENOENT;
}

/*
 * @p runs, and its group has no quota. It is held back when it leaves the kernel; where
 * nobody can tell when that is (before 6.18, or for want of memory) wherever it stops next,
 * as the fair class of those kernels does. What has been asked already (-EBUSY) may be on
 * its way out just now.
 */
static void hold_back(struct task_struct *p, struct task_ctx *tctx)
{
	int err = watch_kernel_exit(p);

	tctx->has_kernel_exit = true;
	if (err != -EBUSY)
		tctx->may_be_held = err;
}

/* @p is gone. */
static void forget_kernel_exit(const struct task_struct *p, const struct task_ctx *tctx)
{
	u64 key = (u64)p;

	if (tctx->has_kernel_exit)
		bpf_map_delete_elem(&kernel_exits, &key);
}

/* Return @turn, or what is left of the nearest quota if that is less. */
static u64 within_quota(const struct task_ctx *tctx, u64 turn)
{
	struct group *g = lookup_group(tctx->limit);
	s64 left;

	if (!g || !g->quota_ns)
		return turn;
	left = (s64)g->quota_ns - g->used_ns;
	if (left < (s64)NSEC_PER_MSEC)
		left = NSEC_PER_MSEC;	/* the tick is no finer */
	return (u64)left < turn ? left : turn;
}

/* Park @p until group @id has quota again. */
static void park(struct task_struct *p, struct task_ctx *tctx, u64 id, u64 enq_flags, u64 now)
{
	tctx->queued_at = now;
	scx_bpf_dsq_insert(p, DSQ_PARKED(id), NSEC_PER_MSEC, enq_flags);
}

/* Return true if something in DSQ_PARKED(@id) has waited for so long that the
 * kernel's watchdog must be thought of: a quota may be too small for its tasks. */
static bool parked_too_long(u64 id, u64 now)
{
	struct task_struct *p = first_of(DSQ_PARKED(id));
	struct task_ctx *tctx = p ? try_lookup_task_ctx(p) : NULL;

	return tctx && tctx->queued_at &&
	       time_delta(now, tctx->queued_at) > SFS_WATCHDOG_GUARD_NS;
}

/*
 * Look at one throttled group. Return 0 if its tasks may go on, else how long they wait
 * yet. A task may be parked just after its group has been released, by an enqueue() that
 * had seen it throttled, and there may be more than are released at once: so a group is
 * looked at until nothing is parked.
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

/* Queue the tasks that are parked in group @id where they belong (sfs.bpf.c). */
int release_group(u64 id, u64 until);

/* Look at the throttled groups, each once: those that stay throttled are listed again
 * behind the others. */
static int on_release_timer(void *map, u32 *key, struct release_timer *t)
{
	u64 now = clock_now(), until = now + RELEASE_ROUND_NS;
	u64 next = RELEASE_INTERVAL_NS, when, id, first = 0, pause;
	u32 looked_at = 0;
	int i;

	__sink(looked_at);	/* or the verifier follows each of its values */

	bpf_for(i, 0, REVIEW_BATCH) {
		if (i == REVIEW_BATCH - 1 || clock_now() > until) {
			next = 0;	/* there may be more */
			break;
		}
		if (bpf_map_pop_elem(&throttled_groups, &id))
			break;
		if (id == first) {
			bpf_map_push_elem(&throttled_groups, &id, 0);
			break;
		}
		first = first ?: id;
		looked_at++;
		bpf_rcu_read_lock(); /* to 6.16 this is as sleepable as what set it up */
		when = review_throttled(id, now);
		bpf_rcu_read_unlock();
		if (!when)
			release_group(id, until);
		if (when < next)
			next = when;
	}
	pause = RELEASE_PAUSE_NS * (1 + looked_at / GROUPS_A_PAUSE);
	if (nr_limited || first)
		bpf_timer_start(&t->timer, next < pause ? pause : next, 0);
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

/* -------------------------------------------------- what the kernel tells us */

/* Give group @id the limit of @quota_us in each @period_us. */
static void set_limit(u64 id, struct group *g, u64 period_us, u64 quota_us, u64 burst_us)
{
	bool was_limited = g->quota_ns, limited = period_us && quota_us < UNLIMITED_US;
	u32 zero = 0;
	struct release_timer *t = bpf_map_lookup_elem(&release_timers, &zero);

	g->period_ns = period_us * 1000;
	g->burst_ns = burst_us < UNLIMITED_US ? burst_us * 1000 : 0;
	g->period_start = clock_now();
	g->used_ns = 0;
	g->quota_ns = limited ? quota_us * 1000 : 0;
	if (limited && !was_limited)
		__sync_fetch_and_add(&nr_limited, 1);
	else if (!limited && was_limited)
		__sync_fetch_and_sub(&nr_limited, 1);
	__sync_fetch_and_add(&limits_generation, 1);
	if (t)
		bpf_timer_start(&t->timer, RELEASE_INTERVAL_NS, 0);
}

/* Return the nearest group above @cgrp that is kept; 0: there is none. */
static u64 group_above(struct cgroup *cgrp)
{
	int level = cgrp->level, i;

	bpf_for(i, 1, MAX_UNKEPT_DEPTH) {
		struct cgroup *above;
		u64 id;

		if (i > level)
			break;
		above = bpf_cgroup_ancestor(cgrp, level - i);
		if (!above)
			break;
		id = above->kn->id;
		bpf_cgroup_release(above);
		if (lookup_group(id))
			return id;
	}
	return 0;
}

/* A name of a group has no more bytes: NAME_MAX. */
#define MAX_NAME	255

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Mix the name at @address into @hash, without a number at its end and what is before that:
 * resize-7 and resize-12 are groups of one function.
 */
__global_func u64 mix_group_name(u64 address, u64 hash)
{
	u64 stem = 0;
	bool ends_in_number = false;
	int i;

	__sink(hash);
	bpf_for(i, 0, MAX_NAME) {
		char c = 0;

		if (bpf_probe_read_kernel(&c, 1, (void *)(address + i)) || !c)
			break;
		if (c == '-' || c == '_' || c == '.') {
			stem = i ? hash : 0;
			ends_in_number = false;
		} else if (is_digit(c)) {
			ends_in_number = stem;
		} else {
			stem = 0;
			ends_in_number = false;
		}
		hash = (hash ^ (u8)c) * FNV_PRIME;
	}
	return ends_in_number ? stem : hash;
}

/* Return a number for the path of @cgrp, whose parent has @above. */
static u64 name_group(struct cgroup *cgrp, u64 above)
{
	u64 address = (u64)BPF_CORE_READ(cgrp, kn, name);

	if (!cgrp->level)
		return 0;
	return mix_group_name(address, ((above ?: FNV_BASIS) ^ '/') * FNV_PRIME) ?: 1;
}

/* Return 0, or the error with which the group is not made: nobody would keep its quota. */
static s32 make_group(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct group fresh = { .weight = args->weight ?: 100 }, *g, *parent;
	u64 id = cgrp->kn->id;
	long err;

	if (!cgrp->level)
		root_group = id;
	__sync_fetch_and_add(&groups_generation, 1);
	fresh.counts_as = id;
	fresh.parent = group_above(cgrp);
	parent = lookup_group(fresh.parent);
	if (parent && cgrp->level > MAX_GROUP_DEPTH)
		fresh.counts_as = parent->counts_as;
	fresh.name = name_group(cgrp, parent ? parent->name : 0);
	fresh.tenant = fresh.counts_as;
	if (parent && (parent->is_tenant || parent->tenant != fresh.parent))
		fresh.tenant = parent->tenant;
	err = bpf_map_update_elem(&groups, &id, &fresh, BPF_ANY);
	if (err)
		return err == -E2BIG ? -ENOSPC : err;
	g = lookup_group(id);
	if (g && bpf_core_field_exists(args->bw_period_us) &&
	    args->bw_quota_us < UNLIMITED_US)
		set_limit(id, g, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

/*
 * A group may go while a task of it is still counted: one on its way out leaves its group
 * before it leaves its CPU for good. What its parent has of the group is taken back here,
 * once: whoever finds nr_active at 1 does so, and nobody does any longer. (A task that
 * becomes active in the same moment on another CPU may leave the group's weight in its
 * parent. It would have to be on its way out and lose its CPU just then.)
 */
static void remove_group(u64 id)
{
	struct group *g = lookup_group(id);

	__sync_fetch_and_add(&groups_generation, 1);
	if (!g)
		return;
	if (g->quota_ns)
		__sync_fetch_and_sub(&nr_limited, 1);
	if (__sync_lock_test_and_set(&g->nr_active, GROUP_GONE) > 0)
		deactivate(g->parent, __sync_lock_test_and_set(&g->counted, 0));
	bpf_map_delete_elem(&groups, &id);
}

static void set_group_weight(u64 id, u32 weight)
{
	struct group *g = lookup_group(id);
	struct group *parent;
	u32 counted;

	if (!g)
		return;
	g->weight = weight;
	if (g->nr_active <= 0)
		return;
	counted = __sync_lock_test_and_set(&g->counted, weight);
	parent = lookup_group(g->parent);
	if (parent)
		__sync_fetch_and_add(&parent->active, (s64)weight - (s64)counted);
}

#endif /* __SFS_GROUP_BPF_H */
