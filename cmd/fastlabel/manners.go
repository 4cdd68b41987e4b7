// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/pace"
)

// manners does what --nice, --max-rate and --max-pressure ask for, as far as
// that is done before the work; nil is what nobody asked for. An error says that
// it cannot be had here.
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
