// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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

	skip := relabel.SkipNone
	if maybeRelabel {
		skip = relabel.SkipRoot
	}

	report, err := volumes.Tree(ctx, path, secLabel, skip)
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
