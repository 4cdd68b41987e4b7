// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "errors"

func giveWay() error { return errors.ErrUnsupported }
