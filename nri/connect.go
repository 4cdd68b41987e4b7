// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/stub"
)

// again is the pause before the next try to connect. Registering waits for operations
// of the runtime under way, so it is not to be tried all the time.
const again = time.Second

// connector keeps the plugin registered: a runtime closes the connection when it ends,
// and when an answer takes longer than it allows.
type connector struct {
	socket, index string
	plugin        *plugin
	log           *slog.Logger
}

func (c *connector) serve(ctx context.Context) {
	var said string
	for ctx.Err() == nil {
		err := c.once(ctx)
		c.plugin.counts.connected.Set(0)
		if ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != said { // a runtime may be away for long
			c.log.Warn("not connected", "error", err)
			said = text
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// once is one connection, to its end. The stub waits for ever for a runtime that ends
// between a registration and its answer, so it is not waited for alone.
func (c *connector) once(ctx context.Context) error {
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return err
	}
	conn := &watched{Conn: dialed, gone: make(chan struct{})}
	defer conn.Close()
	s, err := stub.New(c.plugin, stub.WithPluginName("fastlabel"), stub.WithPluginIdx(c.index), stub.WithConnection(conn))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case err = <-ended:
	case <-conn.gone:
	case <-ctx.Done():
	}
	if err == nil {
		err = net.ErrClosed
	}
	return err
}

// watched tells when a connection is gone.
type watched struct {
	net.Conn
	gone chan struct{}
	once sync.Once
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil {
		w.once.Do(func() { close(w.gone) })
	}
	return n, err
}
