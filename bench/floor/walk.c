// SPDX-License-Identifier: Apache-2.0
#include "floor.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#endif

// SLICE is how many names of a directory read whole are taken at once.
#define SLICE 512

struct record {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct args {
	uint64_t value;
	uint32_t size;
	uint32_t flags;
};

static atomic_long visited;

void drop(struct dir *d)
{
	while (d && --d->refs == 0) {
		struct dir *parent = d->parent;
		if (d->fd >= 0)
			close(d->fd);
		free(d);
		d = parent;
	}
}

static void go_to(int fd)
{
	if (by_fchdir && fchdir(fd))
		fail("fchdir", "");
}

int differs(char *value, long n)
{
	if (n > 0 && !value[n - 1])
		n--;
	return n != (long)label_size || memcmp(value, label, label_size);
}

static int wrong(struct thread *t, int fd, const char *name)
{
	char value[256];
	long n;
	if (by_fchdir) {
		n = lgetxattr(name, ATTR, value, sizeof value);
	} else {
		struct args a = { (uintptr_t)value, sizeof value, 0 };
		n = syscall(SYS_getxattrat, fd, name, AT_SYMLINK_NOFOLLOW, ATTR, &a, sizeof a);
	}
	if (n < 0 && errno != ENODATA)
		fail("getxattr", name);
	int d = differs(value, n);
	t->wrong += d;
	return d;
}

void write_label(struct thread *t, int fd, const char *name)
{
	int e;
	if (by_fchdir) {
		e = lsetxattr(name, ATTR, label, label_size, 0);
	} else {
		struct args a = { (uintptr_t)label, label_size, 0 };
		e = syscall(SYS_setxattrat, fd, name, AT_SYMLINK_NOFOLLOW, ATTR, &a, sizeof a);
	}
	if (e)
		fail("setxattr", name);
	t->written++;
}

static void entry(struct thread *t, struct dir *d, const char *name)
{
	int fd = d->fd;
	t->seen++;
	switch (mode) {
	case WRITE:
		write_label(t, fd, name);
		break;
	case MEND:
		if (wrong(t, fd, name))
			write_label(t, fd, name);
		break;
	case COUNT:
		wrong(t, fd, name);
		break;
	case STRAY:
		if (visited++ % 100 == 50)
			write_label(t, fd, name);
		break;
	}
}

static void child(struct thread *t, struct dir *d, const char *name, int type)
{
	entry(t, d, name);
	if (type == DT_UNKNOWN) {
		struct stat s;
		if (fstatat(d->fd, name, &s, AT_SYMLINK_NOFOLLOW))
			fail("fstatat", name);
		type = S_ISDIR(s.st_mode) ? DT_DIR : DT_REG;
	}
	if (type != DT_DIR)
		return;
	struct dir *c = need(malloc(sizeof *c + strlen(name) + 1));
	*c = (struct dir){ .parent = d, .refs = 1, .fd = -1 };
	strcpy(c->name, name);
	d->refs++;
	keep(t, (struct item){ .dir = c });
}

static int dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static void release(struct whole *w)
{
	if (--w->refs == 0) {
		free(w->names);
		free(w->text);
		free(w);
	}
}

static void slice(struct thread *t, struct item i)
{
	go_to(i.dir->fd);
	for (int k = i.from; k < i.to; k++)
		child(t, i.dir, i.whole->text + i.whole->names[k].at, i.whole->names[k].type);
	release(i.whole);
	drop(i.dir);
}

static long fill(struct thread *t, struct dir *d)
{
	long n = syscall(SYS_getdents64, d->fd, t->buffer, BUFFER);
	if (n < 0)
		fail("getdents64", d->name);
	return n;
}

static void read_whole(struct thread *t, struct dir *d)
{
	struct whole *w = need(calloc(1, sizeof *w));
	size_t used = 0, room = 0, count = 0, space = 0;
	for (long n; (n = fill(t, d)) > 0;) {
		for (long at = 0; at < n;) {
			struct record *r = (void *)(t->buffer + at);
			at += r->reclen;
			if (dots(r->name))
				continue;
			size_t size = strlen(r->name) + 1;
			if (count == space)
				w->names = need(realloc(w->names, (space = space ? 2 * space : 64) * sizeof *w->names));
			if (used + size > room)
				w->text = need(realloc(w->text, room = 2 * room + size + 4096));
			w->names[count++] = (struct name){ r->ino, used, r->type };
			memcpy(w->text + used, r->name, size);
			used += size;
		}
	}
	sort(w, count);
	int slices = (count + SLICE - 1) / SLICE;
	w->refs = slices + 1;
	d->refs += slices;
	// The first slice stays here: a small directory is not handed about.
	for (int k = slices - 1; k > 0; k--)
		give((struct item){ d, w, k * SLICE, k + 1 < slices ? (k + 1) * SLICE : (int)count });
	if (slices)
		slice(t, (struct item){ d, w, 0, slices > 1 ? SLICE : (int)count });
	release(w);
	drop(d);
}

static void work(struct thread *t, struct item i)
{
	struct dir *d = i.dir;
	if (i.whole) {
		slice(t, i);
		return;
	}
	if (d->fd < 0) {
		d->fd = openat(d->parent->fd, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
		if (d->fd < 0)
			fail("openat", d->name);
		drop(d->parent);
		d->parent = NULL;
	}
	if (by_inode) {
		read_whole(t, d);
		return;
	}
	long n = fill(t, d);
	if (n == 0) {
		drop(d);
		return;
	}
	// A short buffer is the last one nearly always: nothing to share.
	int more = n > BUFFER - 512;
	d->refs++;
	if (more)
		give((struct item){ .dir = d });
	go_to(d->fd);
	for (long at = 0; at < n;) {
		struct record *r = (void *)(t->buffer + at);
		at += r->reclen;
		if (!dots(r->name))
			child(t, d, r->name, r->type);
	}
	if (!more)
		push(&t->own, (struct item){ .dir = d });
	drop(d);
}

void *run(void *arg)
{
	struct thread *t = arg;
	struct item i;
	if (by_fchdir && unshare(CLONE_FS))
		fail("unshare", "");
	while (take(t, &i))
		work(t, i);
	free(t->own.items);
	return NULL;
}
