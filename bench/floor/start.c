// SPDX-License-Identifier: Apache-2.0
//
// start [-c TRACEPOINT] [-o] -- COMMAND... runs a command and writes what it took
// to the file descriptor 3:
//
//   wall_ns user_us sys_us maxrss_kib voluntary status calls threads
//
// With -c the system calls of the command and its children are counted, which
// slows them, and how many threads the command has at most; else both are 0.
// TRACEPOINT is the number of raw_syscalls/sys_enter.
// With -o the kernel seems an older one, without setxattrat and its like.
//
// A process begins with the peak memory of the one that started it, so a
// contestant is started from this small one. status is as wait(2) gives it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// grow_old lets the calls 463 to 466, setxattrat to removexattrat, fail with
// ENOSYS for this process and its children.
static int grow_old(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 463, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 466, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// counter counts system calls of the children from when they execute something.
static int counter(int tracepoint)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof attr,
		.config = tracepoint,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
	};
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static pid_t child;
static int threads;

// count_threads looks every half millisecond how many threads the child has.
static void *count_threads(void *unused)
{
	(void)unused;
	char name[32], text[4096];
	snprintf(name, sizeof name, "/proc/%d/status", child);
	for (;; usleep(500)) {
		int fd = open(name, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof text - 1);
		close(fd);
		if (n <= 0)
			return NULL;
		text[n] = 0;
		char *line = strstr(text, "\nThreads:");
		int now = line ? atoi(line + strlen("\nThreads:")) : 0;
		if (now > threads)
			threads = now;
	}
}

int main(int argc, char **argv)
{
	int old = 0, calls = -1;
	for (int c; (c = getopt(argc, argv, "+c:o")) != -1;) {
		switch (c) {
		case 'c':
			if ((calls = counter(atoi(optarg))) < 0) {
				perror("start: perf_event_open");
				return 1;
			}
			break;
		case 'o': old = 1; break;
		default: return 2;
		}
	}
	argv += optind;
	if (!*argv) {
		fprintf(stderr, "usage: start [-c TRACEPOINT] [-o] -- COMMAND...\n");
		return 2;
	}
	if (old && grow_old()) {
		perror("start: seccomp");
		return 1;
	}
	fcntl(3, F_SETFD, FD_CLOEXEC);
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	int status;
	struct rusage u;
	pthread_t counting;
	if (calls >= 0) {
		threads = 1; // it may be gone before it is looked at
		if (pthread_create(&counting, NULL, count_threads, NULL))
			return 1;
	}
	if (wait4(child, &status, 0, &u) != child)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	uint64_t counted = 0;
	if (calls >= 0 && read(calls, &counted, sizeof counted) != sizeof counted) {
		perror("start: counting");
		return 1;
	}
	if (calls >= 0)
		pthread_join(counting, NULL);
	dprintf(3, "%lld %lld %lld %ld %ld %d %llu %d\n",
		(b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec,
		u.ru_utime.tv_sec * 1000000LL + u.ru_utime.tv_usec,
		u.ru_stime.tv_sec * 1000000LL + u.ru_stime.tv_usec,
		u.ru_maxrss, u.ru_nvcsw, status, (unsigned long long)counted, threads);
	return 0;
}
