/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Group: the control groups that tasks are in, and their weights. Under sched_ext cpu.weight
 * and cpu.max mean nothing unless the scheduler sees to them. FAIR divides a group's share
 * among its active tasks and groups, level by level, as the kernel's fair class does.
 * quota.bpf.h has cpu.max; hierarchy.bpf.h makes, changes and removes groups.
 */
#ifndef __SFS_GROUP_BPF_H
#define __SFS_GROUP_BPF_H

/* What is in groups farther down than this counts as if it were in the one at this depth: a
 * tenant gets out of no quota by making more of them. */
#define MAX_GROUP_DEPTH	32

/* A walk to the nearest group that is kept goes up so far: all are, but for those that go. */
#define MAX_UNKEPT_DEPTH	4096

/* What nr_active becomes when the group goes: far from 0, whoever counts on. */
#define GROUP_GONE	(-(1LL << 62))

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

#endif /* __SFS_GROUP_BPF_H */
