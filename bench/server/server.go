// SPDX-License-Identifier: Apache-2.0

// Package server serves the filesystems of bench by FUSE.
package server

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Run mounts a filesystem, prints "ready", and unmounts it at SIGTERM or SIGINT.
func Run(fs fuse.RawFileSystem, mountpoint string, options *fuse.MountOptions) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	server, err := Mount(fs, mountpoint, options)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-ended
	return server.Unmount()
}

// Mount returns when the filesystem is mounted, to be served until Unmount.
func Mount(fs fuse.RawFileSystem, mountpoint string, options *fuse.MountOptions) (*fuse.Server, error) {
	server, err := fuse.NewServer(fs, mountpoint, options)
	if err != nil {
		return nil, err
	}
	go server.Serve()
	return server, server.WaitMount()
}
