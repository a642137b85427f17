/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sandbox: the cgroup that a function runs in, and which tasks are functions.
 * The loader knows which cgroups are sandboxes, and puts their ids into a map.
 * A task belongs to the outermost sandbox at or above its own cgroup. So no task escapes
 * from a sandbox through cgroups made below it, at any depth.
 */
#ifndef __SFS_SANDBOX_BPF_H
#define __SFS_SANDBOX_BPF_H

/* Limit of a cgroup's depth: a path of 4096 bytes has no more components. */
#define MAX_CGROUP_DEPTH 4096

/*
 * @pointer, for reading numbers through it. Before Linux 7.0 the verifier searches the names of
 * all types several times for each pointer read from a structure that it trusts (see
 * __global_func). It does not search if it does not trust the structure. Do not use this in
 * functions that sfs_cgroup_init() calls: Linux 6.18.15 refuses that program with such a cast
 * ("verifier bug: backtracking call unexpected regs", in mix_group_name()).
 */
#define only_read(pointer) bpf_core_cast(pointer, typeof(*(pointer)))

/* Return the id of @cgrp. */
static u64 cgroup_id_of(const struct cgroup *cgrp)
{
	return only_read(cgrp)->kn->id;
}

/* Return the id of the cgroup that @p is in. */
static u64 cgroup_id_of_task(const struct task_struct *p)
{
	return only_read(p)->cgroups->dfl_cgrp->kn->id;
}

/* Return the id of the outermost sandbox at or above @cgrp, or 0. */
static u64 outermost_sandbox(struct cgroup *cgrp)
{
	int level = cgrp->level, i;

	bpf_for(i, 1, MAX_CGROUP_DEPTH) {
		struct cgroup *above;
		u64 id;

		if (i > level)
			break;
		above = bpf_cgroup_ancestor(cgrp, i);
		if (!above)
			break;
		id = cgroup_id_of(above);
		bpf_cgroup_release(above);
		if (bpf_map_lookup_elem(&sandboxes, &id))
			return id;
	}
	return 0;
}

/* Return the id of the sandbox that @p is in, or 0. */
__global_func u64 find_sandbox(struct task_struct *p __arg_trusted)
{
	struct css_set *css;
	struct cgroup *cgrp;
	u64 id = 0;

	bpf_rcu_read_lock();
	css = p->cgroups;
	cgrp = css ? css->dfl_cgrp : NULL;
	if (cgrp)
		id = outermost_sandbox(cgrp);
	bpf_rcu_read_unlock();
	return id;
}

static struct invocation *sandbox_invocation(u64 id)
{
	struct sandbox *sandbox = id ? bpf_map_lookup_elem(&sandboxes, &id) : NULL;

	return sandbox ? &sandbox->inv : NULL;
}

/* Return true if @p was started while an earlier scheduler was loaded. */
static bool was_function(const struct task_struct *p)
{
	u32 i;

	bpf_for(i, 0, SFS_MAX_SPANS) {
		if (p->start_time >= past[i].from && p->start_time < past[i].to)
			return true;
	}
	return false;
}

/*
 * Return true if @p is a function task: it is in a sandbox or, if none were asked
 * for, was started since load or under an earlier scheduler. Kernel threads and the
 * loader are never function tasks.
 */
static bool is_function(const struct task_struct *p, const struct task_ctx *tctx)
{
	if ((p->flags & PF_KTHREAD) || p->tgid == loader_tgid)
		return false;
	return only_sandboxes ? tctx->sandbox != 0 : tctx->forked;
}

#endif /* __SFS_SANDBOX_BPF_H */
