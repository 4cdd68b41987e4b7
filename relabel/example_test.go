// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// The whole of it, as README.md has it.
func Example() {
	ctx := context.Background()
	report, err := relabel.Tree(ctx, "/srv/volume",
		"system_u:object_r:container_file_t:s0:c12,c345", nil)
	fmt.Println(report.Complete, err)
}

// Label a volume before a container gets it. A volume whose root has the
// label was done before, and costs next to nothing. What was skipped, or done otherwise than
// asked, is logged.
func ExampleTree() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	const volume = "/srv/volumes/web"
	report, err := relabel.Tree(ctx, volume, "system_u:object_r:container_file_t:s0:c35,c75",
		&relabel.Options{Skip: relabel.SkipRoot, Trace: relabel.LogTo(slog.Default(), volume)})
	switch {
	case err != nil:
		log.Print(err)
	case report.Trusted:
		log.Print("labelled already")
	default:
		log.Printf("%d labels written in %v", report.Written, report.Elapsed)
	}
}

// A dry run tells what would be written, and needs no rights to write.
func ExampleVerify() {
	volume, err := os.MkdirTemp("", "volume-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(volume)
	for _, name := range []string{"index.html", "style.css"} {
		if err := os.WriteFile(filepath.Join(volume, name), nil, 0o600); err != nil {
			log.Print(err)
		}
	}
	report, err := relabel.Verify(context.Background(), volume,
		"system_u:object_r:container_file_t:s0:c75,c35", nil)
	fmt.Println(report.Written, "of", report.Seen, "entries do not have", report.Label, err)
	// Output: 3 of 3 entries do not have system_u:object_r:container_file_t:s0:c35,c75 <nil>
}

// Ask whether a volume is labelled, without labelling it.
func ExampleInspect() {
	volume, err := os.MkdirTemp("", "volume-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(volume)
	s, err := relabel.Inspect(volume, "system_u:object_r:container_file_t:s0:c35,c75", relabel.SkipRoot)
	fmt.Println(s.Labelled, s.Interrupted, err)
	// Output: false false <nil>
}

// A runtime relabels a volume that was given with :z or :Z. A volume that has
// no labels is no reason not to start the container.
func ExampleRelabel() {
	const mountLabel = "system_u:object_r:container_file_t:s0:c35,c75"
	shared := false // true for :z
	err := relabel.Relabel("/srv/volumes/web", mountLabel, shared)
	var where *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOTSUP):
		log.Print("the volume has no labels")
	case errors.As(err, &where):
		log.Printf("%s could not be labelled: %v", where.Path, where.Err)
	}
}

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
	var pending *relabel.PendingError
	switch {
	case err == nil:
	case errors.Is(err, relabel.ErrLabel), errors.Is(err, relabel.ErrRefused):
		log.Print("nothing was begun: ", err)
	case errors.As(err, &hung):
		log.Print("the filesystem does not answer: ", hung.Calls)
	case errors.As(err, &pending):
		log.Print("it continues; ask again, or relabel.Stop before the volume is unmounted: ", pending)
	case errors.Is(err, context.Cause(ctx)):
		log.Print("stopped; the next run resumes")
	case errors.As(err, &some):
		log.Printf("%d entries failed, the first: %v", some.Failed, some.First[0])
	case errors.Is(err, errors.ErrUnsupported):
		log.Print("the volume has no labels")
	default: // with the path and the errno, where there are any
		log.Print(err)
	}
}

// A runtime has one Group, and asks it in each request for a container. Who
// asks again, after a request that came to its end before the volume did, joins
// the work that goes on.
func ExampleGroup() {
	group := relabel.Group{Trace: func(root string) *relabel.Trace { return relabel.LogTo(slog.Default(), root) }}

	create := func(ctx context.Context) error {
		_, err := group.Tree(ctx, "/srv/volumes/web", "system_u:object_r:container_file_t:s0:c35,c75", relabel.SkipRoot)
		var pending *relabel.PendingError
		if errors.As(err, &pending) {
			log.Printf("%d entries so far, %d others wait", pending.Entries, pending.Callers)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := create(ctx); err != nil {
		log.Print(err)
	}
	// For a metric, or the stage that a timeout names.
	for _, p := range group.Pending() {
		log.Printf("%s: %v", p.Root, p)
	}
}
