/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sandbox: the cgroup that a function runs in, and which tasks are functions.
 * The loader knows which cgroups are sandboxes, and puts their ids into a map;
 * a task belongs to the outermost one at or above its own cgroup, so that nobody gets out
 * of a sandbox by what is made below it, to whatever depth.
 */
#ifndef __SFS_SANDBOX_BPF_H
#define __SFS_SANDBOX_BPF_H

/* So deep a cgroup may be: a path of 4096 bytes has no more components. */
#define MAX_CGROUP_DEPTH	4096

/* Return the cgroup that @p is in, or NULL. */
static struct cgroup *cgroup_of(struct task_struct *p)
{
	struct css_set *css = p->cgroups;

	return css ? css->dfl_cgrp : NULL;
}

/* Return the id of the outermost sandbox at or above @cgrp, or 0. */
static u64 find_sandbox(struct cgroup *cgrp)
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
		id = above->kn->id;
		bpf_cgroup_release(above);
		if (bpf_map_lookup_elem(&sandboxes, &id))
			return id;
	}
	return 0;
}

static struct invocation *sandbox_invocation(u64 id)
{
	struct sandbox *sandbox = id ? bpf_map_lookup_elem(&sandboxes, &id) : NULL;

	return sandbox ? &sandbox->inv : NULL;
}

/* Return true if @p was started while a scheduler before this one was loaded. */
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
 * Return true if @p works for a function: it is in a sandbox or, if none were
 * asked for, was started since load, or under a scheduler before. Kernel threads and the
 * loader never do.
 */
static bool is_function(const struct task_struct *p, const struct task_ctx *tctx)
{
	if ((p->flags & PF_KTHREAD) || p->tgid == loader_tgid)
		return false;
	return only_sandboxes ? tctx->sandbox != 0 : tctx->forked;
}

#endif /* __SFS_SANDBOX_BPF_H */
