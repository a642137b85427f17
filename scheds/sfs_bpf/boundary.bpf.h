/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Boundary: the event that begins an invocation. Each kind is detected where it
 * happens: fork and idle at a wake-up, exec, accept and receive in small programs on
 * the kernel functions that do it, hints by the loader.
 */
#ifndef __SFS_BOUNDARY_BPF_H
#define __SFS_BOUNDARY_BPF_H

static void count_begun(u32 kind)
{
	switch (kind) {
	case SFS_BOUNDARY_FORK:
		count(SFS_BEGUN_BY_FORK);
		break;
	case SFS_BOUNDARY_EXEC:
		count(SFS_BEGUN_BY_EXEC);
		break;
	case SFS_BOUNDARY_ACCEPT:
		count(SFS_BEGUN_BY_ACCEPT);
		break;
	case SFS_BOUNDARY_RECEIVE:
		count(SFS_BEGUN_BY_RECEIVE);
		break;
	case SFS_BOUNDARY_HINT:
		count(SFS_BEGUN_BY_HINT);
		break;
	case SFS_BOUNDARY_IDLE:
		count(SFS_BEGUN_BY_IDLE);
		break;
	}
}

/*
 * Return true if a boundary of @kind belongs to the invocation in progress, which
 * another kind saw just before. A receive also belongs to an invocation that
 * another receive has just begun: a runtime that reports its result and then asks
 * for the next request receives two answers.
 */
static bool is_same_invocation(const struct invocation *inv, u32 kind)
{
	if (!inv->open || inv->used_ns >= MERGE_NS)
		return false;
	return kind == SFS_BOUNDARY_RECEIVE || !(inv->boundaries & kind);
}

/* Handle a boundary of @kind, if that kind was asked for. */
static void cross_boundary(struct task_struct *p, struct task_ctx *tctx, struct invocation *inv,
			   u32 kind, u64 arrived_at)
{
	bool waited = tctx->woken_at && arrived_at == tctx->woken_at;

	if (!(boundaries & kind))
		return;
	tctx->woken_at = 0;
	tctx->slept = false;
	if (is_same_invocation(inv, kind)) {
		inv->boundaries |= kind;
		count(SFS_MERGED);
		return;
	}
	begin_invocation(p, tctx, inv, kind, arrived_at);
	if (!waited)
		tctx->queued_ns = 0; /* it waited for something else */
	count_begun(kind);
	count(SFS_ARRIVALS);
	/* Processes from before load arrived earlier, one after the other. */
	if ((kind == SFS_BOUNDARY_FORK && !tctx->forked) || !begins_judged(p, tctx))
		return;
	inv->counted = 1;
	record_arrival(arrived_at);
}

/* ------------------------------------------------------------ fork and idle */

/* @p moves from its sandbox to the one with @id; 0: to none. */
static void change_sandbox(struct task_struct *p, struct task_ctx *tctx, u64 id)
{
	struct invocation *inv;

	if (unit == SFS_UNIT_CGROUP) {
		inv = sandbox_invocation(tctx->sandbox);
		if (inv)
			leave_invocation(p, tctx, inv);
		inv = sandbox_invocation(id);
		if (inv)
			__sync_fetch_and_add(&inv->nr_threads, 1);
	} else if (keeps_invocation(p) && !id) {
		end_invocation(p, tctx, &tctx->own);
		tctx->own.state = INV_NONE;
	}
	tctx->fresh = id != 0; /* a task that enters a sandbox starts there */
	tctx->sandbox = id;
}

/*
 * Update @p's sandbox: @p may have moved to another cgroup, or its cgroup may have become a
 * sandbox, or ceased to be one. The task's CPU calls this with its run queue locked. The
 * task itself at a boundary, and the loader with a hint, call it without the lock. The second
 * caller continues with the old sandbox, and looks again the next time.
 */
static void update_sandbox(struct task_struct *p, struct task_ctx *tctx)
{
	u32 generation = sandbox_generation;
	u64 id;

	if (!only_sandboxes)
		return;
	id = cgroup_id_of_task(p);
	if (id == tctx->cgroup && generation == tctx->sandbox_generation)
		return;
	if (__sync_lock_test_and_set(&tctx->in_update, 1))
		return;
	tctx->cgroup = id;
	tctx->sandbox_generation = generation;
	/* If @p moves in between, this finds its new cgroup's sandbox; the next look repeats it. */
	id = find_sandbox(p);
	if (id != tctx->sandbox)
		change_sandbox(p, tctx, id);
	__sync_lock_test_and_set(&tctx->in_update, 0);
}

/* Return true if the start of @p is also the start of its unit. A thread that joins
 * its process, or a child that joins its sandbox, spends the credit of that. */
static bool starts_unit(const struct task_struct *p, const struct invocation *inv)
{
	if (unit == SFS_UNIT_PROCESS)
		return p->pid == p->tgid;
	if (unit == SFS_UNIT_CGROUP)
		return inv->state == INV_NONE || inv->state == INV_ENDED;
	return true;
}

/*
 * A function task from before this scheduler was loaded wakes up, most likely for a request.
 * A server that was in accept() at load crosses no boundary there. Its unit may use S until
 * its first boundary is seen. This counts no invocation.
 */
static void restore_credit(struct invocation *inv)
{
	if (inv->state != INV_NONE)
		return;
	inv->credit_ns = slice_ns;
	inv->state = INV_CREDIT;
}

/* A sleep that is long enough for others to use the CPU. Shorter ones are mostly locks and page
 * faults, which say nothing about a function. */
#define LONG_SLEEP_NS NSEC_PER_MSEC

/* Return true if the first long sleep of @inv is still to be seen. */
static bool awaits_sleep(const struct invocation *inv)
{
	return policy == SFS_POLICY_LEARNED && inv->open && !inv->burst_ns;
}

/*
 * A thread of @inv's unit wakes up at @now: note the CPU time that the unit used before its first
 * long sleep, from which the loader learns (rank.bpf.h). If another thread has used CPU time since
 * the last one went to sleep, the unit was not asleep. Threads that sleep and wake up at the same
 * time write without a lock: an estimate is enough.
 */
static void note_burst(struct invocation *inv, u64 now)
{
	if (!awaits_sleep(inv) || !inv->slept_at || inv->used_ns != inv->slept_ns)
		return;
	if (time_delta(now, inv->slept_at) >= LONG_SLEEP_NS)
		inv->burst_ns = inv->used_ns ? inv->used_ns : 1;
}

/*
 * @p is about to become runnable: for the first time, after a sleep (@wakeup), or
 * only because one of its attributes changes. A fork that fails later never gets
 * here.
 */
static struct invocation *note_runnable(struct task_struct *p, struct task_ctx *tctx, bool wakeup,
					u64 now)
{
	struct invocation *inv;
	bool fresh;

	update_sandbox(p, tctx);
	update_limit(p, tctx);
	inv = lookup_invocation(p, tctx);
	fresh = tctx->fresh;
	tctx->fresh = false;
	if (!inv || !is_function(p, tctx))
		return inv;
	if (fresh && starts_unit(p, inv))
		cross_boundary(p, tctx, inv, SFS_BOUNDARY_FORK, now);
	if (!wakeup)
		return inv;
	tctx->slept = true;
	if (tctx->found_at_load) {
		tctx->found_at_load = false;
		restore_credit(inv);
	}
	if (!inv->open) {
		tctx->woken_at = now;
		tctx->queued_ns = 0;
	}
	note_burst(inv, now);
	if ((boundaries & SFS_BOUNDARY_IDLE) && inv->slept_at &&
	    time_delta(now, inv->slept_at) >= idle_boundary_ns) {
		inv->slept_at = 0;
		cross_boundary(p, tctx, inv, SFS_BOUNDARY_IDLE, now);
	}
	if ((boundaries & SFS_BOUNDARY_RECEIVE) && !has_credit(inv))
		grant_grace(inv);
	return inv;
}

/* Boundaries that say nothing of the end of an invocation: it has ended at the last sleep before
 * the next one begins. */
#define ENDLESS (SFS_BOUNDARY_IDLE | SFS_BOUNDARY_RECEIVE | SFS_BOUNDARY_HINT)

/* @p goes to sleep at @now. */
static void note_sleep(const struct task_struct *p, const struct task_ctx *tctx,
		       struct invocation *inv, u64 now)
{
	bool endless = boundaries & ENDLESS, first = awaits_sleep(inv);

	if ((!endless && !first) || !is_function(p, tctx))
		return;
	if (endless)
		inv->quiet_at = now;
	if (!first && !(boundaries & SFS_BOUNDARY_IDLE))
		return;
	inv->slept_at = now;
	inv->slept_ns = inv->used_ns;
}

/* ---------------------------------------------------- exec, accept, receive */

/*
 * Return the current task's invocation, and its context in @tctx, if it is a function
 * task; else NULL. Threads of io_uring serve their process.
 */
static struct invocation *current_invocation(struct task_struct *p, struct task_ctx **tctx)
{
	struct invocation *inv;

	*tctx = try_lookup_task_ctx(p);
	if (!*tctx)
		return NULL;
	update_sandbox(p, *tctx);
	inv = lookup_invocation(p, *tctx);
	return inv && is_function(p, *tctx) ? inv : NULL;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p)
{
	struct task_ctx *tctx;
	struct invocation *inv = current_invocation(p, &tctx);

	if (!inv)
		return 0;
	cross_boundary(p, tctx, inv, SFS_BOUNDARY_EXEC, clock_now());
	if (identity == SFS_IDENTITY_COMM && !(inv->function & SFS_FUNCTION_NAMED))
		inv->function = identify(p, tctx);
	return 0;
}

/*
 * A unit that asks for its next connection has served the last one. If it has
 * several threads, another thread may still serve the last one, which then ends
 * when the next one begins.
 */
static void enter_accept(void)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx;
	struct invocation *inv = current_invocation(p, &tctx);

	if (!inv)
		return;
	if (inv->nr_threads <= 1) {
		inv->quiet_at = clock_now();
		end_invocation(p, tctx, inv);
	}
	grant_grace(inv);
}

/* A connection has arrived. If the task waited for it, it arrived when the task
 * woke up. Otherwise its time of arrival is unknown, and the present is used. */
static void leave_accept(u64 err)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx;
	struct invocation *inv;

	if ((s32)err)
		return;
	inv = current_invocation(p, &tctx);
	if (inv)
		cross_boundary(p, tctx, inv, SFS_BOUNDARY_ACCEPT, tctx->woken_at ?: clock_now());
}

SEC("fentry/inet_accept")
int BPF_PROG(enter_inet_accept)
{
	enter_accept();
	return 0;
}

SEC("fexit/inet_accept")
int BPF_PROG(leave_inet_accept)
{
	u64 err = -1;

	bpf_get_func_ret(ctx, &err);
	leave_accept(err);
	return 0;
}

SEC("fentry/unix_accept")
int BPF_PROG(enter_unix_accept)
{
	enter_accept();
	return 0;
}

SEC("fexit/unix_accept")
int BPF_PROG(leave_unix_accept)
{
	u64 err = -1;

	bpf_get_func_ret(ctx, &err);
	leave_accept(err);
	return 0;
}

/* @got bytes of data have arrived. They count if the task slept for them, in the
 * receive itself or in poll() before. */
static void leave_receive(u64 got)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx;
	struct invocation *inv;

	if ((s32)got <= 0)
		return;
	inv = current_invocation(p, &tctx);
	if (inv && tctx->slept)
		cross_boundary(p, tctx, inv, SFS_BOUNDARY_RECEIVE, tctx->woken_at ?: clock_now());
}

static bool is_receive_port(struct socket *sock)
{
	struct sock *sk = sock->sk;

	return !receive_port || (sk && sk->__sk_common.skc_dport == receive_port);
}

SEC("fexit/inet_recvmsg")
int BPF_PROG(leave_inet_recvmsg, struct socket *sock)
{
	u64 got = 0;

	bpf_get_func_ret(ctx, &got);
	if (is_receive_port(sock))
		leave_receive(got);
	return 0;
}

SEC("fexit/inet6_recvmsg")
int BPF_PROG(leave_inet6_recvmsg, struct socket *sock)
{
	u64 got = 0;

	bpf_get_func_ret(ctx, &got);
	if (is_receive_port(sock))
		leave_receive(got);
	return 0;
}

SEC("fexit/unix_stream_recvmsg")
int BPF_PROG(leave_unix_stream_recvmsg)
{
	u64 got = 0;

	bpf_get_func_ret(ctx, &got);
	if (!receive_port)
		leave_receive(got);
	return 0;
}

/* -------------------------------------------------------------------- hints */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SFS_HINT_BATCH);
	__type(key, u32);
	__type(value, struct sfs_hint);
} hints SEC(".maps");

/* The first request may have arrived before its process was started, but at most
 * this long before. */
#define COLD_START_NS (10 * NSEC_PER_SEC)

/* Apply @hint to @p. Count the outcome in @batch. Return true if @p, or another thread
 * that gets credit from the hint, may be waiting in FAIR. */
static bool apply_hint(struct task_struct *p, const struct sfs_hint *hint, u64 now,
		       struct sfs_hint_batch *batch)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);
	struct invocation *inv;

	if (tctx)
		update_sandbox(p, tctx);
	inv = tctx ? lookup_invocation(p, tctx) : NULL;
	if (!inv || !is_function(p, tctx) || inv->state == INV_ENDED) {
		batch->foreign++;
		return false;
	}
	/* The pid may have belonged to another process when the request arrived. */
	if (hint->arrived_at && p->start_time > hint->arrived_at + COLD_START_NS) {
		batch->stale++;
		return false;
	}
	cross_boundary(p, tctx, inv, SFS_BOUNDARY_HINT, hint->arrived_at ?: now);
	/* The platform knows best, even about an invocation that another boundary began. */
	if (hint->arrived_at)
		inv->arrived_at = hint->arrived_at;
	if (hint->function)
		inv->function = hint->function | SFS_FUNCTION_NAMED;
	inv->service_ns = hint->service_ns;
	batch->applied++;
	return inv->nr_threads > 1 || (tctx->turn == TURN_FAIR && tctx->queued_at);
}

#endif /* __SFS_BOUNDARY_BPF_H */
