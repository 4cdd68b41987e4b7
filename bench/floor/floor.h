// SPDX-License-Identifier: Apache-2.0
//
// floor.c  options, and the root
// walk.c   directories and their entries
// share.c  who does what
// sort.c   names by inode number
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define ATTR "security.selinux"
#define BUFFER 32768 // 64 KiB took as long, 128 KiB longer

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

enum mode { WRITE, MEND, COUNT, STRAY };

struct thread {
	pthread_t id;
	struct stack own;
	long seen, written, wrong;
	char buffer[BUFFER] __attribute__((aligned(8)));
};

// What the command line says; nobody writes it after that.
extern enum mode mode;
extern int by_inode, by_fchdir, threads;
extern const char *label;
extern size_t label_size;

_Noreturn void fail(const char *call, const char *name);

static inline void *need(void *p)
{
	if (!p)
		fail("malloc", "");
	return p;
}

// give hands an item to a thread that has time; keep does so only if one has.
void give(struct item i);
void keep(struct thread *t, struct item i);
void push(struct stack *s, struct item i);
// take returns 0 when there is nothing left anywhere.
int take(struct thread *t, struct item *i);
void free_shared(void);

void sort(struct whole *w, size_t count);

// differs tells if a label that was read is another one.
int differs(char *value, long n);
void write_label(struct thread *t, int fd, const char *name);
void drop(struct dir *d);
void *run(void *thread);
