/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The callbacks of the kernel half under a watch: the model sees what it keeps before each of them
 * and after it, and compares both with the rules (sfs_kernel_rules). Included by half.h, the first
 * part before the kernel half and the second part after it.
 */
#ifndef __MODEL_WATCH_H
#define __MODEL_WATCH_H

/* clang-format off */
#define sfs_select_cpu             plain_select_cpu
#define sfs_runnable               plain_runnable
#define sfs_enqueue                plain_enqueue
#define sfs_dispatch               plain_dispatch
#define sfs_running                plain_running
#define sfs_tick                   plain_tick
#define sfs_stopping               plain_stopping
#define sfs_quiescent              plain_quiescent
#define sfs_enable                 plain_enable
#define sfs_yield                  plain_yield
#define sfs_init_task              plain_init_task
#define sfs_exit_task              plain_exit_task
#define sfs_cpu_release            plain_cpu_release
#define on_exec                    plain_on_exec
#define enter_inet_accept          plain_enter_inet_accept
#define enter_unix_accept          plain_enter_unix_accept
#define leave_inet_accept          plain_leave_inet_accept
#define leave_unix_accept          plain_leave_unix_accept
#define leave_inet_recvmsg         plain_leave_inet_recvmsg
#define leave_inet6_recvmsg        plain_leave_inet6_recvmsg
#define leave_unix_stream_recvmsg  plain_leave_unix_stream_recvmsg
/* clang-format on */

#else

#undef sfs_select_cpu
#undef sfs_runnable
#undef sfs_enqueue
#undef sfs_dispatch
#undef sfs_running
#undef sfs_tick
#undef sfs_stopping
#undef sfs_quiescent
#undef sfs_enable
#undef sfs_yield
#undef sfs_init_task
#undef sfs_exit_task
#undef sfs_cpu_release
#undef on_exec
#undef enter_inet_accept
#undef enter_unix_accept
#undef leave_inet_accept
#undef leave_unix_accept
#undef leave_inet_recvmsg
#undef leave_inet6_recvmsg
#undef leave_unix_stream_recvmsg

MODEL_BEGIN

/* ------------------------------------------------------------ what is looked at */

/* What the kernel half keeps of a task @p, its invocation @inv, its tenant's share @s, the group
 * @l whose quota it has, its CPU @c, and of the machine: a word each, in the order of
 * sfs_kernel_rules/src/look.rs. */
/* clang-format off */
#define LOOK(W) \
	W(has_context, has_context) W(has_inv, has_inv) W(inv_is, (u64)inv) W(own_is, (u64)&t->own) \
	W(flags, p->flags) W(weight, p->scx.weight) W(cpu_time, p->se.sum_exec_runtime) \
	W(vtime, p->scx.dsq_vtime) W(granted, p->scx.slice) W(nr_cpus, p->nr_cpus_allowed) \
	W(exit_code, p->exit_code) W(cpu, cpu) \
	W(cgroup, t->cgroup) W(sandbox, t->sandbox) W(woken_at, t->woken_at) \
	W(charged, t->charged_ns) W(queued_at, t->queued_at) W(queued, t->queued_ns) \
	W(waits_since, t->waits_since) W(starved_since, t->starved_since) \
	W(served_at, t->served_at_ns) W(turn_used, t->turn_used_ns) W(usual, t->usual_ns) \
	W(asleep_at, t->slept_at) W(asleep_clock, t->slept_clock) W(paid, t->paid_ns) \
	W(paid_clock, t->paid_clock) W(paid_seq, t->paid_seq) \
	W(mostly_sleeps, t->mostly_sleeps) \
	W(prompt, t->prompt_ns) W(tokens, t->prompt.tokens_ns) W(filled_at, t->prompt.filled_at) \
	W(filter_used, t->filter_used_ns) W(fair_used, t->fair_used_ns) W(deadline, t->deadline) \
	W(queue_key, t->queue_key) W(fair_vtime, t->fair_vtime) W(slice, t->slice) \
	W(slice_end, t->slice_end) W(ranked_used, t->ranked_used_ns) W(taken, t->taken_ns) \
	W(claim_end, t->claim_end) \
	W(fair_weight, t->fair_weight) \
	W(booked, t->booked_ns) W(active, t->active) W(tenant, t->tenant) W(in_demand, t->in_demand) \
	W(is_present, t->present) W(limit, t->limit) W(turn, t->turn) W(seen_seq, t->seq) \
	W(rank, t->rank) W(queue, t->queue & 7) W(stopped_on, t->stopped_on) W(first_on, t->first_on) \
	W(fresh, t->fresh) W(forked, t->forked) W(found_at_load, t->found_at_load) \
	W(has_left, t->has_left) W(chose_idle, t->chose_idle_cpu) W(handed_over, t->handed_over) \
	W(slept, t->slept) W(has_key, t->has_key) W(outranked, t->outranked) \
	W(leaves, t->leaves) W(left_turn, t->left_turn) W(in_call, in_system_call(p)) \
	W(yielded, t->yielded) \
	W(may_be_held, t->may_be_held) W(exits_at, t->exits_at) W(has_exit, t->has_kernel_exit) \
	W(i_arrived, inv->arrived_at) W(i_credit, inv->credit_ns) W(i_used, inv->used_ns) \
	W(i_ended, inv->ended_ns) W(i_function, inv->function) W(i_service, inv->service_ns) \
	W(i_born, inv->born) W(i_slept_at, inv->slept_at) W(i_slept, inv->slept_ns) \
	W(i_burst, inv->burst_ns) W(i_quiet, inv->quiet_at) W(i_state, inv->state) \
	W(i_open, inv->open) W(i_kinds, inv->boundaries) W(i_seq, inv->seq) \
	W(i_graced, inv->graced) W(i_counted, inv->counted) W(i_threads, inv->nr_threads) \
	W(has_share, has_share) W(s_tokens, s->tokens_ns) W(s_clock, s->clock) \
	W(s_filled_at, s->filled_at) W(s_usable, s->usable_ns) W(s_weight, s->weight) \
	W(s_runnable, s->runnable) W(s_line, s->line) W(s_used, s->used_ns) \
	W(s_filter, s->filter_ns) W(s_denied, s->denied) W(s_second, s->second) \
	W(s_reports, s->reports) \
	W(j_tenant, judge) W(j_has, has_judge) W(j_window, j->window) W(j_arrivals, j->arrivals) \
	W(j_granted, j->granted) W(j_tokens, j->tokens_ns) W(j_clock, j->clock) \
	W(j_filled_at, j->filled_at) W(j_usable, j->usable_ns) W(j_weight, j->weight) \
	W(j_runnable, j->runnable) W(j_line, j->line) \
	W(has_limit, has_limit) W(l_quota, l->quota_ns) W(l_used, l->used_ns) \
	W(c_served_at, c->fair_served_at) W(c_asked_at, c->asked_at) \
	W(c_looked_at, c->fair_looked_at) W(c_preempted_until, c->preempted_until) \
	W(c_outside, c->outside_used_ns) W(c_next_due, c->next_turn_is_due) \
	W(c_turn_due, c->turn_is_due) W(c_short, c->is_short_turn) W(c_own, c->may_have_own) \
	W(c_called, c->dispatch_called) W(c_dispatching, c->is_dispatching) W(c_has_run, c->has_run) \
	W(c_runs, c->runs) W(c_local_short, c->short_turn_is_local) W(c_in_release, c->in_release) \
	W(c_taken, c->is_taken) W(c_first, c->nr_first) W(c_tokens, c->prompt.tokens_ns) \
	W(c_filled_at, c->prompt.filled_at) W(c_fair, is_fair_cpu(cpu)) \
	W(r_rank, running[at].rank) W(r_deadline, running[at].deadline) \
	W(now, clock_now()) W(fair_now, fair_vtime_now) W(slice_ns, slice_ns) W(mode, mode) \
	W(policy, policy) W(unit, unit) W(kinds, boundaries) W(identity, identity) \
	W(only_sandboxes, only_sandboxes) W(cpus, nr_function_cpus) W(nr_shards, nr_shards) \
	W(window, iat_window) W(idle_ns, idle_boundary_ns) W(default_table, default_table) \
	W(overload_enabled, overload_enabled) W(overload_at, overload_wait_ns) \
	W(recover_at, recover_wait_ns) W(overload_since, overload_since) \
	W(overload_told, overload_told_at) W(recovery_told, recovery_told_at) \
	W(loader_tgid, loader_tgid) W(tgid, p->tgid) \
	W(sharing_clock, often.sharing_clock) W(overtaken, overtaken_until) \
	W(present, often.present) W(demand, often.demand) \
	W(waits_filter, often.waiting[1]) W(waits_fair, often.waiting[2]) \
	W(waits_ranked, often.waiting[3]) W(waits_system, often.waiting[4]) \
	W(waits_prompt, often.waiting[5]) W(waits_outside, often.waiting[6]) \
	W(arrivals, often.nr_arrivals) W(credit_avg, often.credit_used_avg_ns) \
	W(shares_clock, sharing.clock) W(shares_weight, sharing.weight) W(debt_at, sharing.debt_at) \
	W(last_tenant, last_tenant) W(others_began_at, others_began_at) W(nr_limited, nr_limited) \
	W(receive_port, receive_port) W(comm_a, names[0]) W(comm_b, names[1]) W(parent_a, names[2]) \
	W(parent_b, names[3]) W(owner, owner) W(sections, p->migration_disabled)

/* What the kernel half says about the task if it is asked, in the order of the same file. */
#define ANSWERS(W) \
	W(next_turn, turn) W(turn_ns, turn_ns(turn, t, inv, waiting)) \
	W(is_function, is_function(p, t)) W(is_system, is_system(p)) W(has_credit, has_credit(given)) \
	W(credit_left, credit_left(inv)) W(debt, debt_of(t)) W(debt_in_vtime, debt_in_vtime(t)) \
	W(pinned, pinned_cpu(p)) W(fair_turn, fair_turn_of(t, waiting)) \
	W(fair_vtime, fair_vtime_of(p, t, waiting)) W(ahead, fair_turns_ahead(t, waiting)) \
	W(saved_up, fair_saved_up(t)) W(group_weight, group_weight(p, t)) \
	W(due_interval, fair_due_interval(waiting)) W(due_turn, due_turn_ns(t)) \
	W(overload_wait, overload_wait()) W(expected_delay, expected_delay()) \
	W(due, due_cpus(s->weight, sharing.weight > 0 ? sharing.weight : 0)) \
	W(bucket, bucket_size(due_cpus(s->weight, sharing.weight > 0 ? sharing.weight : 0))) \
	W(longest_debt, longest_debt(due_cpus(s->weight, sharing.weight > 0 ? sharing.weight : 0))) \
	W(line, line_of(t, fair_vtime_now)) W(vtime_of_all, vtime_of_all(MODEL_CPU_TIME)) \
	W(is_daemon, is_daemon(p, t)) W(prompt_turn, prompt_turn_ns(t)) \
	W(loader_is_late, loader_is_late(clock_now())) W(debts_are_known, debts_are_known(clock_now())) \
	W(attained, attained(inv)) W(longest_slice, longest_slice()) W(farthest_key, farthest_key()) \
	W(waits_long, has_waited_long(t, clock_now())) W(stays, must_stay(p)) \
	W(out_of_quota, out_of_quota(p, t)) W(weighted, weighted(t, MODEL_CPU_TIME)) \
	W(ranked_over, ranked_slice_is_over(t, given)) \
	W(is_short, is_short_turn(t)) W(is_prompt, is_prompt(t)) W(has_rank, has_rank(p, t, given)) \
	W(tenant_of, tenant_of(p, t)) W(identity, has_inv ? identify(p, t) : 0) \
	W(fair_waiting, waiting) W(fair_waiting_own, fair_waiting_for(cpu)) \
	W(filter_waiting, filter_waiting(cpu)) W(filter_head, filter_head_waiting(cpu)) \
	W(functions_wait, functions_wait(cpu)) W(short_waits, short_turn_waiting(cpu)) \
	W(ranked_head, ranked_head_waiting(cpu)) W(claimer, claimer_waiting(cpu, t->queue_key)) \
	W(due_queue, fair_due_queue(cpu, c->fair_served_at, clock_now())) \
	W(elsewhere, may_run_elsewhere(p)) W(is_taken, is_taken(cpu))
/* clang-format on */

/* The CPU time, ns, that questions are about. */
#define MODEL_CPU_TIME    1234567ULL

#define WORD(name, value) (s64)(value),
#define NAME(name, value) #name,

static const char *const look_names[] = { LOOK(NAME) };
static const char *const answer_names[] = { ANSWERS(NAME) };

/* The names of the words above, @answers or not, and their number. */
const char *const *model_list_words(bool answers, u32 *count)
{
	*count = answers ? sizeof(answer_names) / sizeof(char *) :
			   sizeof(look_names) / sizeof(char *);
	return answers ? answer_names : look_names;
}

static bool is_fair_cpu(s32 cpu)
{
	struct bpf_cpumask *mask = fair_cpus;

	return mask && bpf_cpumask_test_cpu(cpu, cast_mask(mask));
}

/* A program's name, up to its end, in two words. */
static void copy_name(u64 *words, const char *name)
{
	for (u32 i = 0; i < 15 && name[i]; i++)
		((char *)words)[i] = name[i];
}

/* Look at @p, whose CPU is @cpu, and at the machine; or ask the kernel half about them. */
void model_look(struct task_struct *p, s32 cpu, bool answers, s64 *words)
{
	static struct task_ctx no_task;
	static struct invocation no_invocation;
	static struct group no_group;
	struct task_ctx *tctx = try_lookup_task_ctx(p), *t = tctx ?: &no_task;
	struct invocation *given = tctx ? lookup_invocation(p, tctx) : NULL,
			  *inv = given ?: &no_invocation;
	struct group *tenant_group = lookup_group(tenant(t)), *limit_group = lookup_group(t->limit),
		     *l = limit_group ?: &no_group;
	struct share *s = &(tenant_group ?: &no_group)->share;
	/* An invocation that begins is judged by the task's tenant, also before that counts it. */
	u64 judge = tctx ? tenant(t) ?: tenant_of(p, t) : 0;
	struct group *judge_group = lookup_group(judge);
	struct share *j = &(judge_group ?: &no_group)->share;
	bool has_judge = judge_group;
	struct cpu_ctx *c = lookup_cpu_ctx(cpu);
	bool has_context = tctx, has_inv = given, has_share = tenant_group, has_limit = limit_group;
	u32 at = cpu & (SFS_MAX_CPUS - 1);
	struct sandbox *sandbox = t->sandbox ? bpf_map_lookup_elem(&sandboxes, &t->sandbox) : NULL;
	u64 owner = sandbox ? sandbox->function : p->pid ? name_of_tenant(p) : 0, names[4] = {};

	copy_name(names, p->comm);
	copy_name(&names[2], p->real_parent->comm);
	if (answers) {
		u32 waiting = fair_waiting(), turn = next_turn(p, t, given);
		const s64 all[] = { ANSWERS(WORD) };

		__builtin_memcpy(words, all, sizeof(all));
	} else {
		const s64 all[] = { LOOK(WORD) };

		__builtin_memcpy(words, all, sizeof(all));
	}
}

/* What any CPU may want to know of another one: whether FILTER may preempt it, the rank and the
 * deadline of its work, whether it has a short turn or one that is due, up to when its allowance of
 * preemptions is used up, and whether a real-time task has it. */
void model_look_at_cpu(s32 cpu, s64 *words)
{
	struct cpu_ctx *c = lookup_cpu_ctx(cpu);
	const s64 all[] = { is_fair_cpu(cpu), running[cpu].rank, running[cpu].deadline,
			    c->is_short_turn, c->turn_is_due,    c->preempted_until,
			    is_taken(cpu) };

	__builtin_memcpy(words, all, sizeof(all));
}

/* Buckets of time, and the first number that is not a bucket's. */
u32 model_bucket_of(u64 ns)
{
	return bucket_of(ns);
}

u64 model_bucket_start(u32 bucket)
{
	return bucket_start(bucket);
}

u32 model_significant_bits(u64 n)
{
	return significant_bits(n);
}

/* Whether the cgroup with this id is a sandbox. */
bool model_is_sandbox(u64 id)
{
	return bpf_map_lookup_elem(&sandboxes, &id);
}

/* Whether a timer of this map is the guard's. */
bool model_is_guard(const void *map)
{
	return map == &guard_timers;
}

u64 model_mix_group_name(const char *name, u64 hash)
{
	return mix_group_name((u64)name, hash);
}

/* ------------------------------------------------------------------ the watch */

/* A callback, as sfs_kernel_rules/src/watch.rs numbers them. */
enum callback {
	SELECT_CPU,
	RUNNABLE,
	ENQUEUE,
	DISPATCH,
	RUNNING,
	TICK,
	STOPPING,
	QUIESCENT,
	YIELD,
	INIT_TASK,
	EXIT_TASK,
	RELEASE,
	EXEC,
	ENTER_ACCEPT,
	LEAVE_ACCEPT,
	RECEIVE,
	ENABLE_TASK,
};

/* Called before a callback and after it, with the task (NULL: the idle one) and a number. */
typedef void (*watch_fn)(u32 callback, struct task_struct *p, u64 number, bool is_over);

static watch_fn watch;

/* From now on the callbacks are watched; NULL: they are not. */
void model_set_watch(watch_fn new_watch)
{
	watch = new_watch;
}

static void look_on(u32 callback, struct task_struct *p, u64 number, bool is_over)
{
	if (watch)
		watch(callback, p, number, is_over);
}

#define WATCHED(callback, p, number, call) \
	{ \
		look_on(callback, p, number, false); \
		call; \
		look_on(callback, p, number, true); \
	}
#define WATCHED_RESULT(callback, p, number, type, call) \
	{ \
		type result; \
		look_on(callback, p, number, false); \
		result = call; \
		look_on(callback, p, (u64)result, true); \
		return result; \
	}

/* clang-format off */
s32 sfs_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
	WATCHED_RESULT(SELECT_CPU, p, wake_flags, s32, plain_select_cpu(p, prev_cpu, wake_flags))
void sfs_runnable(struct task_struct *p, u64 flags)
	WATCHED(RUNNABLE, p, flags, plain_runnable(p, flags))
void sfs_enqueue(struct task_struct *p, u64 flags)
	WATCHED(ENQUEUE, p, flags, plain_enqueue(p, flags))
void sfs_dispatch(s32 cpu, struct task_struct *prev)
	WATCHED(DISPATCH, prev, cpu, plain_dispatch(cpu, prev))
void sfs_running(struct task_struct *p)
	WATCHED(RUNNING, p, 0, plain_running(p))
void sfs_tick(struct task_struct *p)
	WATCHED(TICK, p, 0, plain_tick(p))
void sfs_stopping(struct task_struct *p, bool runnable)
	WATCHED(STOPPING, p, runnable, plain_stopping(p, runnable))
void sfs_quiescent(struct task_struct *p, u64 flags)
	WATCHED(QUIESCENT, p, flags, plain_quiescent(p, flags))
bool sfs_yield(struct task_struct *from, struct task_struct *to)
	WATCHED_RESULT(YIELD, from, 0, bool, plain_yield(from, to))
s32 sfs_init_task(struct task_struct *p, struct scx_init_task_args *args)
	WATCHED_RESULT(INIT_TASK, p, args->fork, s32, plain_init_task(p, args))
void sfs_exit_task(struct task_struct *p, struct scx_exit_task_args *args)
	WATCHED(EXIT_TASK, p, args->cancelled, plain_exit_task(p, args))
void sfs_enable(struct task_struct *p)
	WATCHED(ENABLE_TASK, p, 0, plain_enable(p))
void sfs_cpu_release(s32 cpu, struct scx_cpu_release_args *args)
	WATCHED(RELEASE, NULL, cpu, plain_cpu_release(cpu, args))
int on_exec(struct task_struct *p)
	WATCHED_RESULT(EXEC, p, 0, int, plain_on_exec(p))
/* clang-format on */

#define CURRENT bpf_get_current_task_btf()

	/* clang-format off */
int enter_inet_accept(void)
	WATCHED_RESULT(ENTER_ACCEPT, CURRENT, 0, int, plain_enter_inet_accept())
int enter_unix_accept(void)
	WATCHED_RESULT(ENTER_ACCEPT, CURRENT, 0, int, plain_enter_unix_accept())
	/* clang-format on */

	/* What the traced function has returned. */
	static u64 returned_here(void)
{
	u64 value = 0;

	bpf_get_func_ret(NULL, &value);
	return value;
}

/* clang-format off */
void leave_inet_accept(void)
	WATCHED(LEAVE_ACCEPT, CURRENT, returned_here(), plain_leave_inet_accept())
void leave_unix_accept(void)
	WATCHED(LEAVE_ACCEPT, CURRENT, returned_here(), plain_leave_unix_accept())
	/* clang-format on */

	/* The number of a receive: the bytes, and above them whether it counts by its port. */
	static u64 received(bool counts)
{
	return (u32)returned_here() | (u64)counts << 32;
}

static bool is_of_port(const struct socket *sock)
{
	return !receive_port || sock->sk->__sk_common.skc_dport == receive_port;
}

/* clang-format off */
void leave_inet_recvmsg(struct socket *sock)
	WATCHED(RECEIVE, CURRENT, received(is_of_port(sock)), plain_leave_inet_recvmsg(sock))
void leave_inet6_recvmsg(struct socket *sock)
	WATCHED(RECEIVE, CURRENT, received(is_of_port(sock)), plain_leave_inet6_recvmsg(sock))
void leave_unix_stream_recvmsg(void)
	WATCHED(RECEIVE, CURRENT, received(!receive_port), plain_leave_unix_stream_recvmsg())
	/* clang-format on */

	MODEL_END

#endif /* __MODEL_WATCH_H */
