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

/* So few tasks of a tenant all have a turn soon. Of more than that, each has one of a tick or
 * more. */
#define SHARE_FEW		32
#define SHARE_LEAST_TURN_NS	(4 * NSEC_PER_MSEC)

/* A turn ends at a tick: so much later than it should, at most. */
#define SHARE_TICK_NS		(4 * NSEC_PER_MSEC)

/* A tenant's line may be so many turns ahead, beyond those of its tasks. */
#define SHARE_TURNS_AHEAD	2

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
	u64 id = tctx->active_group;

	if (!g && id == root_group)
		return 0;
	if (!g)
		g = lookup_group(id ?: group_of(p));
	return g && g->parent ? g->tenant : 0;
}

/* Return a number for what the platform calls @p's tenant, where no sandboxes were asked for:
 * the path of its group. 0: it has none. */
__global_func u64 name_of_tenant(struct task_struct *p __arg_trusted)
{
	struct group *g = lookup_group(group_of(p));

	g = g && g->parent ? lookup_group(g->tenant) : NULL;
	return g ? g->name : 0;
}

/* Return the weight of group @id among all of the machine: FAIR_WEIGHT is the default. */
__global_func u64 tenant_weight(u64 id)
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
__global_func int join_tenant(u64 id, u64 now)
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
__global_func int leave_tenant(u64 id, u64 now)
{
	struct group *g = lookup_group(id);

	if (!g)
		return 0;
	fill_share(&g->share, g->share.weight, g->share.runnable, now);
	if (__sync_fetch_and_sub(&g->share.runnable, 1) == 1)
		count_weight(&g->share, 0);
	return 0;
}

/* A task of tenant @id has used @delta of CPU time, in FILTER or by rank if it was @early. */
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
		/* A turn that is not over when the last token is used: it is paid for in FAIR. */
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

/* @p, a function, is there to be run. */
static void join_share(struct task_struct *p, struct task_ctx *tctx)
{
	if (tctx->tenant)
		return;
	tctx->tenant = tenant_of(p, tctx);
	if (tctx->tenant)
		join_tenant(tctx->tenant, clock_now());
}

static void cancel_turn(struct task_ctx *tctx);

static void leave_share(struct task_ctx *tctx)
{
	if (!tctx->tenant)
		return;
	cancel_turn(tctx);
	leave_tenant(tctx->tenant, clock_now());
	tctx->tenant = 0;
}

/* Return the debt of the task's tenant, in ns of CPU time. A tenant that is alone has none. */
__global_func u64 debt_of(const struct task_ctx *tctx __arg_nonnull)
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
 * A tenant's line in FAIR. Each turn that a task of it is queued for takes a place behind those
 * that were there before: what the turn comes to by the weight of the tenant, not of the
 * task. So a thousand tasks of one have in a round what one task of another has. (Start-time
 * fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996.) Places are given for whole turns; what a
 * task has not used of its own is given back when it wants no CPU any more or is queued anew.
 */

/* Give back to @s, of @weight, what the task has not used of its turn in FAIR; take what it has
 * used beyond that. */
static void settle_turn(struct share *s, struct task_ctx *tctx, u64 weight)
{
	s64 left = tctx->booked_ns;
	u64 line = (u64)(left < 0 ? -left : left) * FAIR_WEIGHT / weight;

	tctx->booked_ns = 0;
	__sync_fetch_and_add(&s->line, left < 0 ? line : -line);
}

/* Return how far FAIR's virtual time goes in fair shares while all tenants together use @delta
 * of CPU time. */
static u64 vtime_of_all(u64 delta)
{
	s64 total = sharing.weight;

	return total > 0 ? delta * FAIR_WEIGHT / (u64)total : 0;
}

/*
 * Return where the line of @s, of @weight, goes on, whose present virtual time is @vtime_now.
 * Not farther behind than a turn of its own, or so much as goes by while each CPU has one. Not
 * farther ahead than its tasks have turns, and some more: what it has had of CPUs that nobody
 * else could use is not held against it.
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
 * The task is to have a turn of @turn in FAIR. Return the virtual time before which it must
 * not begin, which is @vtime_now at present; the next one of the tenant may begin after it. 0:
 * it has no tenant.
 */
__global_func u64 book_turn(struct task_ctx *tctx __arg_nonnull, u64 turn, u64 vtime_now)
{
	struct group *g = lookup_group(tctx->tenant);
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

/* Return where the line of the task's tenant would go on if it was queued now; 0: it has no
 * tenant. */
__global_func u64 line_of(const struct task_ctx *tctx __arg_nonnull, u64 vtime_now)
{
	struct group *g = lookup_group(tctx->tenant);

	return g ? clamp_line(&g->share, g->share.weight ?: FAIR_WEIGHT, vtime_now) : 0;
}

/* The task wants no turn in FAIR now. */
static void cancel_turn(struct task_ctx *tctx)
{
	struct group *g = tctx->booked_ns ? lookup_group(tctx->tenant) : NULL;

	if (g)
		settle_turn(&g->share, tctx, g->share.weight ?: FAIR_WEIGHT);
}

/* Return how long a turn in FAIR may be for all tasks of the task's tenant to have one before
 * the guard puts them first (guard.bpf.h), which asks for nobody's share; @turn, if that is
 * shorter. */
static u64 tenants_turn(const struct task_ctx *tctx, u64 turn)
{
	struct group *g = lookup_group(tctx->tenant);
	s64 total = sharing.weight, runnable = g ? g->share.runnable : 0;
	u64 most;

	if (runnable <= SHARE_FEW || total <= 0)
		return turn;
	most = GUARD_WAIT_NS / 1000 * due_cpus(g->share.weight, total) / (u64)runnable;
	if (most < SHARE_LEAST_TURN_NS)
		most = SHARE_LEAST_TURN_NS;
	return most < turn ? most : turn;
}

/* Work with credit is queued in FAIR, since its tenant is in debt. */
static void note_denied(const struct task_ctx *tctx)
{
	struct group *g = lookup_group(tctx->tenant);

	count(SFS_IN_DEBT);
	if (g)
		__sync_fetch_and_add(&g->share.denied, 1);
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
