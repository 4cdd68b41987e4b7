// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// progress tells how far the runs are that are under way. Its goroutine asks
// the engine, which does not wait for it, and writes; runs come and go in
// others: mu guards which there are.
type progress struct {
	screen  *screen
	json    *jsonLines // nil: for people
	columns func() (n int, ours bool)
	how     showing
	began   time.Time
	total   func(path string) int64
	manager manager

	mu  sync.Mutex
	all []*underWay // in the order in which they began

	saying sync.Mutex // held while a run's line is written, so that none comes after its summary
}

func (a app) newProgress(command string, s *settings, out *sink) *progress {
	p := &progress{
		screen:  a.screen,
		columns: func() (int, bool) { return columns(a.screen.w) },
		how:     showingOf(s, a.screen.w),
		began:   time.Now(),
		total:   func(path string) int64 { return entriesOf(path, s) },
		manager: manager{tell: a.notify},
	}
	if s.json {
		p.json = &jsonLines{out: out, dry: s.dryRun || command == "verify"}
	}
	return p
}

// showing is how progress is shown. SIGUSR1 is answered in each way.
type showing int

const (
	silent  showing = iota
	live            // a line on a terminal that is drawn again and again
	soon            // live, if it lasts
	plainly         // a line every 30 s
	asJSON          // an object each second
)

const (
	redraw    = 100 * time.Millisecond // no eye is faster
	each      = time.Second            // a sample, and an object
	eachPlain = 30 * time.Second
	lasts     = time.Second // what is over sooner needs no line
)

// underWay is one run.
type underWay struct {
	root  string
	began time.Time
	total atomic.Int64 // entries in all, about; 0: unknown

	state func() relabel.State // nil before it has begun; progress.mu guards it

	// Of the goroutine that shows.
	estimate estimate
	asked    bool
	path     string
}

// showingOf chooses. NO_COLOR is respected: there are no colours.
func showingOf(s *settings, stderr io.Writer) showing {
	n, _ := columns(stderr)
	switch {
	case s.quiet:
		return silent
	case s.json && s.progress:
		return asJSON
	case s.json:
		return silent
	case n > 0 && !dumb() && s.progress:
		return live
	case n > 0 && !dumb():
		return soon
	case n > 0, s.progress:
		return plainly
	}
	return silent
}

// show begins to show; the function that it returns ends it.
func (p *progress) show(asked <-chan os.Signal) (end func()) {
	over := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		every := each
		if p.how == live || p.how == soon {
			every = redraw
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		said := p.began
		for {
			select {
			case <-over:
				p.screen.draw("")
				return
			case <-asked:
				p.answer()
			case now := <-tick.C:
				p.sample(now)
				p.manager.see(p, now)
				switch {
				case p.how == live, p.how == soon && now.Sub(p.began) >= lasts:
					p.draw(now)
				case p.how == plainly && now.Sub(said) >= eachPlain:
					said = now
					p.say(now)
				case p.how == asJSON:
					p.say(now)
				}
			}
		}
	})
	return func() { close(over); shown.Wait() }
}

// begin adds a run, which end takes away. Where there is no progress it is not
// shown.
func (p *progress) begin(root string) *underWay {
	u := &underWay{root: root, began: time.Now()}
	u.estimate = newEstimate(u.began)
	if p != nil {
		p.mu.Lock()
		p.all = append(p.all, u)
		p.mu.Unlock()
	}
	return u
}

// watch makes state known.
func (p *progress) watch(u *underWay, state func() relabel.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u.state = state
}

func (p *progress) end(u *underWay) {
	if p == nil {
		return
	}
	p.saying.Lock()
	defer p.saying.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = slices.DeleteFunc(p.all, func(o *underWay) bool { return o == u })
}

// runs are those of which something is known.
func (p *progress) runs() []*underWay {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.all), func(u *underWay) bool { return u.state == nil })
}

// sample notes how far each run is, for the rate. How many entries there are is
// asked where the filesystem may not answer: nobody waits for it.
func (p *progress) sample(now time.Time) {
	for _, u := range p.runs() {
		u.estimate.add(now, u.state().Seen)
		if !u.asked {
			u.asked = true
			go func() { u.total.Store(p.total(u.root)) }()
		}
	}
}

// draw draws the line: the run that began last, of those that go on beside one
// that stalls.
func (p *progress) draw(now time.Time) {
	runs := p.runs()
	n, ours := p.columns()
	if len(runs) == 0 || !ours {
		p.screen.draw("")
		return
	}
	// In the last column a terminal may begin a new line.
	p.screen.draw(p.far(runs[len(runs)-1], now).line(n - 1))
}

// say writes a whole line for each run.
func (p *progress) say(now time.Time) {
	for _, u := range p.runs() {
		p.sayOf(u, now)
	}
}

// sayOf writes the line of a run, if it has not ended.
func (p *progress) sayOf(u *underWay, now time.Time) {
	p.saying.Lock()
	defer p.saying.Unlock()
	if !slices.Contains(p.runs(), u) {
		return
	}
	f := p.far(u, now)
	if p.json != nil {
		p.json.status(f)
		return
	}
	_, _ = io.WriteString(p.screen, "fastlabel: "+plain(tidy(u.root))+": "+f.line(widest)+"\n")
}

// answer is say for one who asked.
func (p *progress) answer() {
	now := time.Now()
	p.sample(now)
	if len(p.runs()) == 0 {
		text := "nothing is under way"
		if p.json != nil {
			p.json.note("", text)
		} else {
			_, _ = io.WriteString(p.screen, "fastlabel: "+text+"\n")
		}
		return
	}
	p.say(now)
}

// far is how far a run is.
type far struct {
	relabel.State
	root        string
	elapsed     time.Duration
	rate        float64 // entries a second
	total       int64   // about; 0: unknown
	least, most time.Duration
	known       bool // least and most
}

func (p *progress) far(u *underWay, now time.Time) far {
	s := u.state()
	if s.Path == "" && s.Call == "" {
		s.Path = u.path // between two
	}
	u.path = s.Path
	f := far{State: s, root: u.root, elapsed: now.Sub(u.began), total: u.total.Load()}
	if f.total < s.Seen {
		f.total = 0 // it grows, or was never true
	}
	f.rate = u.estimate.over(recent, now, s.Seen)
	f.least, f.most, f.known = u.estimate.left(now, s.Seen, f.total)
	return f
}

// line is for people, in so many columns.
func (f far) line(room int) string {
	var failed []string
	if f.Failed > 0 {
		failed = []string{thousands(f.Failed) + " failed"}
	}
	parts := append([]string{thousands(f.Seen) + " entries"}, failed...)
	// Failures matter more than how many entries there are.
	whole := append([]string{thousands(f.Seen) + " of about " + thousands(f.total) + " entries"}, failed...)
	if f.total > 0 && len(strings.Join(whole, ", ")) <= room {
		parts = whole
	}
	if f.known {
		parts = append(parts, between(f.least, f.most))
	}
	parts = append(parts, thousands(int64(math.Round(f.rate)))+"/s")
	if f.Call != "" {
		return fit(append(parts, "in "+clean(f.Call)), "", room)
	}
	if f.total == 0 {
		parts = append(parts, thousands(f.Found)+" directories found so far")
	}
	return fit(parts, f.Path, room)
}

// tidy cuts a PATH that would bury the line.
func tidy(path string) string {
	if len(path) > widest {
		return tail(path, widest)
	}
	return path
}

// left is how much is left of a run that was stopped: about so many entries, or
// at least so many directories; 0 is not known.
func (u *underWay) left() (entries, dirs int64) {
	if u.state == nil {
		return 0, 0
	}
	s := u.state()
	return max(0, u.total.Load()-s.Seen), s.Found - s.Entered
}

// watched has the run tell u how far it is, and be held back.
func (j *job) watched(o *relabel.Options, u *underWay) {
	if j.progress != nil {
		o.OnBegin = func(state func() relabel.State) { j.progress.watch(u, state) }
	}
	if j.pacer != nil {
		o.Throttle = func(ctx context.Context, entries int) { j.pacer.wait(ctx, entries) }
	}
}
