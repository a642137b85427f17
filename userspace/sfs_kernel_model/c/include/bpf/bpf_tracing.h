/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands in for libbpf's header: a callback is a plain function with its own arguments. */
#ifndef __BPF_TRACING_H__
#define __BPF_TRACING_H__

/* The raw arguments of a traced function; only bpf_get_func_ret() takes them. */
static unsigned long long *ctx;

#define BPF_PROG(name, args...) name(args)

#endif /* __BPF_TRACING_H__ */
