// SPDX-License-Identifier: Apache-2.0
//
// start [-o] COMMAND... runs a command and writes what it took to the file
// descriptor 3:
//
//   wall_ns user_us sys_us maxrss_kib status
//
// A process begins with the peak memory of the one that started it, so a
// contestant is started from this small one. status is as wait(2) gives it.
// With -o the kernel seems an older one, without setxattrat and its like.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "-o")) {
		if (grow_old()) {
			perror("start: seccomp");
			return 1;
		}
		argv++;
	}
	fcntl(3, F_SETFD, FD_CLOEXEC);
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	pid_t child = fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	int status;
	struct rusage u;
	if (wait4(child, &status, 0, &u) != child)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	dprintf(3, "%lld %lld %lld %ld %d\n",
		(b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec,
		u.ru_utime.tv_sec * 1000000LL + u.ru_utime.tv_usec,
		u.ru_stime.tv_sec * 1000000LL + u.ru_stime.tv_usec,
		u.ru_maxrss, status);
	return 0;
}
