// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package apart

import (
	"context"
	"os"
)

func IsPart() bool                 { return false }
func Begin(chan<- os.Signal)       {}
func NotifyAsked(chan<- os.Signal) {}
func Leave(code int)               { os.Exit(code) }

func Run(context.Context) (code int, done bool) { return 0, false }
