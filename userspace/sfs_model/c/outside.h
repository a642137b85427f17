/* SPDX-License-Identifier: GPL-2.0-only */
/* What happens outside of the plain life of a task: other classes, sections without migration. */
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

/* ops.cpu_release() and ops.cpu_acquire(); the arguments say why, which nobody reads. */
void model_cpu_release(s32 cpu)
{
	struct scx_cpu_release_args args = {};

	sfs_cpu_release(cpu, &args);
}

void model_cpu_acquire(s32 cpu)
{
	sfs_cpu_acquire(cpu, NULL);
}

#endif /* __MODEL_OUTSIDE_H */
