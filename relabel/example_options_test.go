// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// Who waits is told how far it is, by a goroutine that asks.
func ExampleOptions_progress() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := relabel.Tree(ctx, "/srv/volumes/web", "system_u:object_r:container_file_t:s0", relabel.Options{
		OnBegin: func(state func() relabel.State) {
			go func() {
				for tick := time.Tick(time.Second); ; {
					select {
					case <-ctx.Done():
						return
					case <-tick:
						s := state()
						log.Printf("%d entries, %d failed, at %q", s.Seen, s.Failed, s.Path)
					}
				}
			}()
		},
	})
	if err != nil {
		log.Print(err)
	}
}

// A thousand entries a second leave the disk to others. It returns when ctx ends,
// so that the run can be stopped while it waits.
func ExampleOptions_throttle() {
	const rate = 1000
	throttle := func(ctx context.Context, entries int) {
		t := time.NewTimer(time.Duration(entries) * time.Second / rate)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
	_, err := relabel.Tree(context.Background(), "/srv/volumes/web",
		"system_u:object_r:container_file_t:s0", relabel.Options{Threads: 1, Throttle: throttle})
	if err != nil {
		log.Print(err)
	}
}

// What went wrong, from the widest to the narrowest.
func ExampleTree_errors() {
	_, err := relabel.Tree(context.Background(), "/srv/volumes/web",
		"system_u:object_r:container_file_t:s0", relabel.Options{})
	var some *relabel.Incomplete
	var hung *relabel.Hung
	var where *fs.PathError
	switch {
	case err == nil:
	case errors.Is(err, relabel.ErrLabel), errors.Is(err, relabel.ErrRefused):
		log.Print("nothing was begun: ", err)
	case errors.As(err, &hung):
		log.Print("the filesystem does not answer: ", hung.Calls)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		log.Print("stopped; the next run goes on from there")
	case errors.As(err, &some):
		log.Printf("%d entries failed, the first: %v", some.Failed, some.First[0])
	case errors.Is(err, errors.ErrUnsupported):
		log.Print("the volume bears no labels")
	case errors.As(err, &where):
		log.Printf("%s: %v", where.Path, where.Err)
	}
}
