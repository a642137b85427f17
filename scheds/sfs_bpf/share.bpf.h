/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Share: no tenant gets more than its part of the machine by what it does itself.
 *
 * A boundary is cheap to make: a tenant can fork, connect to itself, or sleep for a
 * moment as often as it likes, and each gives it fresh credit, which FILTER honours before
 * all that waits in FAIR. So credit orders what a tenant is due, and adds nothing to it:
 * each tenant has a bucket of tokens. It fills with the CPU time that is due to it by
 * cpu.weight, and empties by what it uses, in whatever queue. With none left it is in debt:
 * its invocations run in FAIR, behind those of tenants that are not, until it is paid. Where
 * nobody waits, that makes no difference.
 *
 * The tenant is the sandbox, or where none were asked for, the control group of the CPU
 * controller. Groups that it makes below itself share its bucket. The root group has none:
 * what runs there is the machine's.
 *
 * What is due: a clock of processor sharing advances, with each CPU time that a function uses,
 * by that time divided by the weights of all tenants that have something to run. What one of
 * them cannot use (it has fewer tasks than it is due CPUs) goes to the others.
 */
#ifndef __SFS_SHARE_BPF_H
#define __SFS_SHARE_BPF_H

/* A bucket holds so much of what is due, in time, so that turns of some ms and the tick do
 * not matter; and for a tenant that is due less than one CPU, what so many credits take
 * beyond that: its function runs on one CPU until it is demoted. */
#define SHARE_SAVED_NS		(25 * NSEC_PER_MSEC)
#define SHARE_CREDITS		4

/* So much debt, in CPU time, is remembered, or of each CPU that is due if that is more: what a
 * few turns on many CPUs at once come to. */
#define SHARE_DEBT_NS		(100 * NSEC_PER_MSEC)

/* Of 64 parts of what is used one is free. Sums of what is due and used at different times
 * are off by a few ms in either direction, and a full bucket forgets the one: without this
 * all would be in debt in the end. */
#define SHARE_FREE_SHIFT	6

/* How long a tenant in debt may wait in FAIR before FILTER waits for it like for others
 * there. */
#define SHARE_PATIENCE_NS	NSEC_PER_SEC

/* So long after a tenant was in debt, heads of queues are looked at for those of some. */
#define SHARE_MEMORY_NS		(100 * NSEC_PER_MSEC)

/* More of the clock than this is due to nobody at once: a product of it and of the highest
 * weight fits. */
#define SHARE_CLOCK_MOST	(8 * NSEC_PER_SEC)

/* Each on its own cache line, as in `often`. */
static struct {
	/* CPU time that FAIR_WEIGHT has been due. */
	volatile u64 clock __attribute__((aligned(64)));
	/* Sum of the weights of the tenants that have something to run. */
	volatile s64 weight __attribute__((aligned(64)));
	/* When a tenant was last seen in debt. */
	volatile u64 debt_at __attribute__((aligned(64)));
} sharing;

/* Return the id of @p's tenant, or 0. */
static u64 tenant_of(struct task_struct *p, const struct task_ctx *tctx)
{
	struct group *g = only_sandboxes ? lookup_group(tctx->sandbox) : NULL;

	if (!g)
		g = lookup_group(group_of(p));
	return g && g->parent ? g->tenant : 0;
}

/* Return the weight of group @id among all of the machine: FAIR_WEIGHT is the default. */
__verified_once u64 tenant_weight(u64 id)
{
	struct group *g = lookup_group(id);

	return g ? weight_in_group(g->parent, (u64)g->weight * FAIR_WEIGHT / 100) : 1;
}

/* Return what @weight is due of @total, in thousandths of a CPU. */
static u64 due_cpus(u64 weight, u64 total)
{
	return total ? 1000 * nr_function_cpus * weight / total : 0;
}

/* Return what a bucket holds whose tenant is due so much, in thousandths of a CPU. */
static s64 bucket_size(u64 due)
{
	u64 saved = SHARE_SAVED_NS * due / 1000;
	u64 credits = due < 1000 ? SHARE_CREDITS * slice_ns * (1000 - due) / 1000 : 0;

	return saved > credits ? saved : credits;
}

/* Return how much debt is remembered of such a tenant. */
static s64 longest_debt(u64 due)
{
	return due > 1000 ? SHARE_DEBT_NS * due / 1000 : SHARE_DEBT_NS;
}

/* Put @amount into the bucket of @s, or take it out. Where two CPUs do so at a time, one of
 * them may cut off what exceeds the bounds by what the other has just changed. */
static void change_tokens(struct share *s, s64 amount, u64 due)
{
	s64 most = bucket_size(due), least = -longest_debt(due);
	s64 tokens = __sync_fetch_and_add(&s->tokens_ns, amount) + amount;

	if (tokens > most)
		__sync_fetch_and_add(&s->tokens_ns, most - tokens);
	else if (tokens < least)
		__sync_fetch_and_add(&s->tokens_ns, least - tokens);
}

/* @spare of CPU time, of what was due to @s, of @weight, is due to the others: the clock
 * goes ahead for them. */
static void give_away(struct share *s, u64 spare, u64 weight)
{
	s64 others = sharing.weight - (s64)weight;
	u64 ahead;

	if (others <= 0)
		return;
	ahead = spare * FAIR_WEIGHT / (u64)others;
	__sync_fetch_and_add(&s->clock, ahead);
	__sync_fetch_and_add(&sharing.clock, ahead);
}

/* Return what @s can use of what is due to it: it has had @runnable tasks for @passed, and has
 * not been given all that it could have used before. */
static u64 add_usable(const struct share *s, u64 runnable, u64 passed)
{
	u64 most = runnable * SHARE_SAVED_NS, usable = s->usable_ns + runnable * passed;

	return usable < most ? usable : most;
}

/*
 * Fill the bucket of @s, a tenant of @weight with @runnable tasks, with what has been due to
 * it since it was last filled. One that has had nothing to run was not counted on the clock;
 * it gets what it would have got if it had been. Of several CPUs that do this at a
 * time, one does.
 */
static void fill_share(struct share *s, u64 weight, s64 runnable, u64 now)
{
	u64 clock = sharing.clock, since = s->clock, at = s->filled_at;
	u64 passed = time_delta(clock, since), due, usable;
	s64 total = sharing.weight;

	if (!passed || __sync_val_compare_and_swap(&s->clock, since, clock) != since)
		return;
	s->filled_at = now;
	due = (passed < SHARE_CLOCK_MOST ? passed : SHARE_CLOCK_MOST) * weight / FAIR_WEIGHT;
	if (total < 0)
		total = 0;
	if (runnable > 0) {
		usable = add_usable(s, runnable, time_delta(now, at));
		if (due > usable) {
			give_away(s, due - usable, weight);
			due = usable;
		}
		s->usable_ns = usable - due;
	} else {
		/* In units of 1024, or the product would not fit. */
		due = due * ((u64)total >> 10) / ((((u64)total + weight) >> 10) + 1);
		total += weight;
	}
	change_tokens(s, due, due_cpus(weight, total));
}

/* Count @weight for the tenant @s, instead of what was counted before. */
static void count_weight(struct share *s, u64 weight)
{
	u64 counted = __sync_lock_test_and_set(&s->weight, weight);

	if (counted != weight)
		__sync_fetch_and_add(&sharing.weight, (s64)weight - (s64)counted);
}

/* The same for one that has something to run, whose weight changes as others come and go.
 * One that is removed meanwhile has none any more, and stays so. */
static void update_weight(struct share *s, u64 weight)
{
	u64 counted = s->weight;

	if (counted && counted != weight &&
	    __sync_val_compare_and_swap(&s->weight, counted, weight) == counted)
		__sync_fetch_and_add(&sharing.weight, (s64)weight - (s64)counted);
}

/* A task of tenant @id has become runnable. */
__verified_once int join_tenant(u64 id, u64 now)
{
	struct group *g = lookup_group(id);
	u64 weight;

	if (!g)
		return 0;
	g->is_tenant = true;
	weight = tenant_weight(id);
	fill_share(&g->share, weight, g->share.runnable, now);
	if (!__sync_fetch_and_add(&g->share.runnable, 1))
		count_weight(&g->share, weight);
	return 0;
}

/* A task of tenant @id is no longer runnable. */
__verified_once int leave_tenant(u64 id, u64 now)
{
	struct group *g = lookup_group(id);

	if (!g)
		return 0;
	fill_share(&g->share, g->share.weight, g->share.runnable, now);
	if (__sync_fetch_and_sub(&g->share.runnable, 1) == 1)
		count_weight(&g->share, 0);
	return 0;
}

/* A task of tenant @id has used @delta of CPU time. */
__verified_once int charge_tenant(u64 id, u64 delta, u64 now)
{
	struct group *g = lookup_group(id);
	u64 weight, debt_at = sharing.debt_at;
	s64 total;

	if (!g)
		return 0;
	weight = tenant_weight(id);
	update_weight(&g->share, weight);
	total = sharing.weight;
	if (total > 0)
		__sync_fetch_and_add(&sharing.clock, delta * FAIR_WEIGHT / (u64)total);
	change_tokens(&g->share, -(s64)(delta - (delta >> SHARE_FREE_SHIFT)),
		      due_cpus(weight, total > 0 ? total : weight));
	fill_share(&g->share, weight, g->share.runnable, now);
	if (g->share.tokens_ns < 0 && time_delta(now, debt_at) > SHARE_MEMORY_NS / 4)
		sharing.debt_at = now;
	return 0;
}

/* @p, a function, is there to be run. */
static void join_share(struct task_struct *p, struct task_ctx *tctx)
{
	if (tctx->tenant)
		return;
	tctx->tenant = tenant_of(p, tctx);
	if (tctx->tenant)
		join_tenant(tctx->tenant, clock_now());
}

static void leave_share(struct task_ctx *tctx)
{
	if (!tctx->tenant)
		return;
	leave_tenant(tctx->tenant, clock_now());
	tctx->tenant = 0;
}

/* Return the debt of the task's tenant, in ns of CPU time. A tenant that is alone has none. */
static u64 debt_of(const struct task_ctx *tctx)
{
	struct group *g = lookup_group(tctx->tenant);
	s64 tokens;

	if (!g || (s64)g->share.weight >= sharing.weight)
		return 0;
	tokens = g->share.tokens_ns;
	return tokens < 0 ? -tokens : 0;
}

/* Return how far the virtual time of FAIR goes until the debt of the task's tenant is paid. */
static u64 debt_in_vtime(const struct task_ctx *tctx)
{
	u64 debt = debt_of(tctx), weight;
	struct group *g;

	if (!debt)
		return 0;
	g = lookup_group(tctx->tenant);
	weight = g ? g->share.weight : 0;
	return debt * FAIR_WEIGHT / (weight ?: FAIR_WEIGHT);
}

static bool is_in_debt(const struct task_ctx *tctx)
{
	return debt_of(tctx) > 0;
}

/*
 * Return true if an invocation of @p's that begins now is one by which S and overload are
 * judged. Boundaries cost little: a tenant that makes tens of thousands a second would have S
 * collapse for all. So beside others it has no more than half of each window of arrivals, and
 * S is at worst half of what it would be without that tenant; and in debt it has none.
 */
static bool is_judged_by(struct task_struct *p, const struct task_ctx *tctx)
{
	struct group *g = lookup_group(tctx->tenant ?: tenant_of(p, tctx));
	u64 window = nr_arrivals / (iat_window ?: 1);

	if (!g || sharing.weight <= (s64)g->share.weight)
		return true;
	if (g->share.window != window) {
		g->share.window = window;
		g->share.arrivals = 0;
	}
	return g->share.tokens_ns >= 0 &&
	       __sync_fetch_and_add(&g->share.arrivals, 1) < (iat_window + 1) / 2;
}

/* Return true if a tenant is in debt, or has been lately. */
static bool debts_are_known(u64 now)
{
	u64 at = sharing.debt_at;

	return at && time_delta(now, at) < SHARE_MEMORY_NS;
}

/* Group @id is removed, and takes its weight along. */
static void forget_tenant(u64 id)
{
	struct group *g = lookup_group(id);

	if (g)
		count_weight(&g->share, 0);
}

#endif /* __SFS_SHARE_BPF_H */
