// SPDX-License-Identifier: Apache-2.0
//
// change FILE HOW PATH...: prints, for each path, what libselinux's restorecon would
// change, and its exit status. HOW is type or all.
#include <selinux/label.h>
#include <selinux/restorecon.h>
#include <selinux/selinux.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int print(int type, const char *format, ...)
{
	va_list args;
	(void)type;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	struct selinux_opt path = { SELABEL_OPT_PATH, argv[1] };
	struct selabel_handle *h = selabel_open(SELABEL_CTX_FILE, &path, 1);
	if (!h)
		return 1;
	union selinux_callback log = { .func_log = print };
	selinux_set_callback(SELINUX_CB_LOG, log);
	selinux_restorecon_set_sehandle(h);
	unsigned int flags = SELINUX_RESTORECON_NOCHANGE | SELINUX_RESTORECON_VERBOSE | SELINUX_RESTORECON_IGNORE_DIGEST;
	if (!strcmp(argv[2], "all"))
		flags |= SELINUX_RESTORECON_SET_SPECFILE_CTX;
	for (int i = 3; i < argc; i++)
		printf("%d\n", selinux_restorecon(argv[i], flags));
	return fflush(stdout) ? 1 : 0;
}
