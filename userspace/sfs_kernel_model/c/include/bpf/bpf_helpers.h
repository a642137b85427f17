/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands in for libbpf's header of the same name: the kernel half is compiled for the host, and
 * its helpers are functions of the model (src/helpers.rs).
 */
#ifndef __BPF_HELPERS__
#define __BPF_HELPERS__

#define SEC(name)
#define __uint(name, val)     int(*name)[val]
#define __type(name, val)     typeof(val) *name
#define __array(name, val)    typeof(val) *name[]
#define __ulong(name, val)    enum { ___model_unique(name) = val } name
#define ___model_unique(name) model_value_of_##name

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif
#define __hidden __attribute__((visibility("hidden")))
#define __kconfig
#undef __ksym
#define __ksym
#define __kptr
#define __kptr_untrusted
#define __percpu_kptr
#define __uptr
#define __arg_ctx
#define __arg_nonnull
#define __arg_nullable
#define __arg_trusted
#define __arg_untrusted
#define __arg_arena
#define barrier()      asm volatile("" ::: "memory")
#define barrier_var(x) asm volatile("" : "+r"(x))

#ifndef NULL
#define NULL ((void *)0)
#endif
#ifndef KERNEL_VERSION
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#ifndef container_of
#define container_of(ptr, type, member) ((type *)((void *)(ptr) - offsetof(type, member)))
#endif

/* A function that the model does not define is NULL, as one that a kernel does not have. */
#define bpf_ksym_exists(sym) (!!(sym))

enum libbpf_tristate { TRI_NO, TRI_YES, TRI_MODULE };

/* libbpf has functions of these names, and a program may have both. */
#define bpf_map_lookup_elem model_map_lookup_elem
#define bpf_map_update_elem model_map_update_elem
#define bpf_map_delete_elem model_map_delete_elem

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_map_push_elem(void *map, const void *value, u64 flags);
long bpf_map_pop_elem(void *map, void *value);
long bpf_map_peek_elem(void *map, void *value);
void *bpf_task_storage_get(void *map, struct task_struct *p, void *value, u64 flags);
long bpf_ringbuf_output(void *map, void *data, u64 size, u64 flags);
u64 bpf_ringbuf_query(void *map, u64 flags);
u64 bpf_ktime_get_ns(void);
u32 bpf_get_smp_processor_id(void);
u32 bpf_get_prandom_u32(void);
void *bpf_per_cpu_ptr(const void *pointer, u32 cpu);
void *bpf_this_cpu_ptr(const void *pointer);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
long bpf_timer_init(struct bpf_timer *timer, void *map, u64 flags);
long bpf_timer_set_callback(struct bpf_timer *timer, void *callback);
long bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags);
long bpf_probe_read_kernel(void *dst, u32 size, const void *src);
long bpf_probe_read_kernel_str(void *dst, u32 size, const void *src);
void *bpf_kptr_xchg(void *map_value, void *ptr);
long bpf_get_func_ret(void *ctx, u64 *value);
#define bpf_printk(...) ((void)0)

/* Texts for the debug dump are not formatted. */
#define ___bpf_narg(...)        1
#define ___bpf_fill(array, ...) ((void)(array))

/* Open-coded iterators; the loop variable of bpf_for_each() is a pointer, of bpf_for() a number. */
#define BPF_FOR_EACH_ITER (&___it)
#define bpf_for_each(type, cur, args...) \
	for (struct bpf_iter_##type ___it \
	     __attribute__((aligned(8), cleanup(bpf_iter_##type##_destroy))), \
	     *___made __attribute__((unused)) = (bpf_iter_##type##_new(&___it, ##args), &___it); \
	     ((cur) = bpf_iter_##type##_next(&___it));)
#define bpf_for(i, start, end) \
	for (long ___next = (start), ___end = (end); ___next < ___end && ((i) = ___next, 1); \
	     ___next++)
#define bpf_repeat(n) for (long ___next = 0, ___end = (n); ___next < ___end; ___next++)

#endif /* __BPF_HELPERS__ */
