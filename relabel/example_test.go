// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// Label a volume before a container gets it. A volume whose root bears the
// label was done before, and costs next to nothing.
func ExampleTree() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	report, err := relabel.Tree(ctx, "/srv/volumes/web",
		"system_u:object_r:container_file_t:s0:c35,c75",
		relabel.Options{
			Skip:   relabel.SkipRoot,
			OnSkip: func(path, reason string) { log.Printf("left alone: %s: %s", path, reason) },
		})
	var some *relabel.Incomplete
	switch {
	case errors.As(err, &some):
		log.Printf("%d of %d entries could not be labelled: %v", some.Failed, report.Seen, err)
	case err != nil:
		log.Print(err)
	case report.Trusted:
		log.Print("labelled already")
	default:
		log.Printf("%d labels written in %v", report.Written, report.Elapsed)
	}
}

// The directories of the system are refused, however they are spelled.
func ExampleTree_refused() {
	_, err := relabel.Tree(context.Background(), "/usr/../etc/",
		"system_u:object_r:container_file_t:s0", relabel.Options{DryRun: true})
	fmt.Println(errors.Is(err, relabel.ErrRefused))
	// Output: true
}

// What is no security context is found before anything is opened.
func ExampleTree_label() {
	_, err := relabel.Tree(context.Background(), "/srv/volumes/web", "container_file_t", relabel.Options{})
	var label *relabel.LabelError
	if errors.As(err, &label) {
		fmt.Println(label.BareType)
	}
	// Output: true
}

// Ask whether a volume is labelled, without labelling it.
func ExampleLabelled() {
	const label = "system_u:object_r:container_file_t:s0"
	_, err := relabel.Labelled("/no/such/volume", label, relabel.Root)
	var where *fs.PathError
	if errors.As(err, &where) {
		fmt.Println(where.Path, errors.Is(err, syscall.ENOENT))
	}
	// Output: /no/such/volume true
}

// A run that was stopped leaves a seal on the root; the next run completes it.
func ExampleInterrupted() {
	const volume, label = "/srv/volumes/web", "system_u:object_r:container_file_t:s0"
	half, err := relabel.Interrupted(volume, label)
	if err == nil && half {
		_, err = relabel.Tree(context.Background(), volume, label, relabel.Options{})
	}
	if err != nil {
		log.Print(err)
	}
}
