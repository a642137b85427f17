/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Group: the control groups that tasks are in, and their weights. Under sched_ext, cpu.weight
 * and cpu.max have no effect unless the scheduler implements them. FAIR divides a group's share
 * among its active tasks and groups, level by level, like the kernel's fair class.
 * quota.bpf.h implements cpu.max; hierarchy.bpf.h makes, changes and removes groups.
 */
#ifndef __SFS_GROUP_BPF_H
#define __SFS_GROUP_BPF_H

/* Tasks in deeper groups count as tasks of the ancestor at this depth, so that a tenant
 * cannot escape a quota by nesting groups. */
#define MAX_GROUP_DEPTH 32

/* Limit of the walk up to the nearest group in `groups`. Only groups being removed are not
 * in it. */
#define MAX_UNKEPT_DEPTH 4096

/* nr_active of a removed group: so far from 0 that later additions do not reach it. */
#define GROUP_GONE (-(1LL << 62))

/* CPU time that a tenant is due and has used (share.bpf.h). */
struct share {
	s64 tokens_ns; /* negative: a debt; atomic addition */
	u64 clock;     /* sharing.clock up to which tokens were given; compare-and-swap */
	u64 filled_at; /* time of that; written by the CPU that won the swap */
	u64 usable_ns; /* CPU time that its tasks could use but was not due; likewise */
	u64 weight;    /* its part of sharing.weight; 0: nothing runnable; exchanged */
	s64 runnable;  /* tasks; atomic addition */
	u64 line;      /* where its next turn in FAIR may begin, in FAIR's vtime; atomic */
	u64 window;    /* the window of arrivals that `arrivals` counts; both are racy */
	u32 arrivals;  /* its arrivals in that window */
	u32 reports;   /* its reports in `second`; both are racy */
	u64 second;
	/* For statistics (docs/tenants.md), atomic addition: CPU time used, and the part of it in
	 * FILTER or by rank; invocations begun, and how often one with credit was queued in FAIR
	 * because of a debt. */
	u64 used_ns;
	u64 filter_ns;
	u64 granted;
	u64 denied;
};

/*
 * A group. active, nr_active and used_ns change by atomic addition, counted and
 * throttled by atomic exchange. Only the kernel's cgroup code writes the other
 * fields, one call at a time. See count_group() about `counted`.
 */
struct group {
	u64 parent;         /* id; 0: this is the root */
	u64 counts_as;      /* own id, or that of the ancestor at MAX_GROUP_DEPTH */
	u64 tenant;         /* the group whose share it uses: own id, or an ancestor's */
	struct share share; /* if it is a tenant */
	bool is_tenant;     /* functions have run in it */
	u64 name;           /* number for its path, each part without a final number; 0: root */
	u32 weight;         /* 100 is the default */
	u32 counted;        /* its weight as counted in the parent's `active` */
	s64 active;         /* sum of the weights of its active tasks and groups */
	s64 nr_active;      /* number of active tasks and groups */
	u64 quota_ns;       /* in each period; 0: no limit */
	u64 period_ns;
	u64 burst_ns; /* quota that may be saved up */
	u64 period_start;
	s64 used_ns; /* since then, including debts of earlier periods */
	u32 throttled;
	u32 listed; /* its id is in throttled_groups; exchanged */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SFS_DEFAULT_MAX_GROUPS);
	__type(key, u64); /* the cgroup's id */
	__type(value, struct group);
} groups SEC(".maps");

static volatile u32 nr_limited;            /* groups with a quota */
static volatile u32 release_is_set;        /* 1: on_release_timer() will run */
static volatile u32 limits_generation = 1; /* counts the changes of quotas */
static volatile u64 root_group;            /* id; it has neither weight nor quota */

static struct group *lookup_group(u64 id)
{
	return id ? bpf_map_lookup_elem(&groups, &id) : NULL;
}

/* Return counts_as of the nearest group in `groups`, from the task group at @address upwards,
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

/* Return the id of the group whose weight and quota apply to @p; 0: the kernel has no groups
 * for the CPU controller. If the group of an exiting task has been removed already, return
 * the nearest one above it. */
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

/* Like group_of(), but from the task's cached id while that is valid. Call with @p's run
 * queue locked. */
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

/* Return true if @cgrp or one of its ancestors has a quota. */
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

/* Number of times that count_group() looks: again only if the group has changed meanwhile. */
#define COUNT_TRIES 8

/*
 * Group @g has become active or inactive, or has another weight: count that in its parent.
 * `counted` is always what the parent's sum has of @g: whoever exchanges it adds the difference.
 * Several CPUs may do that at once. The last one to exchange it looks at @g after that, so the sum
 * ends with what @g then is.
 */
static void count_group(struct group *g)
{
	struct group *parent = lookup_group(g->parent);
	int i;

	if (!parent)
		return;
	bpf_for(i, 0, COUNT_TRIES) {
		u32 weight = READ_ONCE(g->weight);
		u32 counts = READ_ONCE(g->nr_active) > 0 ? weight : 0, counted;

		if (READ_ONCE(g->counted) == counts)
			break;
		counted = __sync_lock_test_and_set(&g->counted, counts);
		__sync_fetch_and_add(&parent->active, (s64)counts - (s64)counted);
	}
}

/* A task of @weight becomes active in group @id. */
__global_func int activate(u64 id, u32 weight)
{
	int i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);

		if (!g || !g->parent)
			return 0;
		if (!i)
			__sync_fetch_and_add(&g->active, (s64)weight);
		if (__sync_fetch_and_add(&g->nr_active, 1))
			return 0;
		count_group(g);
		id = g->parent;
	}
	return 0;
}

/* Group @id has one active task or group less. */
__global_func int leave_active(u64 id)
{
	int i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct group *g = lookup_group(id);

		if (!g || !g->parent)
			return 0;
		if (__sync_fetch_and_sub(&g->nr_active, 1) != 1)
			return 0;
		count_group(g);
		id = g->parent;
	}
	return 0;
}

/* A task of @weight is no longer active in group @id. */
static void deactivate(u64 id, u32 weight)
{
	struct group *g = lookup_group(id);

	if (!g || !g->parent)
		return;
	__sync_fetch_and_sub(&g->active, (s64)weight);
	leave_active(id);
}

/* tctx->active has the id of the group that counts the task as active, and below it the weight
 * with which it does so: 1 to 10,000. The kernel numbers its cgroups from 1 on. */
#define ACTIVE_WEIGHT_BITS 15
#define ACTIVE_WEIGHT_MASK ((1ULL << ACTIVE_WEIGHT_BITS) - 1)

/* Return the id of the group that counts the task; 0: none. */
static u64 active_group(const struct task_ctx *tctx)
{
	return (tctx->active & ~PROVISIONAL) >> ACTIVE_WEIGHT_BITS;
}

static void count_in_group(struct task_struct *p, struct task_ctx *tctx, u64 id, u64 provisional)
{
	u32 weight = p->scx.weight & ACTIVE_WEIGHT_MASK;

	if (begin_count(&tctx->active, id << ACTIVE_WEIGHT_BITS | weight | provisional) &&
	    id != root_group)
		activate(id, weight);
}

static void uncount_in_group(u64 active)
{
	u64 id = active >> ACTIVE_WEIGHT_BITS;

	if (active && id != root_group)
		deactivate(id, active & ACTIVE_WEIGHT_MASK);
}

/* @p competes within its group from now on. A function task does so while it is runnable, in
 * any queue. Other tasks do so while they are in FAIR, since they never use FILTER. */
static void join_group(struct task_struct *p, struct task_ctx *tctx)
{
	if (!tctx->active)
		count_in_group(p, tctx, noted_group(p, tctx), 0);
}

static void leave_group(struct task_ctx *tctx)
{
	uncount_in_group(end_count(&tctx->active));
}

/* @p does not run in FAIR now. */
static void fair_leave(const struct task_struct *p, struct task_ctx *tctx)
{
	if (!is_function(p, tctx))
		leave_group(tctx);
}

/* Return the effective weight of @weight in group @id: @weight itself in the root,
 * otherwise its part of the group's weight, and so on up to the root. */
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

/* The default weight in FAIR. A millionth of it is still above 0; a dozen threads in a group
 * of weight 1 come near that. Hours of CPU time times this fit into a u64. */
#define FAIR_WEIGHT (1ULL << 20)

/* Return the weight of @p in FAIR: FAIR_WEIGHT is the default. */
static u64 group_weight(const struct task_struct *p, const struct task_ctx *tctx)
{
	u64 weight = (u64)(p->scx.weight ?: 1) * FAIR_WEIGHT / 100, id = active_group(tctx);

	return id == root_group ? weight : weight_in_group(id, weight);
}

#endif /* __SFS_GROUP_BPF_H */
