// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/pace"
)

// manners does what --nice, --max-rate and --max-pressure ask for before the work. What
// is not asked for is nil. An error: the kernel does not offer it.
func (a app) manners(s *settings) (*pace.Pacer, *pace.Pressure, error) {
	if s.nice && a.giveWay != nil {
		if err := a.giveWay(); err != nil {
			return nil, nil, fmt.Errorf("--nice: %w", err)
		}
	}
	if s.maxPressure > 0 {
		press, err := pace.FindPressure(pace.MachineIO, s.maxPressure)
		if err != nil {
			return nil, nil, fmt.Errorf("--max-pressure: %w", err)
		}
		return pace.New(s.maxRate), press, nil
	}
	if s.maxRate > 0 {
		return pace.New(s.maxRate), nil, nil
	}
	return nil, nil, nil
}
