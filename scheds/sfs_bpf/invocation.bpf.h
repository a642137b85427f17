/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Invocation: where one begins and ends, and its credit. The unit that shares
 * one credit is the process: a thread begins nothing, it spends what its
 * process has.
 */
#ifndef __SFS_INVOCATION_BPF_H
#define __SFS_INVOCATION_BPF_H

/* Return the invocation that @p works for, or NULL if there is no context. */
static struct invocation *lookup_invocation(struct task_struct *p, struct task_ctx *tctx)
{
	struct task_struct *leader = p->group_leader;
	struct task_ctx *lctx;

	if (p->pid == p->tgid || !leader)
		return &tctx->own;
	lctx = try_lookup_task_ctx(leader);
	return lctx ? &lctx->own : NULL;
}

static bool has_credit(const struct invocation *inv)
{
	return inv && inv->state == INV_CREDIT;
}

/* Return what is left of the credit, never 0: to the kernel a slice of 0 means
 * "keep the old one". */
static u64 credit_left(const struct invocation *inv)
{
	u64 used = inv->used_ns;

	return used < inv->credit_ns ? inv->credit_ns - used : 1;
}

/*
 * Return true if @p starts an invocation: it is a process of its own, forked
 * since load, and not a kernel thread.
 */
static bool is_function(const struct task_struct *p)
{
	return p->pid == p->tgid && !(p->flags & PF_KTHREAD) && p->tgid != loader_tgid;
}

/*
 * The boundary: if @p has been forked and is runnable for the first time,
 * begin its invocation. A fork that fails afterwards is never seen here.
 */
static void begin_if_fresh(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	struct invocation *inv = &tctx->own;

	if (!tctx->fresh)
		return;
	tctx->fresh = false;
	if (!is_function(p))
		return;
	inv->arrived_at = now;
	inv->credit_ns = slice_ns;
	inv->used_ns = 0;
	inv->state = INV_CREDIT;
	record_arrival(now);
}

/* Take @sample into the average that tells how long FILTER work takes. */
static void sample_credit_used(u64 sample)
{
	u64 avg = credit_used_avg_ns;

	credit_used_avg_ns = avg ? avg + ((s64)(sample - avg) >> 5) : sample;
}

/* Charge @delta of CPU time, and demote the invocation that this leaves
 * without credit. Threads may race here: one of them demotes. */
static void charge_invocation(struct invocation *inv, u64 delta)
{
	u64 used = __sync_fetch_and_add(&inv->used_ns, delta) + delta;

	if (inv->state != INV_CREDIT || used < inv->credit_ns)
		return;
	if (__sync_val_compare_and_swap(&inv->state, INV_CREDIT, INV_DEMOTED) != INV_CREDIT)
		return;
	count(SFS_DEMOTIONS);
	if (debug)
		bpf_printk("sfs: demoted after %llu us", used / 1000);
	sample_credit_used(inv->credit_ns);
}

/* A thread of the invocation is gone; with the last one it ends. */
static void leave_invocation(struct invocation *inv)
{
	u32 was = inv->state;

	if (__sync_fetch_and_sub(&inv->nr_threads, 1) != 1)
		return;
	if (was != INV_CREDIT && was != INV_DEMOTED)
		return;
	inv->state = INV_ENDED;	/* no thread is left to race with */
	count(SFS_COMPLETIONS);
	if (was == INV_CREDIT) {
		count(SFS_COMPLETIONS_IN_CREDIT);
		sample_credit_used(inv->used_ns);
	}
}

#endif /* __SFS_INVOCATION_BPF_H */
