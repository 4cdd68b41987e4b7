// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// pathsFrom reads the paths in file, "-" being stdin. In lines, the last
// newline may be missing and empty lines are passed over; with null each path
// is the exact bytes before a NUL. It returns when ctx ends: stdin may be a
// pipe that nobody writes to.
func pathsFrom(ctx context.Context, stdin io.Reader, file string, null bool) ([]string, error) {
	data, err := wait.Within(ctx, func() ([]byte, error) {
		if file == "-" {
			return io.ReadAll(stdin)
		}
		return os.ReadFile(file)
	})
	if err != nil && exit.IsEnd(ctx, err) && file != "-" {
		err = &relabel.Hung{Calls: []relabel.HungCall{{Call: "read", Path: file}}, Cause: err}
	}
	if err != nil {
		return nil, err
	}
	return splitPaths(data, file, null)
}

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
			return nil, exit.UsageError{Err: fmt.Errorf("--files-from %s: %s %d holds a NUL; paths that end in NUL need --null", words.Brief(file), unit, n)}
		default:
			paths = append(paths, string(item))
		}
	}
	return paths, nil
}
