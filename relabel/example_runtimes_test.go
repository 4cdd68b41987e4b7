// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/relabel"
)

// What docs/patches/crio-group.patch proposes for CRI-O, compiled. TestDocs in
// cmd/fastlabel compares the two.

// Each volume is walked once for all requests that ask for it. A request that
// comes to its end leaves, and the one that comes after it joins.
var volumes = relabel.Group{Trace: func(root string) *relabel.Trace { return relabel.LogTo(slog.Default(), root) }}

func volumeLabel(ctx context.Context, path, secLabel string, maybeRelabel bool) error {
	if !selinux.GetEnabled() || secLabel == "" {
		return nil
	}

	trust := relabel.TrustNothing
	if maybeRelabel {
		trust = relabel.TrustRoot
	}

	report, err := volumes.Tree(ctx, path, secLabel, trust)
	if errors.Is(err, errors.ErrUnsupported) && report.Seen <= 1 {
		return nil // the volume itself has no labels
	}

	if err != nil {
		return fmt.Errorf("relabel failed %s: %w", path, err)
	}

	return nil
}

// A CRI runtime labels volumes within the request's context. What the kubelet
// reads when its request times out then says how far the volume is, and the
// container's name is free again for the next one.
func ExampleGroup_runtime() {
	err := volumeLabel(context.Background(), "/var/lib/kubelet/pods/1/volumes/data", "", true)
	fmt.Println(err)
	// Output: <nil>
}

// BenchmarkOneFile labels a single file, as runtimes do with those that they
// write themselves: another label each time.
func BenchmarkOneFile(b *testing.B) {
	for name, chcon := range map[string]func(string, string, bool) error{"relabel": relabel.Chcon, "go-selinux": selinux.Chcon} {
		b.Run("library="+name, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "resolv.conf")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				if err := chcon(file, fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", i%1024), true); err != nil {
					b.Skip("needs root: ", err)
				}
			}
		})
	}
}

// BenchmarkInspect asks whether a volume is labelled: its root, and its top level. A
// volume of a million files takes no longer than this one.
func BenchmarkInspect(b *testing.B) {
	const label = "system_u:object_r:container_file_t:s0:c1,c2"
	root := b.TempDir()
	for i := range 10 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint(i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := relabel.Tree(b.Context(), root, label, nil); err != nil {
		b.Skip("needs root: ", err)
	}
	for name, trust := range map[string]relabel.Trust{"root": relabel.TrustRoot, "top": relabel.TrustTop} {
		b.Run("trust="+name, func(b *testing.B) {
			for b.Loop() {
				if s, err := relabel.Inspect(root, label, trust); err != nil || !s.Labelled {
					b.Fatal(s, err)
				}
			}
		})
	}
}
