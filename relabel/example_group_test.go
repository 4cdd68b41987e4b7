// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// A runtime has one Group, and asks it in each request for a container. Who
// asks again, after a request that came to its end before the volume did, joins
// the work that goes on.
func ExampleGroup() {
	group := relabel.Group{Trace: func(root string) *relabel.Trace { return relabel.LogTo(slog.Default(), root) }}

	create := func(ctx context.Context) error {
		_, err := group.Tree(ctx, "/srv/volumes/web", "system_u:object_r:container_file_t:s0:c35,c75", relabel.TrustRoot)
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
	for _, p := range group.Work() {
		log.Printf("%s: %v", p.Root, p)
	}
}

// What a caller is told who leaves before the end.
func ExamplePendingError() {
	var err error = &relabel.PendingError{
		Work:   relabel.Work{Root: "/srv/volumes/web", Entries: 1203000, Elapsed: 118 * time.Second},
		Within: 2 * time.Minute,
		Cause:  context.DeadlineExceeded,
	}
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// "/srv/volumes/web": relabelling goes on: 1,203,000 entries after 1m58s; ask again within 2m0s
	// true
}
