/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points of the kernel half at which other CPUs may proceed: each helper, each atomic operation,
 * and each access to memory outside of the stack, which clang reports
 * (-fsanitize-coverage=trace-loads,trace-stores). At a few of them, which src/race.rs draws, the
 * callback pauses. A part of model.c.
 */
#ifndef __MODEL_POINTS_H
#define __MODEL_POINTS_H

/* The functions of the model between these two are helpers of the kernel: other CPUs see all of
 * their work or nothing. */
/* clang-format off */
#define MODEL_BEGIN \
	_Pragma("clang attribute push(__attribute__((noinline)), apply_to = function)") \
	_Pragma("clang attribute push(__attribute__((no_sanitize(\"coverage\"))), apply_to = function)")
#define MODEL_END _Pragma("clang attribute pop") _Pragma("clang attribute pop")
/* clang-format on */

/* Pauses the callback, and sets the time to the next pause anew. */
extern void model_pause(void);

/* A helper and an atomic operation count for so much, a plain access for `access_counts`. */
#define HELPER_COUNTS 64
/* Locals are not further above the frame of a function called from theirs than this. */
#define STACK_BYTES (64 << 10)

/* Counts an access of the CPU to a cache line (src/lines.rs). */
extern void model_touches(const void *place, bool is_store);

static bool is_traced;
static s64 until_pause;
static u32 access_counts;
static bool may_pause;

MODEL_BEGIN

/* From now on accesses are counted, or not. */
void model_trace(bool on)
{
	is_traced = on;
}

/* From now on callbacks pause, or do not; the next time after this many counts. */
void model_set_pause(bool may, s64 counts, u32 access)
{
	may_pause = may;
	until_pause = counts;
	access_counts = access;
}

/* The same, without a new time. Return what was before. */
bool model_let_pause(bool may)
{
	bool before = may_pause;

	may_pause = may;
	return before;
}

static void pass(u32 counts)
{
	until_pause -= counts;
	if (until_pause <= 0)
		model_pause();
}

/* A helper begins. */
void model_point(void)
{
	if (may_pause)
		pass(HELPER_COUNTS);
}

static void access(const void *place, bool is_store)
{
	bool may = may_pause && access_counts;

	if ((!may && !is_traced) || (u64)place - (u64)__builtin_frame_address(0) < STACK_BYTES)
		return;
	if (is_traced)
		model_touches(place, is_store);
	if (may)
		pass(access_counts);
}

/* An atomic operation begins. */
void model_atomic(const void *place)
{
	model_point();
	if (is_traced)
		model_touches(place, true);
}

#define ACCESS_OF(bytes) \
	void __sanitizer_cov_load##bytes(const void *place) \
	{ \
		access(place, false); \
	} \
	void __sanitizer_cov_store##bytes(const void *place) \
	{ \
		access(place, true); \
	}

ACCESS_OF(1)
ACCESS_OF(2)
ACCESS_OF(4)
ACCESS_OF(8)
ACCESS_OF(16)

MODEL_END

#define AT(p)                               model_atomic((const void *)(p))
#define __sync_fetch_and_add(p, ...)        (AT(p), __sync_fetch_and_add(p, __VA_ARGS__))
#define __sync_fetch_and_sub(p, ...)        (AT(p), __sync_fetch_and_sub(p, __VA_ARGS__))
#define __sync_fetch_and_or(p, ...)         (AT(p), __sync_fetch_and_or(p, __VA_ARGS__))
#define __sync_lock_test_and_set(p, ...)    (AT(p), __sync_lock_test_and_set(p, __VA_ARGS__))
#define __sync_val_compare_and_swap(p, ...) (AT(p), __sync_val_compare_and_swap(p, __VA_ARGS__))

#endif /* __MODEL_POINTS_H */
