/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups: what the kernel half reads of them, and what it keeps of them. A part of
 * model.c. The types that src/group_ffi.rs uses have the same names there.
 */

void *calloc(unsigned long, unsigned long);

/* A control group. Without the CPU controller `tg` is not used. */
struct model_group {
	struct model_group *parent;
	struct kernfs_node kn;
	struct task_group tg;
	struct css_set set;
	char name[32];
	struct cgroup cgrp; /* ends in an array without a length */
};

static struct model_group *model_root;

static struct model_group *group_behind(struct cgroup *cgrp)
{
	return container_of(cgrp, struct model_group, cgrp);
}

/* cgroup_ancestor(). */
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level)
{
	struct model_group *g = group_behind(cgrp);

	if (level < 0 || level > cgrp->level)
		return NULL;
	while (g->cgrp.level > level)
		g = g->parent;
	return &g->cgrp;
}

void bpf_cgroup_release(struct cgroup *cgrp)
{
}

/* The task group in force in @g: its own, or that of the nearest group above it that has one. */
static struct task_group *task_group_of(struct model_group *g)
{
	while (!g->tg.css.cgroup)
		g = g->parent;
	return &g->tg;
}

/* cgroup_create() and cpu_cgroup_css_alloc(). The memory is that of a group that is gone, @reuse,
 * or new. NULL: there is none. @parent is NULL for the root. */
struct model_group *model_new_group(struct model_group *reuse, struct model_group *parent, u64 id,
				    const char *name, bool has_cpu)
{
	struct model_group *g = reuse ?: calloc(1, sizeof(*g));
	u32 i;

	if (!g)
		return NULL;
	__builtin_memset(g, 0, sizeof(*g));
	for (i = 0; i + 1 < sizeof(g->name) && name[i]; i++)
		g->name[i] = name[i];
	g->parent = parent;
	g->kn.id = id;
	g->kn.name = g->name;
	g->cgrp.kn = &g->kn;
	g->cgrp.level = parent ? parent->cgrp.level + 1 : 0;
	g->cgrp.self.cgroup = &g->cgrp;
	g->cgrp.self.parent = parent ? &parent->cgrp.self : NULL;
	g->set.dfl_cgrp = &g->cgrp;
	if (!parent)
		model_root = g;
	if (has_cpu) {
		g->tg.css.cgroup = &g->cgrp;
		g->tg.parent = parent ? task_group_of(parent) : NULL;
	}
	return g;
}

/* Settings of a group, as the kernel keeps them in struct scx_task_group. */
struct model_settings {
	u32 weight;
	u64 period_us;
	u64 quota_us;
	u64 burst_us;
};

/* scx_tg_online(), or scx_cgroup_init() at load. */
s32 model_group_online(struct model_group *g, const struct model_settings *settings)
{
	struct scx_cgroup_init_args args = {
		.weight = settings->weight,
		.bw_period_us = settings->period_us,
		.bw_quota_us = settings->quota_us,
		.bw_burst_us = settings->burst_us,
	};

	return sfs_cgroup_init(&g->cgrp, &args);
}

/* scx_tg_offline(). */
void model_group_offline(struct model_group *g)
{
	sfs_cgroup_exit(&g->cgrp);
}

/* scx_group_set_weight(). */
void model_set_weight(struct model_group *g, u32 weight)
{
	sfs_cgroup_set_weight(&g->cgrp, weight);
}

/* scx_group_set_bandwidth(). */
void model_set_bandwidth(struct model_group *g, const struct model_settings *settings)
{
	sfs_cgroup_set_bandwidth(&g->cgrp, settings->period_us, settings->quota_us,
				 settings->burst_us);
}

/* scx_cgroup_can_attach(). */
s32 model_prep_move(struct task_struct *p, struct model_group *from, struct model_group *to)
{
	return half_prep_move(p, task_group_of(from)->css.cgroup, task_group_of(to)->css.cgroup);
}

/* css_set_move_task(). */
void model_set_css(struct task_struct *p, struct model_group *g)
{
	p->cgroups = &g->set;
}

/* sched_change_group(). */
void model_set_task_group(struct task_struct *p, struct model_group *g)
{
	p->sched_task_group = task_group_of(g);
}

/* The loader has found, or lost, the sandbox @id (sfs_bpf/src/kernel/sandboxes.rs). */
void model_change_sandbox(u64 id, bool there)
{
	struct sandbox fresh = { .function = SFS_FUNCTION_NAMED | id % 7 };

	if (there)
		bpf_map_update_elem(&sandboxes, &id, &fresh, BPF_NOEXIST);
	else
		bpf_map_delete_elem(&sandboxes, &id);
	sandbox_generation++;
}

/* The loader's options about sandboxes. */
void model_tune_sandboxes(bool only, bool unit_is_cgroup)
{
	only_sandboxes = only;
	unit = unit_is_cgroup ? SFS_UNIT_CGROUP : SFS_UNIT_PROCESS;
}

/* ------------------------------------------------------ what the kernel half keeps */

struct model_group_state {
	u64 parent;
	s64 active;
	s64 nr_active;
	s64 used_ns;
	u64 period_start;
	u64 quota_ns;
	u64 share_weight;
	s64 share_runnable;
	u32 weight;
	u32 counted;
};

/* Return false if the kernel half does not know the group. */
bool model_state_of_group(u64 id, struct model_group_state *state)
{
	struct group *g = lookup_group(id);

	if (!g)
		return false;
	state->parent = g->parent;
	state->active = g->active;
	state->nr_active = g->nr_active;
	state->used_ns = g->used_ns;
	state->period_start = g->period_start;
	state->quota_ns = g->quota_ns;
	state->share_weight = half_share_weight(g);
	state->share_runnable = half_share_runnable(g);
	state->weight = g->weight;
	state->counted = g->counted;
	return true;
}

struct model_member {
	u64 active_group;
	u64 tenant;
	u64 limit;
	u32 active_weight;
};

void model_member_of(struct task_struct *p, struct model_member *member)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	__builtin_memset(member, 0, sizeof(*member));
	if (!tctx)
		return;
	member->active_group = half_active_group(tctx);
	member->tenant = half_tenant(tctx);
	member->limit = tctx->limit;
	member->active_weight = half_active_weight(tctx);
}

/* Sums over all groups. */
struct model_group_sums {
	s64 sharing_weight;
	u32 limited;
};

void model_sums_of_groups(struct model_group_sums *sums)
{
	sums->sharing_weight = half_sharing_weight();
	sums->limited = nr_limited;
}
