/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Share: no tenant gets more than its part of the machine through its own actions.
 *
 * A boundary is cheap to make: a tenant can fork, connect to itself, or sleep for a
 * moment as often as it likes. Each boundary gives it fresh credit, and FILTER runs before
 * FAIR. So credit only orders the CPU time that a tenant is due, and adds nothing to it:
 * each tenant has a bucket of tokens. The bucket fills with the CPU time that the tenant is
 * due by cpu.weight, and empties by the CPU time that it uses, in any queue. A tenant without
 * tokens is in debt: its invocations run in FAIR, behind those of tenants without debt, until
 * the debt is paid. If nobody waits, that makes no difference.
 *
 * The tenant is the sandbox or, if none were asked for, the control group of the CPU
 * controller. Groups that a tenant makes below itself share its bucket. The root group has
 * no bucket: its tasks belong to the machine.
 *
 * CPU time due: when a function uses CPU time, a clock of processor sharing advances by that
 * time divided by the weights of all tenants with runnable tasks. If a tenant cannot use its
 * part (it has fewer tasks than it is due CPUs), the rest goes to the others.
 */
#ifndef __SFS_SHARE_BPF_H
#define __SFS_SHARE_BPF_H

/* A bucket holds what a tenant is due in SHARE_SAVED_NS, so that turns of some ms and the tick
 * do not matter. If the tenant is due less than one CPU, the bucket holds the CPU time that
 * SHARE_CREDITS credits take beyond their share, if that is more: its function runs on one CPU
 * until it is demoted. */
#define SHARE_SAVED_NS (25 * NSEC_PER_MSEC)
#define SHARE_CREDITS  4

/* Limit of remembered debt, in ns of CPU time, for each CPU due if that is more than one. A few
 * turns on many CPUs at once come to this. */
#define SHARE_DEBT_NS (100 * NSEC_PER_MSEC)

/* One part in 64 of the used CPU time is free. Sums of time due and time used, taken at
 * different moments, are off by a few ms in either direction. A full bucket forgets one of
 * the directions: without this, all tenants would end up in debt. */
#define SHARE_FREE_SHIFT 6

/* Wait in FAIR after which FILTER waits for a tenant in debt as it does for others in FAIR. */
#define SHARE_PATIENCE_NS NSEC_PER_SEC

/* How long after a debt the heads of queues are still checked for tenants in debt. */
#define SHARE_MEMORY_NS (100 * NSEC_PER_MSEC)

/* Up to SHARE_FEW tasks of a tenant all get a turn soon. With more tasks, a turn may be
 * shorter, but not below a tick. */
#define SHARE_FEW           32
#define SHARE_LEAST_TURN_NS (4 * NSEC_PER_MSEC)

/* A turn ends at a tick: at most this much too late. */
#define SHARE_TICK_NS (4 * NSEC_PER_MSEC)

/* How many turns a tenant's line may be ahead, beyond the turns of its tasks. */
#define SHARE_TURNS_AHEAD 2

/* Limit of the clock time that is due to a tenant at once: its product with the highest
 * weight fits into a u64. */
#define SHARE_CLOCK_MOST (8 * NSEC_PER_SEC)

/* Each on its own cache line, as in `often`. */
static struct {
	/* CPU time that was due to a weight of FAIR_WEIGHT. */
	volatile u64 clock __attribute__((aligned(64)));
	/* Sum of the weights of the tenants with runnable tasks. */
	volatile s64 weight __attribute__((aligned(64)));
	/* When a tenant was last seen in debt. */
	volatile u64 debt_at __attribute__((aligned(64)));
} sharing;

/* Return the id of @p's tenant, or 0. */
static u64 tenant_of(struct task_struct *p, const struct task_ctx *tctx)
{
	struct group *g = only_sandboxes ? lookup_group(tctx->sandbox) : NULL;
	u64 id = active_group(tctx);

	if (!g && id == root_group)
		return 0;
	if (!g)
		g = lookup_group(id ?: group_of(p));
	return g && g->parent ? g->tenant : 0;
}

/* Return a number for the platform's name of @p's tenant when no sandboxes were asked for:
 * the path of its group. 0: none. */
__global_func u64 name_of_tenant(struct task_struct *p __arg_trusted)
{
	struct group *g = lookup_group(group_of(p));

	g = g && g->parent ? lookup_group(g->tenant) : NULL;
	return g ? g->name : 0;
}

/* Return the weight of group @id in the whole machine: FAIR_WEIGHT is the default. */
__global_func u64 tenant_weight(u64 id)
{
	struct group *g = lookup_group(id);

	return g ? weight_in_group(g->parent, (u64)g->weight * FAIR_WEIGHT / 100) : 1;
}

/* Return the CPU time due to @weight out of @total, in thousandths of a CPU. */
static u64 due_cpus(u64 weight, u64 total)
{
	return total ? 1000 * nr_function_cpus * weight / total : 0;
}

/* Return the size of a tenant's bucket, in ns; @due is in thousandths of a CPU. */
static s64 bucket_size(u64 due)
{
	u64 saved = SHARE_SAVED_NS * due / 1000;
	u64 credits = due < 1000 ? SHARE_CREDITS * slice_ns * (1000 - due) / 1000 : 0;

	return saved > credits ? saved : credits;
}

/* Return the limit of such a tenant's debt, in ns. */
static s64 longest_debt(u64 due)
{
	return due > 1000 ? SHARE_DEBT_NS * due / 1000 : SHARE_DEBT_NS;
}

/* Put @amount into the bucket of @s, or take it out if negative. If two CPUs do so at once,
 * one CPU's cut at the bounds may be off by the other's change. */
static void change_tokens(struct share *s, s64 amount, u64 due)
{
	s64 most = bucket_size(due), least = -longest_debt(due);
	s64 tokens = __sync_fetch_and_add(&s->tokens_ns, amount) + amount;

	if (tokens > most)
		__sync_fetch_and_add(&s->tokens_ns, most - tokens);
	else if (tokens < least)
		__sync_fetch_and_add(&s->tokens_ns, least - tokens);
}

/* Give @spare of the CPU time due to @s, of @weight, to the others: the clock advances for
 * them. */
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

/* Return how much CPU time @s can use, in ns: it has had @runnable tasks for @passed, and keeps
 * what it could have used before but was not given. */
static u64 add_usable(const struct share *s, u64 runnable, u64 passed)
{
	u64 most = runnable * SHARE_SAVED_NS, usable = s->usable_ns + runnable * passed;

	return usable < most ? usable : most;
}

/*
 * Fill the bucket of @s, a tenant of @weight with @runnable tasks, with the CPU time due since
 * the last fill. The clock did not count a tenant without runnable tasks; that tenant gets
 * what it would have got if it had been counted. If several CPUs do this at once, one of
 * them succeeds.
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

/* The same for a tenant with runnable tasks, whose weight changes as others come and go. A
 * tenant removed meanwhile has weight 0 and keeps it. */
static void update_weight(struct share *s, u64 weight)
{
	u64 counted = s->weight;

	if (counted && counted != weight &&
	    __sync_val_compare_and_swap(&s->weight, counted, weight) == counted)
		__sync_fetch_and_add(&sharing.weight, (s64)weight - (s64)counted);
}

/* CPUs that settle a tenant's weight at once have so many tries each. */
#define SETTLE_TRIES 4

/*
 * Count the weight of tenant @id, @s, as it has runnable tasks or not: the first one has joined, or
 * the last one has left. Another CPU may do the opposite at the same time. Whoever writes last has
 * to see the result of both, so each looks again.
 */
static void settle_weight(struct share *s, u64 id)
{
	u64 weight;
	int i;

	bpf_for(i, 0, SETTLE_TRIES) {
		weight = s->runnable > 0 ? tenant_weight(id) : 0;
		count_weight(s, weight);
		if ((s->runnable > 0) == (weight > 0))
			return;
	}
}

/* A task of tenant @id has become runnable. */
__global_func int join_tenant(u64 id, u64 now)
{
	struct group *g = lookup_group(id);

	if (!g)
		return 0;
	g->is_tenant = true;
	fill_share(&g->share, tenant_weight(id), g->share.runnable, now);
	if (!__sync_fetch_and_add(&g->share.runnable, 1))
		settle_weight(&g->share, id);
	return 0;
}

/* A task of tenant @id is no longer runnable. */
__global_func int leave_tenant(u64 id, u64 now)
{
	struct group *g = lookup_group(id);

	if (!g)
		return 0;
	fill_share(&g->share, g->share.weight, g->share.runnable, now);
	if (__sync_fetch_and_sub(&g->share.runnable, 1) == 1)
		settle_weight(&g->share, id);
	return 0;
}

/* A task of tenant @id has used @delta of CPU time; @early: in FILTER or by rank. */
__global_func int charge_tenant(u64 id, u64 delta, u64 now, bool early)
{
	struct group *g = lookup_group(id);
	u64 weight, debt_at = sharing.debt_at;
	s64 total;

	if (!g)
		return 0;
	__sync_fetch_and_add(&g->share.used_ns, delta);
	weight = tenant_weight(id);
	if (early) {
		__sync_fetch_and_add(&g->share.filter_ns, delta);
		/* Tokens ran out before the turn's end: the tenant's line in FAIR pays the rest. */
		if (g->share.tokens_ns < 0)
			__sync_fetch_and_add(&g->share.line, delta * FAIR_WEIGHT / weight);
	}
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

/* @p, a function task, is runnable at @now: its tenant counts it. @provisional is PROVISIONAL or
 * 0. */
static void join_share(struct task_struct *p, struct task_ctx *tctx, u64 provisional, u64 now)
{
	u64 id = tctx->tenant ? 0 : tenant_of(p, tctx);

	if (id && begin_count(&tctx->tenant, id | provisional))
		join_tenant(id, now);
}

static void cancel_turn(struct task_ctx *tctx);

static void leave_share(struct task_ctx *tctx)
{
	u64 id;

	if (!tctx->tenant)
		return;
	cancel_turn(tctx);
	id = end_count(&tctx->tenant);
	if (id)
		leave_tenant(id, clock_now());
}

/* Return the debt of the task's tenant, in ns of CPU time. A tenant that is alone has no debt. */
__global_func u64 debt_of(const struct task_ctx *tctx __arg_nonnull)
{
	struct group *g = lookup_group(tenant(tctx));
	s64 tokens;

	if (!g || (s64)g->share.weight >= sharing.weight)
		return 0;
	tokens = g->share.tokens_ns;
	return tokens < 0 ? -tokens : 0;
}

/* Return how far FAIR's virtual time advances until the debt of the task's tenant is paid. */
static u64 debt_in_vtime(const struct task_ctx *tctx)
{
	u64 debt = debt_of(tctx), weight;
	struct group *g;

	if (!debt)
		return 0;
	g = lookup_group(tenant(tctx));
	weight = g ? g->share.weight : 0;
	return debt * FAIR_WEIGHT / (weight ?: FAIR_WEIGHT);
}

static bool is_in_debt(const struct task_ctx *tctx)
{
	return debt_of(tctx) > 0;
}

/* Return the same for a waiting task. What has been due to its tenant meanwhile is paid first: if
 * all tasks of the tenant wait, nothing else pays it, and they would wait for the guard. */
static bool is_still_in_debt(const struct task_ctx *tctx, u64 now)
{
	struct group *g = is_in_debt(tctx) ? lookup_group(tenant(tctx)) : NULL;

	if (!g)
		return false;
	fill_share(&g->share, g->share.weight, g->share.runnable, now);
	return is_in_debt(tctx);
}

/*
 * A tenant's line in FAIR. Each turn that one of its tasks is queued for takes a place behind
 * the earlier ones. Its length is the turn divided by the weight of the tenant, not of the
 * task. So a thousand tasks of one tenant get as much in a round as one task of another.
 * (Start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996.) Places are given for whole
 * turns. A task gives back the unused rest when it needs no CPU any more or is queued again.
 */

/* Give the unused rest of the task's turn in FAIR back to @s, of @weight. If the task has used
 * more than its turn, charge the excess. */
static void settle_turn(struct share *s, struct task_ctx *tctx, u64 weight)
{
	s64 left = tctx->booked_ns;
	u64 line = (u64)(left < 0 ? -left : left) * FAIR_WEIGHT / weight;

	tctx->booked_ns = 0;
	__sync_fetch_and_add(&s->line, left < 0 ? line : -line);
}

/* Return how far FAIR's virtual time advances, in fair shares, while all tenants together use
 * @delta of CPU time. */
static u64 vtime_of_all(u64 delta)
{
	s64 total = sharing.weight;

	return total > 0 ? delta * FAIR_WEIGHT / (u64)total : 0;
}

/*
 * Return where the line of @s, of @weight, continues; FAIR's virtual time is @vtime_now. The
 * line is behind by at most a turn of its own, or the vtime that passes while each CPU has one
 * turn. It is ahead by at most the turns of its tasks, and some more: CPU time that nobody
 * else could use is not held against a tenant.
 */
static u64 clamp_line(const struct share *s, u64 weight, u64 vtime_now)
{
	u64 turn = fair_slice_ns * FAIR_WEIGHT / weight, line = s->line;
	u64 saved_up = vtime_of_all(fair_slice_ns * nr_function_cpus);
	s64 runnable = s->runnable;
	u64 turns = runnable > 0 ? (u64)runnable + runnable / 4 : 0;

	if (saved_up < turn)
		saved_up = turn;
	if (time_before(line, vtime_now - saved_up))
		return vtime_now - saved_up;
	turns += SHARE_TURNS_AHEAD;
	if (time_after(line, vtime_now + turns * turn))
		return vtime_now + turns * turn;
	return line;
}

/*
 * Book a turn of @turn ns in FAIR for the task; FAIR's virtual time is @vtime_now. Return the
 * virtual time before which the turn must not begin; 0: the task has no tenant. The tenant's
 * next turn may begin after this one.
 */
__global_func u64 book_turn(struct task_ctx *tctx __arg_nonnull, u64 turn, u64 vtime_now)
{
	struct group *g = lookup_group(tenant(tctx));
	u64 weight, line, clamped;

	if (!g)
		return 0;
	weight = g->share.weight ?: FAIR_WEIGHT;
	settle_turn(&g->share, tctx, weight);
	turn += SHARE_TICK_NS;
	tctx->booked_ns = turn;
	line = g->share.line;
	clamped = clamp_line(&g->share, weight, vtime_now);
	if (clamped != line)
		__sync_val_compare_and_swap(&g->share.line, line, clamped);
	return __sync_fetch_and_add(&g->share.line, turn * FAIR_WEIGHT / weight);
}

/* Return where the line of the task's tenant would continue if the task was queued now; 0: it
 * has no tenant. */
__global_func u64 line_of(const struct task_ctx *tctx __arg_nonnull, u64 vtime_now)
{
	struct group *g = lookup_group(tenant(tctx));

	return g ? clamp_line(&g->share, g->share.weight ?: FAIR_WEIGHT, vtime_now) : 0;
}

/* The task wants no turn in FAIR now. */
static void cancel_turn(struct task_ctx *tctx)
{
	struct group *g = tctx->booked_ns ? lookup_group(tenant(tctx)) : NULL;

	if (g)
		settle_turn(&g->share, tctx, g->share.weight ?: FAIR_WEIGHT);
}

/* Return the longest turn in FAIR that lets all tasks of the task's tenant have one before the
 * guard moves them to the front (guard.bpf.h), because the guard ignores shares. At most
 * @turn. */
static u64 tenants_turn(const struct task_ctx *tctx, u64 turn)
{
	struct group *g = lookup_group(tenant(tctx));
	s64 total = sharing.weight, runnable = g ? g->share.runnable : 0;
	u64 most;

	if (runnable <= SHARE_FEW || total <= 0)
		return turn;
	most = GUARD_WAIT_NS / 1000 * due_cpus(g->share.weight, total) / (u64)runnable;
	if (most < SHARE_LEAST_TURN_NS)
		most = SHARE_LEAST_TURN_NS;
	return most < turn ? most : turn;
}

/* Work with credit is queued in FAIR because its tenant is in debt. */
static void note_denied(const struct task_ctx *tctx)
{
	struct group *g = lookup_group(tenant(tctx));

	count(SFS_IN_DEBT);
	if (g)
		__sync_fetch_and_add(&g->share.denied, 1);
}

/* Return true if a tenant is in debt, or was so lately. */
static bool debts_are_known(u64 now)
{
	u64 at = sharing.debt_at;

	return at && time_delta(now, at) < SHARE_MEMORY_NS;
}

/* Group @id is removed: its weight no longer counts. */
static void forget_tenant(u64 id)
{
	struct group *g = lookup_group(id);

	if (g)
		count_weight(&g->share, 0);
}

#endif /* __SFS_SHARE_BPF_H */
