// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
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
// label was done before, and costs next to nothing.
func ExampleTree() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	report, err := relabel.Tree(ctx, "/srv/volumes/web",
		"system_u:object_r:container_file_t:s0:c35,c75",
		&relabel.Options{
			Trust: relabel.TrustRoot,
			Trace: &relabel.Trace{Skip: func(path, reason string) { log.Printf("left alone: %s: %s", path, reason) }},
		})
	var some *relabel.IncompleteError
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
	report, err := relabel.Check(context.Background(), volume,
		"system_u:object_r:container_file_t:s0:c75,c35", nil)
	fmt.Println(report.Written, "of", report.Seen, "entries do not have", report.Label, err)
	// Output: 3 of 3 entries do not have system_u:object_r:container_file_t:s0:c35,c75 <nil>
}

// The directories of the system are refused, however they are spelled.
func ExampleCheck() {
	_, err := relabel.Check(context.Background(), "/usr/../etc/",
		"system_u:object_r:container_file_t:s0", nil)
	fmt.Println(errors.Is(err, relabel.ErrRefused))
	// Output: true
}

// Ask whether a volume is labelled, without labelling it.
func ExampleInspect() {
	volume, err := os.MkdirTemp("", "volume-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(volume)
	s, err := relabel.Inspect(volume, "system_u:object_r:container_file_t:s0:c35,c75", relabel.TrustRoot)
	fmt.Println(s.Labelled, s.Interrupted, err)
	// Output: false false <nil>
}
