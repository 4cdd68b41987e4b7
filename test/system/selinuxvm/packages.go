// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// keyring has the keys of Debian's archive. What is not signed by one of them
// is refused by apt and by debootstrap.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// findMirror asks apt where this machine has its packages from.
func findMirror(ctx context.Context) (string, error) {
	out, err := run(exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(LABEL)|$(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		label, uri, _ := strings.Cut(strings.TrimSpace(line), "|")
		if label == "Debian" && uri != "" {
			return uri, nil
		}
	}
	return "", errors.New("apt on this machine knows no mirror of Debian, or has no lists: run apt-get update")
}

// archive is one suite of Debian, as apt sees it with a state of its own:
// nothing that the host has installed, pinned or configured counts, but for
// how it reaches the network.
type archive struct{ dir string }

func openArchive(ctx context.Context, mirror, suite, dir string) (archive, error) {
	a := archive{dir}
	for _, d := range []string{"lists/partial", "cache/archives/partial", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return a, err
		}
	}
	source := fmt.Sprintf("deb [arch=amd64 signed-by=%s] %s %s main\n", keyring, mirror, suite)
	for name, text := range map[string]string{"sources.list": source, "status": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return a, err
		}
	}
	_, err := a.apt(ctx, "apt-get", "update", "--error-on=any")
	return a, err
}

func (a archive) apt(ctx context.Context, program string, args ...string) (string, error) {
	options := []string{
		"Dir::Etc::SourceList=" + filepath.Join(a.dir, "sources.list"),
		"Dir::Etc::SourceParts=/dev/null",
		"Dir::Etc::Preferences=/dev/null",
		"Dir::Etc::PreferencesParts=/dev/null",
		"Dir::State=" + a.dir,
		"Dir::State::lists=" + filepath.Join(a.dir, "lists"),
		"Dir::State::status=" + filepath.Join(a.dir, "status"),
		"Dir::Cache=" + filepath.Join(a.dir, "cache"),
		"Acquire::Languages=none",
		"APT::Architecture=amd64",
		"APT::Architectures=amd64",
		"APT::Get::AllowUnauthenticated=false",
		"APT::Sandbox::User=root", // the directory is root's
	}
	all := []string{"-q"}
	for _, o := range options {
		all = append(all, "-o", o)
	}
	cmd := exec.CommandContext(ctx, program, append(all, args...)...)
	cmd.Dir = filepath.Join(a.dir, "debs")
	return run(cmd)
}

// ofKernel matches the packages that are a kernel: one that has all, or from
// 7 on one for the kernel and one for its modules.
var ofKernel = regexp.MustCompile(`(?m)^linux-(image|binary|modules)-[0-9]\S*$`)

// unpackKernel unpacks the suite's cloud kernel below dir.
func unpackKernel(ctx context.Context, mirror, suite, dir string) error {
	a, err := openArchive(ctx, mirror, suite, dir+"-apt")
	if err != nil {
		return err
	}
	out, err := a.apt(ctx, "apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests",
		"--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", "linux-image-cloud-amd64")
	if err != nil {
		return err
	}
	names := ofKernel.FindAllString(out, -1)
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return fmt.Errorf("linux-image-cloud-amd64 depends on no kernel:\n%s", out)
	}
	if _, err := a.apt(ctx, "apt-get", append([]string{"download"}, names...)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(a.dir, "debs", "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if _, err := run(exec.CommandContext(ctx, "dpkg-deb", "--extract", deb, dir)); err != nil {
			return err
		}
	}
	return nil
}
