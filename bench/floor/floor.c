// SPDX-License-Identifier: Apache-2.0
//
// floor labels a tree as cheaply as a program can on this kernel, and with no
// safety at all: no lock, no seal, no clone of the mount, whatever is mounted
// or swapped beneath. It is what fastlabel is measured against.
//
//   floor [-m MODE] [-o ORDER] [-w WAY] [-t THREADS] [-s] PATH LABEL
//
//   -m write   give each entry LABEL, unread (the default)
//      mend    read each entry's label, write where it differs
//      count   read each entry's label, write nothing
//      stray   give one entry in 100 LABEL
//   -o dir     in the directory's order, a buffer at a time (the default)
//      inode   each directory read whole and sorted by inode number
//   -w at      setxattrat and getxattrat, Linux 6.13 (the default)
//      fchdir  fchdir, then lsetxattr and lgetxattr of the bare name
//   -s         syncfs before the root is labelled, if anything was written
//
// The root comes last. Prints how many entries it saw, wrote and found to
// differ; the first call that fails ends it.
//
// Threads share one directory: one that has read a buffer gives the open directory
// back before it labels what is in the buffer. Subdirectories stay with the thread
// that found them, unless another has nothing to do. A thread has a stack of its own;
// one stack is shared. A thread that finds both empty counts itself idle, under the
// lock, before it waits: a thread that gives after that sees it and signals. With the
// last thread idle nothing is left, for only a thread at work could bring more. The
// others read the count without the lock: seen too late it costs a chance to share.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#endif

#define ATTR "security.selinux"
#define BUFFER 32768 // 64 KiB took as long, 128 KiB longer
#define SLICE 512    // names of a directory read whole that are taken at once

// dir is a directory, open once fd is not -1.
struct dir {
	struct dir *parent;
	atomic_int refs; // children not opened yet, slices, and its reader
	int fd;
	char name[];
};

// name is an entry of a directory that is read whole.
struct name {
	uint64_t ino;
	uint32_t at;
	uint8_t type;
};

struct whole {
	struct name *names;
	char *text;
	atomic_int refs;
};

// item is what a thread takes: a directory to open, the rest of an open one,
// or a slice of one that was read whole.
struct item {
	struct dir *dir;
	struct whole *whole;
	int from, to;
};

struct stack {
	struct item *items;
	int used, room;
};

struct thread {
	pthread_t id;
	struct stack own;
	long seen, written, wrong;
	char buffer[BUFFER] __attribute__((aligned(8)));
};

// record and args are the kernel's.
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

// What the command line says; nobody writes it after that.
static enum { WRITE, MEND, COUNT, STRAY } mode;
static int by_inode, by_fchdir, sync_first, threads = 2;
static const char *label;
static size_t label_size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static struct stack shared;
static int ended;
static atomic_int idle;
static atomic_long visited;

static _Noreturn void fail(const char *call, const char *name)
{
	fprintf(stderr, "floor: %s %s: %s\n", call, name, strerror(errno));
	_exit(1); // other threads run on
}

static void *need(void *p)
{
	if (!p)
		fail("malloc", "");
	return p;
}

static void push(struct stack *s, struct item i)
{
	if (s->used == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->items = need(realloc(s->items, s->room * sizeof i));
	}
	s->items[s->used++] = i;
}

// give hands an item to a thread that has time; keep does so only if one has.
static void give(struct item i)
{
	pthread_mutex_lock(&lock);
	push(&shared, i);
	pthread_mutex_unlock(&lock);
	if (idle)
		pthread_cond_signal(&ready);
}

static void keep(struct thread *t, struct item i)
{
	if (idle)
		give(i);
	else
		push(&t->own, i);
}

// take returns 0 when there is nothing left anywhere.
static int take(struct thread *t, struct item *i)
{
	if (t->own.used) {
		if (idle && t->own.used > 1) {
			int n = t->own.used / 2;
			for (int k = 0; k < n; k++)
				give(t->own.items[k]);
			memmove(t->own.items, t->own.items + n, (t->own.used - n) * sizeof *i);
			t->own.used -= n;
		}
		*i = t->own.items[--t->own.used];
		return 1;
	}
	pthread_mutex_lock(&lock);
	while (!shared.used && !ended) {
		if (++idle == threads) {
			ended = 1;
			pthread_cond_broadcast(&ready);
		} else {
			pthread_cond_wait(&ready, &lock);
		}
		idle--;
	}
	int got = shared.used > 0;
	if (got)
		*i = shared.items[--shared.used];
	pthread_mutex_unlock(&lock);
	return got;
}

static int before(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

// sort sorts by inode number: 11 bits a pass of those in which they differ,
// which for a large directory is several times as fast as qsort.
static void sort(struct whole *w, size_t count)
{
	struct name *from = w->names;
	uint64_t least = UINT64_MAX, most = 0, last = 0;
	int sorted = 1;
	for (size_t k = 0; k < count; k++) {
		uint64_t ino = from[k].ino;
		sorted &= ino >= last;
		last = ino;
		least = ino < least ? ino : least;
		most = ino > most ? ino : most;
	}
	if (sorted)
		return;
	if (count < 2048) {
		qsort(from, count, sizeof *from, before);
		return;
	}
	struct name *to = need(malloc(count * sizeof *to));
	for (int shift = 0; shift < 64 && (most - least) >> shift; shift += 11) {
		size_t at[2049] = { 0 };
		for (size_t k = 0; k < count; k++)
			at[((from[k].ino - least) >> shift & 2047) + 1]++;
		for (int k = 0; k < 2048; k++)
			at[k + 1] += at[k];
		for (size_t k = 0; k < count; k++)
			to[at[(from[k].ino - least) >> shift & 2047]++] = from[k];
		struct name *swap = from;
		from = to;
		to = swap;
	}
	free(to);
	w->names = from;
}

static void drop(struct dir *d)
{
	while (d && --d->refs == 0) {
		struct dir *parent = d->parent;
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

// differs reports whether a label that was read is another one.
static int differs(char *value, long n)
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

static void write_label(struct thread *t, int fd, const char *name)
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

static void entry(struct thread *t, struct dir *d, const char *name, int type)
{
	t->seen++;
	switch (mode) {
	case WRITE:
		write_label(t, d->fd, name);
		break;
	case MEND:
		if (wrong(t, d->fd, name))
			write_label(t, d->fd, name);
		break;
	case COUNT:
		wrong(t, d->fd, name);
		break;
	case STRAY:
		if (visited++ % 100 == 50)
			write_label(t, d->fd, name);
		break;
	}
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
		entry(t, i.dir, i.whole->text + i.whole->names[k].at, i.whole->names[k].type);
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

static void read_buffer(struct thread *t, struct dir *d)
{
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
			entry(t, d, r->name, r->type);
	}
	if (!more)
		push(&t->own, (struct item){ .dir = d });
	drop(d);
}

static void *run(void *arg)
{
	struct thread *t = arg;
	struct item i;
	if (by_fchdir && unshare(CLONE_FS))
		fail("unshare", "");
	while (take(t, &i)) {
		struct dir *d = i.dir;
		if (i.whole) {
			slice(t, i);
			continue;
		}
		if (d->fd < 0) {
			d->fd = openat(d->parent->fd, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
			if (d->fd < 0)
				fail("openat", d->name);
			drop(d->parent);
			d->parent = NULL;
		}
		if (by_inode)
			read_whole(t, d);
		else
			read_buffer(t, d);
	}
	return NULL;
}

static int choose(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(word, words[i]))
			return i;
	fprintf(stderr, "floor: no such choice: %s\n", word);
	exit(2);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "write", "mend", "count", "stray", 0 };
	static const char *const orders[] = { "dir", "inode", 0 };
	static const char *const ways[] = { "at", "fchdir", 0 };
	for (int c; (c = getopt(argc, argv, "m:o:w:t:s")) != -1;) {
		switch (c) {
		case 'm': mode = choose(optarg, modes); break;
		case 'o': by_inode = choose(optarg, orders); break;
		case 'w': by_fchdir = choose(optarg, ways); break;
		case 't': threads = atoi(optarg); break;
		case 's': sync_first = 1; break;
		default: return 2;
		}
	}
	if (argc - optind != 2 || threads < 1) {
		fprintf(stderr, "usage: floor [-m MODE] [-o ORDER] [-w WAY] [-t THREADS] [-s] PATH LABEL\n");
		return 2;
	}
	const char *path = argv[optind];
	label = argv[optind + 1];
	label_size = strlen(label);

	struct rlimit r;
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);

	struct dir *root = need(malloc(sizeof *root + 1));
	*root = (struct dir){ .refs = 2 };
	root->name[0] = 0;
	root->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
	if (root->fd < 0)
		fail("open", path);
	give((struct item){ .dir = root });

	struct thread *all = need(calloc(threads, sizeof *all));
	for (int k = 1; k < threads; k++)
		if ((errno = pthread_create(&all[k].id, NULL, run, &all[k])))
			fail("pthread_create", "");
	run(&all[0]);
	long seen = 0, written = 0, wrong = 0;
	for (int k = 0; k < threads; k++) {
		if (k)
			pthread_join(all[k].id, NULL);
		seen += all[k].seen;
		written += all[k].written;
		wrong += all[k].wrong;
	}
	if (mode == WRITE || mode == MEND) {
		char value[256];
		long n = mode == MEND ? fgetxattr(root->fd, ATTR, value, sizeof value) : 0;
		int right = !differs(value, n);
		if (sync_first && !(right && !written) && syncfs(root->fd))
			fail("syncfs", path);
		if (!right) {
			if (fsetxattr(root->fd, ATTR, label, label_size, 0))
				fail("fsetxattr", path);
			written++;
		}
		seen++;
		if (sync_first && !right && fsync(root->fd))
			fail("fsync", path);
	}
	printf("%ld seen, %ld written, %ld wrong\n", seen, written, wrong);
	return 0;
}
