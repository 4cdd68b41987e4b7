// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"log/slog"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// Who waits is told how far it is, by a goroutine that asks.
func ExampleProgress() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var progress relabel.Progress
	go func() {
		for tick := time.Tick(time.Second); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				if s, begun := progress.State(); begun {
					log.Printf("%d entries, %d failed, at %q", s.Seen, s.Failed, s.Path)
				}
			}
		}
	}()
	_, err := relabel.Tree(ctx, "/srv/volumes/web", "system_u:object_r:container_file_t:s0",
		&relabel.Options{Progress: &progress})
	if err != nil {
		log.Print(err)
	}
}

// What was left alone, or done otherwise than asked, is logged.
func ExampleLogTo() {
	const volume = "/srv/volumes/web"
	_, err := relabel.Tree(context.Background(), volume, "system_u:object_r:container_file_t:s0",
		&relabel.Options{Trace: relabel.LogTo(slog.Default(), volume)})
	if err != nil {
		log.Print(err)
	}
}

// A thousand entries a second leave the disk to others. It returns when ctx ends,
// so that the run can be stopped while it waits. The WaitN of a rate.Limiter of
// golang.org/x/time does as well.
func ExampleOptions_throttle() {
	const rate = 1000
	throttle := func(ctx context.Context, entries int) error {
		t := time.NewTimer(time.Duration(entries) * time.Second / rate)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return nil
		}
	}
	_, err := relabel.Tree(context.Background(), "/srv/volumes/web",
		"system_u:object_r:container_file_t:s0", &relabel.Options{Workers: 1, Throttle: throttle})
	if err != nil {
		log.Print(err)
	}
}

// What went wrong, from the widest to the narrowest.
func ExampleTree_errors() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := relabel.Tree(ctx, "/srv/volumes/web",
		"system_u:object_r:container_file_t:s0", nil)
	var some *relabel.IncompleteError
	var hung *relabel.HungError
	var where *fs.PathError
	switch {
	case err == nil:
	case errors.Is(err, relabel.ErrLabel), errors.Is(err, relabel.ErrRefused):
		log.Print("nothing was begun: ", err)
	case errors.As(err, &hung):
		log.Print("the filesystem does not answer: ", hung.Calls)
	case errors.Is(err, context.Cause(ctx)):
		log.Print("stopped; the next run resumes")
	case errors.As(err, &some):
		log.Printf("%d entries failed, the first: %v", some.Failed, some.First[0])
	case errors.Is(err, errors.ErrUnsupported):
		log.Print("the volume has no labels")
	case errors.As(err, &where):
		log.Printf("%s: %v", where.Path, where.Err)
	}
}
