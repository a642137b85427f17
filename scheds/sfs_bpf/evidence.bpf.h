/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Evidence: which invocations of a tenant the loader may learn from, for S and for ranks. A
 * tenant has no more influence than a bounded number of invocations gives it.
 */
#ifndef __SFS_EVIDENCE_BPF_H
#define __SFS_EVIDENCE_BPF_H

/* Invocations of a tenant that are learned from in a second. */
#define SHARE_REPORTS	4096

/* A tenant is by itself if for so long nobody else's invocation has begun. */
#define ALONE_NS	NSEC_PER_SEC

/* Whose invocation has begun last (nobody's yet), and when another one's had before that. */
#define NOBODY_YET	(~0ULL)
u64 last_tenant = NOBODY_YET, others_began_at;

/* An invocation of @tenant's begins. Return true if it is by itself. CPUs that write at the same
 * time may lose one change of tenants; the next one tells. */
static bool begins_alone(u64 tenant)
{
	u64 now = clock_now();

	if (last_tenant != tenant) {
		if (last_tenant != NOBODY_YET)
			others_began_at = now;
		last_tenant = tenant;
	}
	return time_delta(now, others_began_at) > ALONE_NS;
}

/*
 * An invocation of @p's begins. Return true if it is one by which S and overload are judged.
 * Boundaries cost little: a tenant that makes tens of thousands a second would have S collapse
 * for all. So beside others it has no more than half of each window of arrivals, and S is at
 * worst half of what it would be without that tenant; and in debt it has none. (Others are who
 * begins, not who has something to run at this moment: one that is short has that seldom.)
 */
static bool begins_judged(struct task_struct *p, const struct task_ctx *tctx)
{
	u64 tenant = tctx->tenant ?: tenant_of(p, tctx);
	u64 window = nr_arrivals / (iat_window ?: 1);
	struct group *g = lookup_group(tenant);
	bool alone = begins_alone(tenant);

	if (!g)
		return true;
	__sync_fetch_and_add(&g->share.granted, 1);
	if (alone)
		return true;
	if (g->share.window != window) {
		g->share.window = window;
		g->share.arrivals = 0;
	}
	return g->share.tokens_ns >= 0 &&
	       __sync_fetch_and_add(&g->share.arrivals, 1) < (iat_window + 1) / 2;
}

/*
 * Return true if tenant @id may have what an invocation has needed reported, to be learned
 * from, at @now. So many a second are enough to learn from, and leave room for others'.
 */
__global_func bool may_report(u64 id, u64 now)
{
	struct group *g = lookup_group(id);
	u64 second = now / NSEC_PER_SEC;

	if (!g)
		return true;
	if (g->share.second != second) {
		g->share.second = second;
		g->share.reports = 0;
	}
	if (__sync_fetch_and_add(&g->share.reports, 1) < SHARE_REPORTS)
		return true;
	count(SFS_UNLEARNED);
	return false;
}

#endif /* __SFS_EVIDENCE_BPF_H */
