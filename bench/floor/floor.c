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
//   -s         syncfs before the root is labelled
//
// The root comes last. Prints how many entries it saw, wrote and found to
// differ; the first call that fails ends it.
//
// Threads share one directory: one that has read a buffer gives the open directory
// back before it labels what is in the buffer. Subdirectories stay with the thread
// that found them, unless another has nothing to do.
#include "floor.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

enum mode mode;
int by_inode, by_fchdir, threads = 2;
const char *label;
size_t label_size;

static int sync_first;

void fail(const char *call, const char *name)
{
	fprintf(stderr, "floor: %s %s: %s\n", call, name, strerror(errno));
	_exit(1); // other threads run on
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
	drop(root);
	free_shared();
	free(all);
	printf("%ld seen, %ld written, %ld wrong\n", seen, written, wrong);
	return 0;
}
