/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Evidence: which invocations of a tenant the loader may learn from, for S and for ranks. The
 * number of these invocations is bounded, and so is the tenant's influence.
 */
#ifndef __SFS_EVIDENCE_BPF_H
#define __SFS_EVIDENCE_BPF_H

/* Limit of the invocations of a tenant, in a second, that the loader learns from. */
#define SHARE_REPORTS 4096

/* A tenant is alone if no other tenant's invocation has begun for this long. */
#define ALONE_NS NSEC_PER_SEC

/* The tenant whose invocation began last (none yet), and when that tenant last changed. */
#define NOBODY_YET (~0ULL)
u64 last_tenant = NOBODY_YET, others_began_at;

/* An invocation of @tenant begins. Return true if the tenant is alone. CPUs that write at the
 * same time may lose one change of tenants; the next change corrects that. */
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
 * An invocation of @p begins. Return true if it counts for S and overload. Boundaries cost
 * little: a tenant that makes tens of thousands a second would make S collapse for all. So
 * beside others a tenant gets at most half of each window of arrivals, and S is at worst half
 * of what it would be without that tenant. A tenant in debt gets none of it. (Others are
 * tenants whose invocations begin, not tenants with runnable tasks at this moment: short
 * invocations are rarely runnable.)
 */
static bool begins_judged(struct task_struct *p, const struct task_ctx *tctx)
{
	u64 id = tenant(tctx) ?: tenant_of(p, tctx);
	u64 window = often.nr_arrivals / (iat_window ?: 1);
	struct group *g = lookup_group(id);
	bool alone = begins_alone(id);

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
 * Return true if the service time of an invocation of tenant @id may be reported at @now, for
 * the loader to learn from. SHARE_REPORTS a second are enough for that, and leave room for
 * other tenants.
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
