// SPDX-License-Identifier: Apache-2.0
//
// Each thread has a stack of its own; one stack is shared. A thread that finds
// both empty counts itself idle, under the lock, before it waits: a thread
// that gives after that sees it and signals. With the last thread idle nothing is left,
// for only a thread at work could bring more.
//
// The others read the count without the lock: seen too late it costs a chance
// to share, no more.
#include "floor.h"
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static struct stack shared;
static atomic_int idle;
static int ended;

void push(struct stack *s, struct item i)
{
	if (s->used == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->items = need(realloc(s->items, s->room * sizeof i));
	}
	s->items[s->used++] = i;
}

void give(struct item i)
{
	pthread_mutex_lock(&lock);
	push(&shared, i);
	pthread_mutex_unlock(&lock);
	if (idle)
		pthread_cond_signal(&ready);
}

void keep(struct thread *t, struct item i)
{
	if (idle)
		give(i);
	else
		push(&t->own, i);
}

int take(struct thread *t, struct item *i)
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

void free_shared(void)
{
	free(shared.items);
}
