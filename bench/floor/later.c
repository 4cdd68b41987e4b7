// SPDX-License-Identifier: Apache-2.0
#include "floor.h"
#include <string.h>

static void write_one(struct thread *t, struct late *l)
{
	write_label(t, l->dir->fd, l->name);
	drop(l->dir);
	free(l->name);
	*l = (struct late){ 0 };
}

void delay(struct thread *t, struct dir *d, const char *name)
{
	if (!t->late)
		t->late = need(calloc(later, sizeof *t->late));
	struct late *l = &t->late[t->delayed++ % later];
	if (l->name)
		write_one(t, l);
	d->refs++;
	*l = (struct late){ d, need(strdup(name)) };
}

void write_late(struct thread *t)
{
	for (long k = 0; t->late && k < later; k++) {
		struct late *l = &t->late[t->delayed++ % later];
		if (l->name)
			write_one(t, l);
	}
	free(t->late);
}
