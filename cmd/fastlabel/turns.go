// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/apart"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

// labelAll labels the paths, or for verify and -n reads them: those first that
// name no served filesystem, and then those of each.
func (j *job) labelAll(ctx context.Context, paths []string) int {
	groups := site.ByServer(paths)
	codes := make([]int, len(groups))
	wait.InTurn(len(groups), func(i int, stalls func()) {
		codes[i] = j.labelGroup(ctx, groups[i], i > 0 || apart.IsPart(), stalls)
	}, func() {})
	return exit.Worst(codes)
}

// labelGroup labels paths, which may lead to a filesystem that hangs if served.
// One that another takes in is done with it: after it, and by itself if the
// other was not walked after all.
func (j *job) labelGroup(ctx context.Context, paths []string, served bool, begun func()) int {
	roots := covered(ctx, paths, served, j.settings)
	var order []int
	for _, covered := range []bool{false, true} {
		for i, r := range roots {
			if covered == (r.Cover >= 0) {
				order = append(order, i)
			}
		}
	}
	codes, walked, done := make([]int, len(roots)), make([]bool, len(roots)), make([]chan struct{}, len(roots))
	for i := range done {
		done[i] = make(chan struct{})
	}
	wait.InTurn(len(order), func(n int, stalls func()) {
		i := order[n]
		defer close(done[i])
		if by := site.CoverOf(roots, i); by >= 0 {
			select {
			case <-done[by]:
			default:
				stalls()
				<-done[by]
			}
			if walked[by] {
				if j.verbose || j.json {
					j.Skip(roots[i].Path, roots[i].Path, "done with "+words.Plain(roots[by].Path))
				}
				return
			}
		}
		codes[i], walked[i] = j.one(ctx, roots[i].Path, stalls)
	}, begun)
	return exit.Worst(codes)
}

// covered is coversOf. Where a look may hang, and does not return in time, none takes
// in another; else the outcome does not depend on how fast the machine is.
func covered(ctx context.Context, paths []string, served bool, s *settings) []site.Root {
	if served && len(paths) == 1 {
		return site.Bare(paths)
	}
	roots, _, ok := wait.Looks(ctx, patienceIf(served, wait.Patience), func(at *atomic.Int64) []site.Root {
		return site.Covers(ctx, paths, len(s.exclude) == 0 && (s.trust == "none" || s.trust == ""), at)
	})
	if !ok {
		return site.Bare(paths)
	}
	return roots
}
