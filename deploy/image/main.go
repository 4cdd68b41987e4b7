// SPDX-License-Identifier: Apache-2.0

// Command image writes the container image of a program as an OCI archive: an index of
// one image a platform, each of one layer with what is in a directory. The same input
// makes the same bytes.
//
//	image -o FILE -program NAME -description TEXT -docs DIR -version V -revision COMMIT -created SECONDS DIR/amd64 DIR/arm64
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const house = "https://github.com/fastlabel/fastlabel"

func main() {
	file := flag.String("o", "", "the archive")
	program := flag.String("program", "", "its name; runtimes call the image localhost/NAME:V")
	description := flag.String("description", "", "what it is for")
	docs := flag.String("docs", "", "the directory of its documents")
	version := flag.String("version", "", "of the program")
	revision := flag.String("revision", "", "the commit")
	seconds := flag.Int64("created", 0, "the time of all that is in it, since 1970")
	flag.Parse()
	created := time.Unix(*seconds, 0).UTC()
	labels := map[string]string{
		"org.opencontainers.image.title":         *program,
		"org.opencontainers.image.description":   *description,
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.source":        house,
		"org.opencontainers.image.documentation": house + "/tree/main/" + *docs,
		"org.opencontainers.image.version":       *version,
		"org.opencontainers.image.revision":      *revision,
		"org.opencontainers.image.created":       created.Format(time.RFC3339),
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, root := range flag.Args() {
		image, err := imageOf(root, *program, created, labels)
		if err != nil {
			log.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: filepath.Base(root)}},
		})
	}
	index, ok := mutate.Annotations(index, labels).(v1.ImageIndex)
	if !ok {
		log.Fatal("an index with annotations is no index")
	}
	if err := write(*file, "localhost/"+*program+":"+*version, index, created); err != nil {
		log.Fatal(err)
	}
}

// imageOf is the image for the platform by which root is named.
func imageOf(root, program string, created time.Time, labels map[string]string) (v1.Image, error) {
	var files bytes.Buffer
	if err := pack(&files, root, created); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: filepath.Base(root),
		Created:      v1.Time{Time: created},
		Config:       v1.Config{Entrypoint: []string{"/usr/bin/" + program}, Labels: labels},
	})
	if err != nil {
		return nil, err
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "make image"},
	})
	if err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, labels).(v1.Image)
	if !ok {
		return nil, errors.New("an image with annotations is no image")
	}
	return annotated, nil
}

// write makes the archive: a layout of the index alone, by which containerd and podman
// know the image's name.
func write(file, name string, index v1.ImageIndex, created time.Time) (err error) {
	dir, err := os.MkdirTemp("", "fastlabel-image")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name,
	})); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return pack(out, dir, created)
}

// pack writes what is in dir as a tar file, in the order of names: root's, and of one
// time.
func pack(to io.Writer, dir string, created time.Time) error {
	files, t := os.DirFS(dir), tar.NewWriter(to)
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if e.IsDir() {
			return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path + "/", Mode: 0o755, ModTime: created})
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: int64(len(text)), ModTime: created}); err != nil {
			return err
		}
		_, err = t.Write(text)
		return err
	})
	return errors.Join(err, t.Close())
}
