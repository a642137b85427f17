/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hierarchy: the kernel makes, changes and removes control groups, and changes their limits.
 * This file keeps `groups` up to date.
 */
#ifndef __SFS_HIERARCHY_BPF_H
#define __SFS_HIERARCHY_BPF_H

/* A quota of this or more, in us, means no limit: the kernel passes ~0 for "max". */
#define UNLIMITED_US (1ULL << 44)

/* Give the group the limit of @quota_us in each @period_us. */
static void set_limit(struct group *g, u64 period_us, u64 quota_us, u64 burst_us)
{
	bool limited = period_us && quota_us < UNLIMITED_US, was_limited;

	g->period_ns = period_us * 1000;
	g->burst_ns = burst_us < UNLIMITED_US ? burst_us * 1000 : 0;
	g->period_start = clock_now();
	g->used_ns = 0;
	was_limited = __sync_lock_test_and_set(&g->quota_ns, limited ? quota_us * 1000 : 0);
	__sync_fetch_and_add(&limits_generation, 1);
	if (limited && !was_limited) {
		__sync_fetch_and_add(&nr_limited, 1);
		start_release_timer();
	} else if (!limited && was_limited) {
		__sync_fetch_and_sub(&nr_limited, 1);
	}
}

/* Return the id of the nearest group above @cgrp that is in `groups`; 0: none. */
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

/* Longest name of a group, in bytes: NAME_MAX. */
#define MAX_NAME 255

/* What a character of a name says about the number at the end of the name. */
enum name_part {
	NAME_OTHER,
	NAME_SEPARATOR,
	NAME_DIGIT,
};

/* Return that of @c. Apart from the loop that calls it: with these comparisons in the loop, the
 * verifier of 6.18 may fail ("verifier bug: backtracking call unexpected regs"). */
__global_func u32 name_part_of(u32 c)
{
	if (c == '-' || c == '_' || c == '.')
		return NAME_SEPARATOR;
	return c >= '0' && c <= '9' ? NAME_DIGIT : NAME_OTHER;
}

/*
 * Mix the name at @address into @hash, without a number at its end and the separator before
 * that: resize-7 and resize-12 are groups of one function.
 */
__global_func u64 mix_group_name(u64 address, u64 hash)
{
	u64 stem = 0;
	bool ends_in_number = false;
	int i;

	__sink(hash);
	bpf_for(i, 0, MAX_NAME) {
		u32 part;
		u8 c = 0;

		if (bpf_probe_read_kernel(&c, 1, (void *)(address + i)) || !c)
			break;
		part = name_part_of(c);
		if (part == NAME_SEPARATOR)
			stem = i ? hash : 0;
		else if (part == NAME_OTHER)
			stem = 0;
		ends_in_number = part == NAME_DIGIT && stem;
		hash = (hash ^ c) * FNV_PRIME;
	}
	return ends_in_number ? stem : hash;
}

/* Return a number for the path of @cgrp; @above is its parent's. */
static u64 name_group(struct cgroup *cgrp, u64 above)
{
	u64 address = (u64)BPF_CORE_READ(cgrp, kn, name);

	if (!cgrp->level)
		return 0;
	return mix_group_name(address, ((above ?: FNV_BASIS) ^ '/') * FNV_PRIME) ?: 1;
}

/* Return 0, or an error that makes the kernel refuse the group: nothing would enforce its
 * quota. */
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
	if (g && bpf_core_field_exists(args->bw_period_us) && args->bw_quota_us < UNLIMITED_US)
		set_limit(g, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

/*
 * A group may be removed while one of its tasks is still counted: an exiting task leaves its
 * group before it leaves its CPU for good. The group is taken from its parent here, once:
 * otherwise the CPU that finds nr_active at 1 does that, and GROUP_GONE prevents it from now on.
 */
static void remove_group(u64 id)
{
	struct group *g = lookup_group(id);
	bool was_active;

	__sync_fetch_and_add(&groups_generation, 1);
	if (!g)
		return;
	if (g->quota_ns)
		__sync_fetch_and_sub(&nr_limited, 1);
	was_active = __sync_lock_test_and_set(&g->nr_active, GROUP_GONE) > 0;
	count_group(g);
	if (was_active)
		leave_active(g->parent);
	bpf_map_delete_elem(&groups, &id);
}

static void set_group_weight(u64 id, u32 weight)
{
	struct group *g = lookup_group(id);

	if (!g)
		return;
	g->weight = weight;
	count_group(g);
}

#endif /* __SFS_HIERARCHY_BPF_H */
