/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Invocation: the unit that shares one credit, how the credit is charged, and how
 * an invocation begins and ends. The events that begin it are in boundary.bpf.h.
 */
#ifndef __SFS_INVOCATION_BPF_H
#define __SFS_INVOCATION_BPF_H

/* Return true if the invocation that @p works for is in @p's own context: the first thread of a
 * process has its process's. Not for sandboxes as units. */
static bool keeps_invocation(const struct task_struct *p)
{
	return unit == SFS_UNIT_THREAD || p->pid == p->tgid;
}

/* Return the invocation that @p works for, or NULL if there is no context. */
static struct invocation *lookup_invocation(struct task_struct *p, struct task_ctx *tctx)
{
	struct task_struct *leader;
	struct task_ctx *lctx;

	if (unit == SFS_UNIT_CGROUP)
		return sandbox_invocation(tctx->sandbox);
	if (keeps_invocation(p))
		return &tctx->own;
	leader = p->group_leader;
	if (!leader)
		return &tctx->own;
	lctx = try_lookup_task_ctx(leader);
	return lctx ? &lctx->own : NULL;
}

static bool has_credit(const struct invocation *inv)
{
	return inv && (inv->state == INV_CREDIT || inv->state == INV_GRACE);
}

/* Return the rest of the credit, in ns. Never 0: to the kernel a slice of 0 means
 * "keep the old one". */
static u64 credit_left(const struct invocation *inv)
{
	u64 used = inv->used_ns;

	return used < inv->credit_ns ? inv->credit_ns - used : 1;
}

/* Add @sample to the average of the credit that FILTER work uses. */
static void sample_credit_used(u64 sample)
{
	u64 avg = often.credit_used_avg_ns;

	often.credit_used_avg_ns = avg ? avg + ((s64)(sample - avg) >> 5) : sample;
}

/* Charge @delta of CPU time, and demote the invocation if no credit is left.
 * Threads may race here: one of them demotes. */
static void charge_invocation(struct invocation *inv, u64 delta)
{
	u64 used = __sync_fetch_and_add(&inv->used_ns, delta) + delta;

	if (!has_credit(inv) || used < inv->credit_ns)
		return;
	if (__sync_val_compare_and_swap(&inv->state, INV_GRACE, INV_SPENT) == INV_GRACE)
		return;
	if (__sync_val_compare_and_swap(&inv->state, INV_CREDIT, INV_DEMOTED) != INV_CREDIT)
		return;
	/* Another thread may have begun the next invocation in between. */
	if (inv->used_ns < inv->credit_ns) {
		__sync_val_compare_and_swap(&inv->state, INV_DEMOTED, INV_CREDIT);
		return;
	}
	if (!inv->open)
		return;
	count(SFS_DEMOTIONS);
	if (debug)
		bpf_printk("sfs: demoted after %llu us", used / 1000);
	if (inv->counted)
		sample_credit_used(inv->credit_ns);
}

/*
 * The invocation in progress, if there is one, has ended; @p served it. CPU time that
 * the unit uses from now on is still charged to it, until the next one begins.
 */
static void end_invocation(struct task_struct *p, const struct task_ctx *tctx,
			   struct invocation *inv)
{
	bool in_credit = inv->state == INV_CREDIT;
	u64 used = inv->used_ns;

	if (!__sync_lock_test_and_set(&inv->open, 0))
		return;
	inv->ended_ns = used;
	count(SFS_COMPLETIONS);
	if (in_credit) {
		count(SFS_COMPLETIONS_IN_CREDIT);
		if (inv->counted)
			sample_credit_used(used);
	}
	publish_service(p, tctx, inv, used, !in_credit);
}

/*
 * Begin an invocation that arrived at @arrived_at, detected by a boundary of @kind.
 * @p serves it, and has ended the previous one, if there was one.
 */
static void begin_invocation(struct task_struct *p, struct task_ctx *tctx, struct invocation *inv,
			     u32 kind, u64 arrived_at)
{
	end_invocation(p, tctx, inv);
	inv->arrived_at = arrived_at;
	inv->credit_ns = slice_ns;
	inv->used_ns = 0;
	inv->function = identify(p, tctx);
	inv->service_ns = 0;
	inv->born = often.sharing_clock;
	inv->slept_at = 0;
	inv->burst_ns = 0;
	inv->quiet_at = 0;
	inv->boundaries = kind;
	inv->graced = 0;
	inv->seq++;
	inv->state = INV_CREDIT;
	inv->open = 1;
	inv->counted = 0;
}

/* Give a unit without credit a little time in FILTER to reach its next boundary,
 * once for each invocation. */
static void grant_grace(struct invocation *inv)
{
	u64 enough = inv->used_ns + GRACE_NS;

	if (inv->graced)
		return;
	inv->graced = 1;
	if (inv->state != INV_CREDIT) {
		inv->credit_ns = enough;
		inv->state = INV_GRACE;
	} else if (!inv->open && inv->credit_ns < enough) {
		inv->credit_ns = enough;
	}
}

/* A thread of the unit is gone; with the last one the invocation ends. */
static void leave_invocation(struct task_struct *p, const struct task_ctx *tctx,
			     struct invocation *inv)
{
	if (__sync_fetch_and_sub(&inv->nr_threads, 1) != 1)
		return;
	if (inv->state == INV_NONE)
		return;
	inv->quiet_at = clock_now();
	end_invocation(p, tctx, inv); /* no thread is left to race with */
	inv->state = INV_ENDED;
}

#endif /* __SFS_INVOCATION_BPF_H */
