// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/metrics"
	"github.com/fastlabel/fastlabel/relabel"
)

// probeAll asks each path whether it bears the label.
func (j *job) probeAll(ctx context.Context, paths []string) int {
	codes := make([]int, len(paths))
	inTurn(len(paths), func(i int, stalls func()) {
		began := time.Now()
		defer func() {
			j.ledger.add(metrics.Path{Name: paths[i], ExitCode: codes[i], Elapsed: time.Since(began)})
		}()
		if ctx.Err() != nil {
			code, reason := endOf(ctx)
			j.note(paths[i], "not begun ("+reason+")")
			codes[i] = code
			return
		}
		codes[i] = j.probe(ctx, paths[i], stalls)
	}, func() {})
	return worstOf(codes)
}

// probeGrace is how long an answer may take that is under way when ctx ends.
const probeGrace = 300 * time.Millisecond

// probe asks one, in a goroutine that may be left behind.
func (j *job) probe(ctx context.Context, path string, stalls func()) int {
	slow := time.AfterFunc(patience, func() {
		j.stall(path, relabel.HungCall{Path: path})
		stalls()
	})
	defer slow.Stop()
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(probeGrace, cancel) })()
	r, err := within(late, func() (probeResult, error) { return j.ask(path) })
	switch {
	case err != nil && late.Err() != nil:
		j.failure(path, &fs.PathError{Path: path, Err: errors.New("the filesystem does not answer")})
		code, _ := endOf(ctx)
		return code
	case err != nil:
		j.failure(path, err)
		return codeOf(err)
	}
	j.probed(r)
	if !r.labelled {
		return exitDiffers
	}
	return exitDone
}

func (j *job) ask(path string) (probeResult, error) {
	depth := relabel.Root
	if j.depth == "top" {
		depth = relabel.Top
	}
	r := probeResult{root: path, label: j.label, depth: j.depth}
	var err error
	if r.labelled, err = j.labelled(path, j.label, depth); err == nil && !r.labelled {
		r.interrupted, err = j.sealed(path, j.label)
	}
	return r, err
}
