// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/relabel"
)

// progress reports how far the run is that is under way. Its goroutine asks the engine, which
// does not wait for it, and writes; runs begin and end in another: mu guards which there
// is, and is held while something is written, so that no line comes after its run's summary.
type progress struct {
	screen *stream.Screen
	report.Reporter
	columns func() (n int, ours bool)
	pace    pace
	began   time.Time
	inodes  func(path string) int64 // at most so many entries; 0: unknown
	state   func(*relabel.Progress) (relabel.State, bool)

	mu  sync.Mutex
	run *underWay // nil: none is
}

func (a app) newProgress(s *settings, to report.Reporter) *progress {
	return &progress{
		Reporter: to,
		screen:   a.screen,
		columns:  a.screen.Columns,
		pace:     paceOf(s, a.screen),
		began:    time.Now(),
		inodes: func(path string) int64 {
			if len(s.exclude) > 0 || s.command == "restorecon" && !s.recursive {
				return 0 // it is the whole filesystem that has so many
			}
			return site.InodesOf(path, s.xdev)
		},
		state: a.state,
	}
}

// pace says when progress is shown: at zero never.
type pace struct {
	drawn bool          // a line on a terminal that is drawn again and again
	after time.Duration // that is, if the run lasts so long
	every time.Duration // else whole lines
}

const (
	redraw    = 100 * time.Millisecond // no eye is faster
	each      = time.Second            // an object
	eachPlain = 5 * time.Second
	lasts     = time.Second     // what is over sooner needs no line
	earliest  = 3 * time.Second // before that nothing is said of the time left
	farthest  = 1000 * time.Hour
)

// underWay is one run.
type underWay struct {
	root   string
	began  time.Time
	screen *stream.Screen
	before time.Duration // that the screen had been stopped when the run began
	inodes atomic.Int64  // as progress has it

	far relabel.Progress
	ask func(*relabel.Progress) (relabel.State, bool)

	// Of the goroutine that shows.
	asked bool
	path  string
	said  time.Time // when a whole line was written last
}

// paceOf chooses. NO_COLOR is respected: there are no colours.
func paceOf(s *settings, on *stream.Screen) pace {
	n, _ := on.Columns()
	switch {
	case s.quiet, (s.json || n == 0) && s.progress == "":
		return pace{}
	case s.json:
		return pace{every: each}
	case s.progress == "plain", n == 0, stream.Dumb():
		return pace{every: eachPlain}
	case s.progress == "":
		return pace{drawn: true, after: lasts}
	}
	return pace{drawn: true}
}

// show begins to show; the function that it returns ends it.
func (p *progress) show() (end func()) {
	over := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		every := each
		if p.pace.drawn {
			every = redraw
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-over:
				p.screen.Draw("")
				return
			case now := <-tick.C:
				p.tell(now)
			}
		}
	})
	return func() { close(over); shown.Wait() }
}

// begin begins a run, which end ends. Where there is no progress it is not shown.
func (p *progress) begin(root string) *underWay {
	now := time.Now()
	u := &underWay{root: root, began: now, said: now, ask: (*relabel.Progress).State}
	if p != nil {
		if p.state != nil {
			u.ask = p.state
		}
		u.screen, u.before = p.screen, p.screen.Stopped()
		p.mu.Lock()
		p.run = u
		p.mu.Unlock()
	}
	return u
}

func (p *progress) end() {
	if p != nil {
		p.mu.Lock()
		p.run = nil
		p.mu.Unlock()
	}
}

// stopped is for how long of the run the process was stopped by ^Z.
func (u *underWay) stopped() time.Duration { return u.screen.Stopped() - u.before }

// state returns the progress of the run; false if it has not begun.
func (u *underWay) state() (relabel.State, bool) { return u.ask(&u.far) }

// tell draws the line, or writes a whole one if it is time for that.
func (p *progress) tell(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, begun := "", false
	if p.run != nil {
		_, begun = p.run.state()
	}
	if begun {
		f := p.far(p.run, now)
		n, ours := p.columns()
		switch {
		case p.pace.drawn && now.Sub(p.began) >= p.pace.after && ours:
			line = f.Line(n - 1) // in the last column a terminal may begin a new line
		case p.pace.every > 0 && now.Sub(p.run.said) > p.pace.every-each/2: // a tick may come a little early
			p.run.said = now
			p.Put(report.Event{Kind: report.Status, State: "running", Root: p.run.root, Far: &f})
		}
	}
	p.screen.Draw(line)
}

// far returns the progress of u. The filesystem is asked for its inodes in a goroutine of its own:
// it may not answer.
func (p *progress) far(u *underWay, now time.Time) report.Far {
	if !u.asked {
		u.asked = true
		go func() { u.inodes.Store(p.inodes(u.root)) }()
	}
	s, _ := u.state()
	if s.Path == "" && s.Call == "" {
		s.Path = u.path // between two
	}
	u.path = s.Path
	f := report.Far{State: s, Elapsed: now.Sub(u.began) - u.stopped()}
	if f.Elapsed > 0 {
		f.Rate = float64(s.Seen) / f.Elapsed.Seconds()
	}
	// A number that was passed says nothing: entries were created since, or are names of one file.
	if n := u.inodes.Load(); n >= s.Seen {
		f.Total = n
	}
	if f.Elapsed >= earliest && s.Call == "" { // a call such as syncfs is not about entries
		f.Left = left(f.Total-s.Seen, f.Rate)
	}
	return f
}

// left is how long the rest takes at that rate, in whole seconds; 0 is not known.
func left(rest int64, rate float64) time.Duration {
	seconds := math.Ceil(float64(rest) / rate)
	if rest <= 0 || rate <= 0 || seconds > farthest.Seconds() {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// watched has the run tell u how far it is, and be held back.
func (j *job) watched(o *relabel.Options, u *underWay) {
	if j.progress != nil {
		o.Progress = &u.far
	}
	if j.limiter != nil {
		o.Throttle = func(ctx context.Context, entries int) error {
			if j.limiter.WaitN(ctx, entries) != nil { // or the turn would come after ctx's deadline
				<-ctx.Done()
			}
			return nil // its end is ctx's
		}
	}
}

// limiterOf lets through so many entries a second, of all workers and all PATHs together.
// What was slept too long is made up for, up to a fifth of a second: a timer comes a
// millisecond late, a busy machine's later.
func limiterOf(maxRate int) *rate.Limiter {
	burst := max(8, maxRate/5) // the engine asks for 8 at most
	l := rate.NewLimiter(rate.Limit(maxRate), burst)
	l.AllowN(time.Now(), burst) // none was slept yet
	return l
}
