/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens outside of the plain life of a task: other classes, sections without migration,
 * and the programs on the kernel's functions.
 */
#ifndef __MODEL_OUTSIDE_H
#define __MODEL_OUTSIDE_H

void model_set_prio(struct task_struct *p, s32 prio)
{
	p->prio = prio;
}

u16 *model_migration_disabled(struct task_struct *p)
{
	return &p->migration_disabled;
}

/* ops.cpu_release() and ops.cpu_acquire(). */
void model_cpu_release(s32 cpu)
{
	half_cpu_release(cpu);
}

void model_cpu_acquire(s32 cpu)
{
	half_cpu_acquire(cpu);
}

/* ------------------------------------------------- sections without migration */

/* Return whether @p's mask is that of its section. */
bool model_is_confined(const struct task_struct *p)
{
	return p->cpus_ptr != &p->cpus_mask;
}

/* set_cpus_allowed_common(): the mask of a section is one @cpu; a negative one gives @p its own
 * mask back. nr_cpus_allowed does not change. */
void model_confine(struct task_struct *p, s32 cpu)
{
	static struct cpumask *one[SFS_MAX_CPUS];

	p->cpus_ptr = &p->cpus_mask;
	if (cpu < 0)
		return;
	if (!one[cpu]) {
		one[cpu] = calloc(1, sizeof(*one[cpu]));
		if (!one[cpu])
			__builtin_trap();
		one[cpu]->bits[cpu / 64] |= 1UL << (cpu % 64);
	}
	p->cpus_ptr = one[cpu];
}

/* ------------------------------------------------------------ fork and exec */

/* copy_process(): @child gets what it inherits. */
void model_clone(struct task_struct *parent, struct task_struct *child, bool is_thread)
{
	child->real_parent = is_thread ? parent->real_parent : parent->group_leader;
	if (is_thread) {
		child->tgid = parent->tgid;
		child->group_leader = parent->group_leader;
	}
	child->sched_task_group = parent->sched_task_group;
	child->scx.weight = parent->scx.weight;
	child->cpus_mask = parent->cpus_mask;
	child->nr_cpus_allowed = parent->nr_cpus_allowed;
	__builtin_memcpy(child->comm, parent->comm, sizeof(child->comm));
}

/* scx_cancel_fork() */
void model_cancel_task(struct task_struct *p)
{
	struct scx_exit_task_args args = { .cancelled = true };

	sfs_exit_task(p, &args);
}

/* The loader attaches this program if exec is a boundary, or gives a function its name. */
void model_exec(struct task_struct *p, u32 name)
{
	__builtin_memcpy(p->comm, "program", sizeof("program"));
	p->comm[7] = 'a' + name;
	if ((boundaries & SFS_BOUNDARY_EXEC) || identity == SFS_IDENTITY_COMM)
		on_exec(p);
}

/* -------------------------------------------------------- accept and receive */

/* What the traced function returns, for each CPU: bpf_get_func_ret(). */
static u64 returned[SFS_MAX_CPUS];

/* The loader attaches these programs if accept is a boundary. */
void model_enter_accept(u32 protocol, s32 unused)
{
	if (!(boundaries & SFS_BOUNDARY_ACCEPT))
		return;
	if (protocol == 2)
		enter_unix_accept();
	else
		enter_inet_accept();
}

void model_leave_accept(u32 protocol, s32 err)
{
	returned[bpf_get_smp_processor_id()] = err;
	if (!(boundaries & SFS_BOUNDARY_ACCEPT))
		return;
	if (protocol == 2)
		leave_unix_accept();
	else
		leave_inet_accept();
}

/* And these if receive is one. Every other connection is to the port of the platform. */
void model_leave_receive(u32 protocol, s32 got)
{
	static struct sock socks[SFS_MAX_CPUS];
	u32 here = bpf_get_smp_processor_id();
	struct socket socket = { .sk = &socks[here] };

	returned[here] = got;
	socks[here].__sk_common.skc_dport = got & 1 ? receive_port : receive_port + 1;
	if (!(boundaries & SFS_BOUNDARY_RECEIVE))
		return;
	if (protocol == 0)
		leave_inet_recvmsg(&socket);
	else if (protocol == 1)
		leave_inet6_recvmsg(&socket);
	else
		leave_unix_stream_recvmsg();
}

long bpf_get_func_ret(void *arguments, u64 *value)
{
	*value = returned[bpf_get_smp_processor_id()];
	return 0;
}

/* What begins an invocation, and which tasks share one. */
void model_tune_boundaries(u32 kinds, u32 shared_by, u64 idle_ns, u16 port)
{
	boundaries = kinds;
	unit = shared_by;
	idle_boundary_ns = idle_ns;
	receive_port = port;
}

/* ------------------------------------------------- what promises depend on */

u32 model_turn_in(const struct task_ctx *tctx)
{
	return tctx->turn;
}

u64 model_queued_at_in(const struct task_ctx *tctx)
{
	return tctx->queued_at;
}

/* How far @p, which begins a turn in FAIR, is behind FAIR's virtual time; negative: ahead. */
s64 model_behind_fair(const struct task_struct *p)
{
	return fair_vtime_now - p->scx.dsq_vtime;
}

/* How far behind it may be: a sleeper saves up a turn. */
u64 model_saves_up(struct task_struct *p)
{
	return half_saved_up(try_lookup_task_ctx(p));
}

/* Return whether processes with credit go before other functions. */
bool model_serves_filter(void)
{
	return policy == SFS_POLICY_SFS && mode == SFS_MODE_FILTER;
}

#endif /* __MODEL_OUTSIDE_H */
