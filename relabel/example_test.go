// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
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

// A dry run tells what would be written, and needs no rights to write.
func ExampleTree_dryRun() {
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
	report, err := relabel.Tree(context.Background(), volume,
		"system_u:object_r:container_file_t:s0:c75,c35", relabel.Options{DryRun: true})
	fmt.Println(report.Written, "of", report.Seen, "entries do not bear", report.Label, err)
	// Output: 3 of 3 entries do not bear system_u:object_r:container_file_t:s0:c35,c75 <nil>
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
	fmt.Println(errors.Is(err, relabel.ErrLabel), err)
	// Output: true "container_file_t": not a security context: it has no colon; a context looks like user:role:type:level, such as system_u:object_r:container_file_t:s0
}

// Ask whether a volume is labelled, without labelling it.
func ExampleLabelled() {
	volume, err := os.MkdirTemp("", "volume-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(volume)
	fmt.Println(relabel.Labelled(volume, "system_u:object_r:container_file_t:s0:c35,c75", relabel.Top))
	// Output: false <nil>
}

// One that is not there is an error.
func ExampleLabelled_missing() {
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
