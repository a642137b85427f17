/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leave: a task that is preempted inside the kernel leaves it first. It may hold a lock: a process
 * that exits takes that of each file that it has mapped, such as the C library, and each fork on
 * the machine needs the same one. If it then waited behind all shorter work, so would they: a
 * process that starts invocations was seen to wait for 0.38 s.
 *
 * The kernel does not tell which locks a task holds. But the registers of its user mode tell
 * whether it is in a system call. (Faults are not recognized, nor are kernel threads: these have
 * short turns.) Such a task gets one more turn, a short one, before all other work. It is charged
 * as the turn that was cut short, and the task gets no second one before its next ordinary turn:
 * so a process that makes one system call after the other gains no CPU time by it. It does hold up
 * who has preempted it, until the next tick.
 */
#ifndef __SFS_LEAVE_BPF_H
#define __SFS_LEAVE_BPF_H

/* CPU time for that; turns end at ticks. System calls that wait for nothing seldom take longer, and
 * an exit ends. */
#define LEAVE_NS NSEC_PER_MSEC
#define EXIT_NS  (20 * NSEC_PER_MSEC)

/* Return true if @p, which has just stopped, is in a system call. */
static bool in_system_call(struct task_struct *p)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);

#if defined(__TARGET_ARCH_x86)
	/* The call's number. An interrupt or a fault writes a negative one. */
	return (s64)regs->orig_ax >= 0;
#elif defined(__TARGET_ARCH_arm64)
	return regs->syscallno >= 0; /* NO_SYSCALL is -1 */
#else
	return false;
#endif
}

/*
 * Return true if @p, queued with @enq_flags for a turn of kind @turn, was cut short in an ordinary
 * turn and may be inside the kernel, or wakes up while it exits: it has waited for a lock then, and
 * may have been given it already.
 */
static bool must_leave(struct task_struct *p, const struct task_ctx *tctx, u32 turn, u64 enq_flags)
{
	if (turn == TURN_SYSTEM || turn == TURN_PROMPT || tctx->yielded || tctx->waits_since ||
	    (enq_flags & SCX_ENQ_LAST))
		return false;
	if (enq_flags & SCX_ENQ_WAKEUP)
		return p->flags & PF_EXITING;
	return tctx->stopped_on >= 0 && turn == tctx->turn && in_system_call(p);
}

/* Queue @p, with a turn of kind @turn ahead of it, where each CPU looks first. If it was cut short
 * by work of this scheduler, its own CPU does so next, and no other one need wake up. */
static void leave_first(struct task_struct *p, struct task_ctx *tctx, u32 turn, u64 enq_flags)
{
	tctx->leaves = true;
	tctx->left_turn = turn;
	tctx->turn = TURN_PROMPT;
	tctx->prompt_ns = tctx->turn_used_ns + (p->flags & PF_EXITING ? EXIT_NS : LEAVE_NS);
	tctx->queued_at = 0;
	note_waiting(tctx, DSQ_PROMPT);
	scx_bpf_dsq_insert(p, DSQ_PROMPT, prompt_turn_ns(tctx), enq_flags);
	if (enq_flags & (SCX_ENQ_WAKEUP | SCX_ENQ_REENQ))
		kick_idle_cpu(p, pinned_cpu(p));
}

/* Return true if the task's turn is to leave the kernel. */
static bool is_leaving(const struct task_ctx *tctx)
{
	return tctx->turn == TURN_PROMPT && tctx->leaves;
}

/* Return the kind of turn that the task's CPU time is charged as. */
static u32 charged_turn(const struct task_ctx *tctx)
{
	return is_leaving(tctx) ? tctx->left_turn : tctx->turn;
}

/* Return true if the task's turn is short, and no other short turn may cut it short. */
static bool has_short_turn(const struct task_ctx *tctx)
{
	return is_short_turn(tctx) && !is_leaving(tctx);
}

#endif /* __SFS_LEAVE_BPF_H */
