// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Pressure slows a run down while tasks wait for I/O: "some avg10" of the
// kernel's pressure stall information (PSI), the percentage of the last ten
// seconds in which at least one task did.
type Pressure struct {
	file string
	most float64 // --max-pressure, in per cent
	// limit is the rate that it asks for, in entries a second; 0: none.
	limit float64
}

const (
	// lookEvery is how often the kernel works the averages out (PSI_FREQ).
	lookEvery = 2 * time.Second
	// down and up change the limit: a third in the ten seconds that it takes
	// the average to follow, and slowly back.
	down, up = 0.8, 1.1
	// slowest is the least rate, so that the run ends.
	slowest = 10
)

// MachineIO is where the kernel tells the machine's I/O pressure. That of a cgroup says
// how long its own tasks wait, and this is to give way to others.
const MachineIO = "/proc/pressure/io"

// FindPressure finds out whether file tells.
func FindPressure(file string, most float64) (*Pressure, error) {
	if _, err := readPressure(file); err != nil {
		return nil, fmt.Errorf("the kernel tells no I/O pressure (PSI): %w", err)
	}
	return &Pressure{file: file, most: most}, nil
}

// readPressure reads "some avg10", in per cent.
func readPressure(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	rest, ok := strings.CutPrefix(string(text), "some avg10=")
	value, _, _ := strings.Cut(rest, " ")
	avg, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil || !(avg >= 0) {
		return 0, fmt.Errorf("%s begins with no \"some avg10=\"", file)
	}
	return avg, nil
}

// look takes what the pressure is, in per cent, and how many entries a second
// are done, and sets the limit.
func (p *Pressure) look(avg, rate float64) {
	switch {
	case avg > p.most && p.limit == 0:
		p.limit = max(slowest, down*rate)
	case avg > p.most:
		p.limit = max(slowest, down*min(p.limit, max(rate, slowest)))
	case p.limit > 2*max(rate, slowest): // it holds nothing back any more
		p.limit = 0
	case p.limit > 0:
		p.limit *= up
	}
}

// Watch looks at the pressure until the run is over, and has the pacer hold
// entries back.
func (p *Pressure) Watch(pace *Pacer) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		before, at := pace.done(), time.Now()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			now, n := time.Now(), pace.done()
			rate := float64(n-before) / now.Sub(at).Seconds()
			before, at = n, now
			if avg, err := readPressure(p.file); err == nil { // else the limit stays
				p.look(avg, rate)
				pace.hold(p.limit)
			}
		}
	}()
	return func() { close(over); <-ended }
}
