// SPDX-License-Identifier: Apache-2.0

// Package filetypes lists SELinux types that files can have, for completion.
//
// The kernel has no list to ask for (/sys/fs/selinux has classes and booleans), and
// to read the loaded policy takes libsepol. The installed policy's file contexts name
// the types that some file is to have, which are those that anybody types.
package filetypes

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names returns the types that the policy installed below root ("/") gives to files,
// sorted; where none is installed, those that container-selinux and the reference
// policy have for what is bound into containers.
func Names(root string) []string {
	etc := filepath.Join(root, "etc", "selinux")
	policy := "targeted"
	for _, line := range lines(filepath.Join(etc, "config")) {
		if value, ok := strings.CutPrefix(line, "SELINUXTYPE="); ok {
			policy = cmp.Or(strings.TrimSpace(value), policy)
		}
	}
	contexts := filepath.Join(etc, policy, "contexts")
	var names []string
	for _, file := range []string{"file_contexts", "file_contexts.local", "file_contexts.homedirs"} {
		for _, line := range lines(filepath.Join(contexts, "files", file)) {
			fields := strings.Fields(line) // path [kind] context
			if parts := strings.Split(fields[len(fields)-1], ":"); len(parts) >= 3 {
				names = append(names, parts[2])
			}
		}
	}
	if len(names) == 0 {
		return []string{
			"container_file_t", "container_log_t", "container_ro_file_t", "container_share_t", "container_var_lib_t",
			"default_t", "etc_t", "home_root_t", "httpd_sys_content_t", "nfs_t", "public_content_rw_t", "public_content_t",
			"svirt_image_t", "svirt_sandbox_file_t", "user_home_t", "usr_t", "var_lib_t", "var_t", "virt_image_t",
		}
	}
	// Types that restorecon leaves alone are given by hand: by this command too.
	names = append(names, lines(filepath.Join(contexts, "customizable_types"))...)
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return strings.Trim(name, letters) != "" })
}

// letters are what a type's name is made of; a shell splits none of them.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// lines are those of a file that say something; none where it cannot be read.
func lines(file string) (all []string) {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}
