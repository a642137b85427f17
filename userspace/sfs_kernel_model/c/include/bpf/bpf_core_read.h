/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __BPF_CORE_READ_H__
#define __BPF_CORE_READ_H__
/* CO-RE on the host: types are those of the build, so a read is a read. */
#define __builtin_preserve_access_index(x) (x)
extern int model_field_exists(const char *what);
#define bpf_core_field_exists(...)                      model_field_exists(#__VA_ARGS__)
#define bpf_core_type_exists(type)                      model_field_exists(#type)
#define bpf_core_enum_value_exists(type, value)         model_field_exists(#value)
#define bpf_core_enum_value(type, value)                (value)
#define bpf_core_type_id_kernel(type)                   0
#define bpf_core_type_size(type)                        sizeof(type)
#define bpf_core_field_size(x)                          sizeof(x)
#define bpf_core_cast(ptr, type)                        ((typeof(type) *)(ptr))
#define bpf_core_read(dst, sz, src)                     bpf_probe_read_kernel(dst, sz, src)
#define ___model_concat(a, b)                           a##b
#define ___model_apply(fn, n)                           ___model_concat(fn, n)
#define ___model_nth(_, _1, _2, _3, _4, _5, _6, N, ...) N
#define ___model_narg(...)                              ___model_nth(_, ##__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define ___model_a1(a)                                  a
#define ___model_a2(a, b)                               a->b
#define ___model_a3(a, b, c)                            a->b->c
#define ___model_a4(a, b, c, d)                         a->b->c->d
#define BPF_CORE_READ(src, ...) \
	((src)->___model_apply(___model_a, ___model_narg(__VA_ARGS__))(__VA_ARGS__))
#define BPF_CORE_READ_INTO(dst, src, ...) (*(dst) = BPF_CORE_READ(src, ##__VA_ARGS__))
#endif
