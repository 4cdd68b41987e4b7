// SPDX-License-Identifier: Apache-2.0
//
// oracle FILE: for each query on standard input, a byte that is the kind of file (DT_*)
// and a path that a null byte ends, prints the label that libselinux has for it by the
// file contexts FILE, "-" if there is none, or "!" and the error.
#include <errno.h>
#include <selinux/label.h>
#include <selinux/selinux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct selinux_opt path = { SELABEL_OPT_PATH, argc == 2 ? argv[1] : "" };
	struct selabel_handle *h = selabel_open(SELABEL_CTX_FILE, &path, 1);
	if (!h) {
		perror("selabel_open");
		return 1;
	}
	char *query = NULL;
	size_t size = 0;
	while (getdelim(&query, &size, 0, stdin) > 0) {
		char *label;
		if (!selabel_lookup_raw(h, &label, query + 1, query[0] << 12)) {
			puts(label);
			freecon(label);
		} else {
			printf(errno == ENOENT ? "-\n" : "!%s\n", strerror(errno));
		}
	}
	selabel_close(h);
	return fflush(stdout) ? 1 : 0;
}
