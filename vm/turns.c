// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into QEMU with -icount, so that its main loop and the thread of the
 * emulated CPUs never run at the same time, and that the host's clock has no say.
 *
 * With sleep=off it is the main loop that moves virtual time on when all CPUs
 * are halted. Each time it does so, and each time a timer expires, it is woken
 * up once more than needed, and looks again while the CPUs run. A CPU that it
 * finds halted may not have accounted for its last instructions, nor have
 * stopped the timer by which QEMU goes from CPU to CPU. Time then moves on by
 * another amount than in a run in which the host's scheduler chose otherwise.
 *
 * Here whoever runs has the turn. The main loop gives it up while it polls, the
 * CPUs while they sleep, all of them halted. QEMU calls these functions from
 * shared libraries, which is why a preloaded one can come in between.
 *
 * The CPUs ask for the time of day where a TLB is flushed: one that was little used
 * for 100 ms of the host's time becomes smaller (accel/tcg/cputlb.c). The guest
 * sees how large it is: Linux may leave an entry that has lost a restriction, or its
 * "accessed" bit, in the TLB, and an entry that is no longer there costs no fault, or
 * sets the bit again. So the CPUs have a clock of their own.
 *
 * With many CPUs (TURNS_MANY in the environment) two of QEMU's functions are replaced as well.
 * QEMU visits each CPU in each round, halted or not, for the instructions until the next
 * timer divided by the number of all CPUs. With 64 CPUs, one of them busy, that is some 600
 * rounds until each timer, with 64 visits each: nearly all of the host's time. Here a
 * halted CPU is not visited, and those that run share the time until the next timer, as
 * many as they are, but at least FEW: an interrupt from one CPU to another waits
 * for the end of a visit. QEMU never lets a CPU run beyond a timer
 * (icount_prepare_for_run()), so time is as exact as before.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static sem_t turn;
static __thread bool have_turn;
static int (*real_poll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_time)(struct timeval *, void *);
/* QEMU's own: not 0 if it is to end; whether the caller has its big lock. */
static int (*shutdown_requested)(void);
static bool (*has_big_lock)(void);

/* So many CPUs or fewer share the time as they do without this file. */
#define FEW  8
#define MOST 1024

struct cpu;
static bool (*is_idle)(struct cpu *);
static struct cpu *(*get_cpu)(int);
static int64_t (*deadline)(int clock, int attributes);
static int64_t (*to_instructions)(int64_t ns);

/* QEMU's cpu_can_run(), of which the calling thread asks before each visit. One that is
 * about to stop (not idle, to QEMU) is visited once more, and leaves at once. */
static bool can_run(struct cpu *cpu)
{
	return !is_idle(cpu);
}

static int running(int count)
{
	static struct cpu *cpus[MOST];
	static int known;
	int number, run = 0;

	count = count < MOST ? count : MOST;
	for (; known < count; known++)
		cpus[known] = get_cpu(known);
	for (number = 0; number < count; number++)
		run += !cpus[number] || !is_idle(cpus[number]);
	return run;
}

/* QEMU's icount_percpu_budget(): the instructions of a visit. */
static int64_t budget(int count)
{
	const int virtual_clock = 1, all_timers = -1;
	int64_t ns = deadline(virtual_clock, all_timers), limit;
	int run = running(count);

	limit = to_instructions(ns < 0 || ns > INT32_MAX ? INT32_MAX : ns);
	run = run < FEW ? FEW : run;
	return limit / run ? limit / run : limit;
}

/* Replaces a function of QEMU by a jump. Its callers are in QEMU itself and would not find a
 * preloaded function of the same name. */
static bool replace(const char *name, const void *by)
{
#ifdef __x86_64__
	/* mov $by, %rax; jmp *%rax */
	unsigned char jump[] = { 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0 };
	unsigned char *code = dlsym(RTLD_DEFAULT, name);
	uintptr_t size = sysconf(_SC_PAGESIZE), page = (uintptr_t)code & -size;

	memcpy(jump + 2, &by, sizeof(by));
	/* The function may lie on two pages. */
	if (!code || mprotect((void *)page, 2 * size, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memcpy(code, jump, sizeof(jump));
	return !mprotect((void *)page, 2 * size, PROT_READ | PROT_EXEC);
#else
	return false;
#endif
}

static bool prepare_for_many(void)
{
	is_idle = dlsym(RTLD_DEFAULT, "cpu_thread_is_idle");
	get_cpu = dlsym(RTLD_DEFAULT, "qemu_get_cpu");
	deadline = dlsym(RTLD_DEFAULT, "qemu_clock_deadline_ns_all");
	to_instructions = dlsym(RTLD_DEFAULT, "icount_round");
	return is_idle && get_cpu && deadline && to_instructions &&
	       replace("cpu_can_run", can_run) && replace("icount_percpu_budget", budget);
}

__attribute__((constructor)) static void prepare(void)
{
	sem_init(&turn, 0, 1);
	real_poll = dlsym(RTLD_NEXT, "ppoll");
	/* The version with the layout of today's condition variables. */
	real_wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	real_time = dlsym(RTLD_NEXT, "gettimeofday");
	shutdown_requested = dlsym(RTLD_DEFAULT, "qemu_shutdown_requested_get");
	has_big_lock = dlsym(RTLD_DEFAULT, "bql_locked");
	if (!has_big_lock) /* before QEMU 9.0 */
		has_big_lock = dlsym(RTLD_DEFAULT, "qemu_mutex_iothread_locked");
	if (!has_big_lock || !real_poll || !real_wait || !real_time || !shutdown_requested)
		fputs("turns.c does not fit this QEMU\n", stderr);
	if (getenv("TURNS_MANY") && !prepare_for_many())
		fputs("turns.c does not fit this QEMU: many CPUs take long\n", stderr);
}

static bool in_main_thread(void)
{
	return gettid() == getpid();
}

static void give_turn(void)
{
	if (have_turn)
		sem_post(&turn);
	have_turn = false;
}

/*
 * The main loop's: without the turn when QEMU is to end, since the CPUs may go
 * on and never sleep. A signal to that effect interrupts the waiting; a guest
 * that has crashed or switched itself off shows within a second.
 */
static void take_turn_or_end(void)
{
	struct timespec limit;

	have_turn = false;
	while (!have_turn && !shutdown_requested()) {
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec++;
		have_turn = sem_timedwait(&turn, &limit) == 0;
	}
}

static void take_turn(void)
{
	while (sem_wait(&turn) != 0)
		;
	have_turn = true;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	static const struct timespec now;
	int ready;

	/* With the big lock this is not the main loop's own poll, but one on the way, as when
	 * disks are drained at the end. The CPUs cannot go on without that lock: whoever of
	 * them had got the turn would keep it for ever. */
	if (!in_main_thread() || has_big_lock())
		return real_poll(fds, count, timeout, mask);
	give_turn();
	ready = real_poll(fds, count, timeout, mask);
	if (ready < 0)
		return ready;
	take_turn_or_end();
	/* More may have become ready in the meantime. */
	return real_poll(fds, count, &now, mask);
}

/*
 * The main thread takes part from its first poll on, the CPUs from their first
 * sleep. Other threads do not wait in this way.
 */
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	bool takes_part = have_turn || !in_main_thread();
	int error;

	give_turn();
	error = real_wait(condition, mutex);
	if (!takes_part)
		return error;
	/* Whoever has the turn may want the mutex. */
	pthread_mutex_unlock(mutex);
	take_turn();
	pthread_mutex_lock(mutex);
	return error;
}

/* For whoever has taken a turn besides the main thread, the CPUs: each look is a millisecond
 * after the last one, wherever that was on the host's clock. */
int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	static unsigned long looks;

	if (in_main_thread() || !have_turn)
		return real_time(time, zone);
	looks++;
	time->tv_sec = 1767225600 + looks / 1000; /* 2026-01-01, as the guest's clock */
	time->tv_usec = looks % 1000 * 1000;
	return 0;
}
