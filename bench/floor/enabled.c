// SPDX-License-Identifier: Apache-2.0
//
// Preloaded, this has restorecon(8) believe that the machine has SELinux enabled.
int is_selinux_enabled(void);

int is_selinux_enabled(void)
{
	return 1;
}
