/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queue: how many tasks wait in each queue that all CPUs share. To ask the kernel costs a
 * search for the queue, and a dispatch wants to know of all of them. So the tasks are counted
 * here: from before one is inserted until it runs, or does not want to run any more. A task
 * that is on its way into a queue, or from there to a CPU, counts: that costs a look in vain.
 * A queue with a task in it is not taken for empty, except where a mover (undo_waiting())
 * loses a race against two changes of the task's attributes at a time; kick_for() mends that.
 * No CPU idles on the word of a count: it asks the kernel first (take_uncounted()).
 */
#ifndef __SFS_QUEUE_BPF_H
#define __SFS_QUEUE_BPF_H

/* Return the number of @dsq, if the tasks in it are counted; else 0. */
static u32 counted_queue(u64 dsq)
{
	if (dsq >= (u64)NR_SHARED << SHARED_SHIFT || (nr_shards > 1 && dsq < DSQ_FAIR))
		return 0;
	return dsq >> SHARED_SHIFT;
}

/* Return where the tasks are counted that wait in @queue. */
static volatile s64 *waiting_in(u32 queue)
{
	if (!__builtin_constant_p(queue))
		barrier_var(queue);	/* or the compiler drops what the verifier must see */
	return &often.waiting[queue & (NR_SHARED - 1)];
}

static void count_waiting(u32 queue, s64 n)
{
	if (queue)
		__sync_fetch_and_add(waiting_in(queue), n);
}

/* The task is about to wait in @dsq, or in none that is counted. Return the number of the queue
 * that has counted it so far, or 0. Also called without the lock of the task's run queue; hence
 * the exchange: whoever takes a number out uncounts it. */
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

/* A task without a context waits in @dsq. Nobody can tell when it does no more, so the queue is
 * not taken for empty from now on. */
static void note_unknown_waiting(u64 dsq)
{
	u32 queue = counted_queue(dsq);

	if (!(__sync_fetch_and_or(&often.unknown, 1ULL << queue) & (1ULL << queue)))
		count_waiting(queue, 1);
}

/* The task, in a queue, was to be moved to @dsq by who has not locked its run queue, and is
 * not there any more: note_waiting() had returned @before. */
static void undo_waiting(struct task_ctx *tctx, u64 dsq, u32 before)
{
	u32 queue = counted_queue(dsq);

	count_waiting(before, 1);
	if (__sync_val_compare_and_swap(&tctx->queue, queue, before) != queue)
		queue = before;
	count_waiting(queue, -1);
}

/* Return how many tasks wait in @dsq. */
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
