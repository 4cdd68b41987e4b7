// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package pace

import "errors"

func GiveWay() error { return errors.ErrUnsupported }
