/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queue: number of tasks waiting in each shared queue. Asking the kernel costs a search for
 * the queue, and a dispatch needs the length of all of them. So the tasks are counted here: a
 * task counts from before its insertion until it runs or is no longer runnable. A task on its
 * way into a queue, or from a queue to a CPU, also counts, at the cost of a useless check.
 * A queue that holds a task does not count as empty, with one exception: a mover
 * (undo_waiting()) loses a race against two simultaneous changes of the task's attributes.
 * kick_for() repairs that. No CPU relies on a count before it idles: it asks the kernel first
 * (take_uncounted()).
 */
#ifndef __SFS_QUEUE_BPF_H
#define __SFS_QUEUE_BPF_H

/* Return the number of @dsq if its tasks are counted, else 0. */
static u32 counted_queue(u64 dsq)
{
	if (dsq >= (u64)NR_SHARED << SHARED_SHIFT || (nr_shards > 1 && dsq < DSQ_FAIR))
		return 0;
	return dsq >> SHARED_SHIFT;
}

/* Return the counter of tasks waiting in @queue. */
static volatile s64 *waiting_in(u32 queue)
{
	if (!__builtin_constant_p(queue))
		barrier_var(queue); /* or the compiler drops the mask that the verifier needs */
	return &often.waiting[queue & (NR_SHARED - 1)];
}

static void count_waiting(u32 queue, s64 n)
{
	if (queue)
		__sync_fetch_and_add(waiting_in(queue), n);
}

/* The task is about to wait in @dsq, or in no counted queue. Return the number of the queue that
 * has counted it so far, or 0. Some callers do not lock the task's run queue, hence the exchange:
 * the one that takes a number out also decrements its count. */
__global_func u32 note_waiting(struct task_ctx *tctx __arg_nonnull, u64 dsq)
{
	u32 queue = counted_queue(dsq), before;

	count_waiting(queue, 1);
	before = __sync_lock_test_and_set(&tctx->queue, queue);
	count_waiting(before, -1);
	return before;
}

static void note_waits_no_more(struct task_ctx *tctx)
{
	if (tctx->queue)
		note_waiting(tctx, 0);
}

/* A task without a context waits in @dsq. The end of its wait cannot be seen, so the queue never
 * counts as empty from now on. */
static void note_unknown_waiting(u64 dsq)
{
	u32 queue = counted_queue(dsq);

	if (!(__sync_fetch_and_or(&often.unknown, 1ULL << queue) & (1ULL << queue)))
		count_waiting(queue, 1);
}

/* A move of the task to @dsq, without the lock of its run queue, has failed: the task has left
 * its old queue. @before is the result of note_waiting(). */
static void undo_waiting(struct task_ctx *tctx, u64 dsq, u32 before)
{
	u32 queue = counted_queue(dsq);

	count_waiting(before, 1);
	if (__sync_val_compare_and_swap(&tctx->queue, queue, before) != queue)
		queue = before;
	count_waiting(queue, -1);
}

/* Return the number of tasks waiting in @dsq. */
static u32 queue_length(u64 dsq)
{
	u32 queue = counted_queue(dsq);
	s32 queued;

	if (queue)
		return *waiting_in(queue);
	queued = scx_bpf_dsq_nr_queued(dsq);
	return queued > 0 ? queued : 0;
}

#endif /* __SFS_QUEUE_BPF_H */
