// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// answer is f's result. Where ctx ends before, call hangs on path; "-" is a pipe, which
// may.
func answer[T any](ctx context.Context, call, path string, f func() (T, error)) (T, error) {
	r, err := wait.Within(ctx, f)
	if err != nil && path != "-" && exit.IsEnd(ctx, err) {
		err = hungAt(call, path, err)
	}
	return r, err
}

// hungAt is the end of a context while a call on path had not returned.
func hungAt(call, path string, end error) error {
	return &relabel.HungError{Calls: []relabel.HungCall{{Call: call, Path: path}}, Cause: end}
}

// input returns the content of file; of "-", stdin.
func input(ctx context.Context, stdin io.Reader, file string) ([]byte, error) {
	return answer(ctx, "read", file, func() (text []byte, err error) {
		if file == "-" {
			text, err = io.ReadAll(stdin)
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			err = fmt.Errorf("--files-from %s: %w", words.Brief(file), cmp.Or(errors.Unwrap(err), err))
		}
		return text, err
	})
}

// splitPaths finds the paths in a file of them. In lines, the last newline may be
// missing and empty lines are skipped; with null each path is the exact bytes
// before a NUL.
func splitPaths(data []byte, file string, null bool) ([]string, error) {
	end, unit := []byte{'\n'}, "line"
	if null {
		end, unit = []byte{0}, "record"
	}
	var paths []string
	n := 0
	for item := range bytes.SplitSeq(bytes.TrimSuffix(data, end), end) {
		n++
		switch {
		case len(item) == 0 && null && len(data) > 0:
			return nil, exit.UsageError{Err: fmt.Errorf("--files-from %s: %s %d is empty", words.Brief(file), unit, n)}
		case len(item) == 0:
		case bytes.IndexByte(item, 0) >= 0:
			return nil, exit.UsageError{Err: fmt.Errorf("--files-from %s: %s %d holds a NUL; use --null for paths that end in NUL", words.Brief(file), unit, n)}
		default:
			paths = append(paths, string(item))
		}
	}
	return paths, nil
}
