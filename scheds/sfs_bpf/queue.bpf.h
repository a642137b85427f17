/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queue: number of tasks waiting in each shared queue. Asking the kernel costs a search for
 * the queue, and a dispatch needs the length of all of them. So the tasks are counted here: a
 * task counts from before its insertion until it runs or is no longer runnable. A task on its
 * way into a queue, or from a queue to a CPU, also counts, at the cost of a useless check.
 * A queue that holds a task does not count as empty. No CPU relies on that before it idles: it
 * asks the kernel first (take_uncounted()).
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

/* Return the number of the shared queue that counts the task, from its word; 0: none. The other
 * bits are the number of the change, so no two changes write the same word. */
static u32 queue_in(u32 word)
{
	return word & (NR_SHARED - 1);
}

/* The task is about to wait in @dsq, or in no counted queue. Return the change, for
 * undo_waiting(). Some callers do not lock the task's run queue, hence the exchange: the one that
 * takes a word out also decrements the count of its queue. */
__global_func u64 note_waiting(struct task_ctx *tctx __arg_nonnull, u64 dsq)
{
	u32 queue = counted_queue(dsq), before, after;

	after = __sync_fetch_and_add(&tctx->queue_changes, NR_SHARED) | queue;
	count_waiting(queue, 1);
	before = __sync_lock_test_and_set(&tctx->queue, after);
	count_waiting(queue_in(before), -1);
	return (u64)before << 32 | after;
}

static void note_waits_no_more(struct task_ctx *tctx)
{
	if (queue_in(tctx->queue))
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

/*
 * A move of the task, without the lock of its run queue, has failed: the task has left its old
 * queue. Take back @change, the result of note_waiting(), unless there has been another one since:
 * whoever made that has decremented the count, and knows better where the task is.
 */
static void undo_waiting(struct task_ctx *tctx, u64 change)
{
	u32 before = change >> 32, after = change;

	count_waiting(queue_in(before), 1);
	if (__sync_val_compare_and_swap(&tctx->queue, after, before) == after)
		count_waiting(queue_in(after), -1);
	else
		count_waiting(queue_in(before), -1);
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
