// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// progress tells how far the runs are that are under way. Its goroutine asks
// the engine, which does not wait for it, and writes; runs come and go in
// others: mu guards which there are.
type progress struct {
	screen  *stream.Screen
	json    *jsonLines // nil: for people
	columns func() (n int, ours bool)
	how     showing
	began   time.Time
	inodes  func(path string) int64 // at most so many entries; 0: unknown
	manager manager

	mu  sync.Mutex
	all []*underWay // in the order in which they began

	saying sync.Mutex // held while a run's line is written, so that none comes after its summary
}

func (a app) newProgress(command string, s *settings, out *stream.Sink) *progress {
	p := &progress{
		screen:  a.screen,
		columns: a.screen.Columns,
		how:     showingOf(s, a.screen),
		began:   time.Now(),
		inodes:  func(path string) int64 { return site.InodesOf(path, s.xdev) },
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
	root   string
	began  time.Time
	inodes atomic.Int64 // as progress has it

	state func() relabel.State // nil before it has begun; progress.mu guards it

	// Of the goroutine that shows.
	estimate estimate
	asked    bool
	path     string
}

// showingOf chooses. NO_COLOR is respected: there are no colours.
func showingOf(s *settings, on *stream.Screen) showing {
	n, _ := on.Columns()
	switch {
	case s.quiet:
		return silent
	case s.json && s.progress:
		return asJSON
	case s.json:
		return silent
	case n > 0 && !stream.Dumb() && s.progress:
		return live
	case n > 0 && !stream.Dumb():
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
				p.screen.Draw("")
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

// sample notes how far each run is, for the rate. The filesystem is asked for its
// inodes in a goroutine of its own: it may not answer.
func (p *progress) sample(now time.Time) {
	for _, u := range p.runs() {
		u.estimate.add(now, u.state().Seen)
		if !u.asked {
			u.asked = true
			go func() { u.inodes.Store(p.inodes(u.root)) }()
		}
	}
}

// draw draws the line: the run that began last, of those that go on beside one
// that stalls.
func (p *progress) draw(now time.Time) {
	runs := p.runs()
	n, ours := p.columns()
	if len(runs) == 0 || !ours {
		p.screen.Draw("")
		return
	}
	// In the last column a terminal may begin a new line.
	p.screen.Draw(p.far(runs[len(runs)-1], now).line(n - 1))
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
	_, _ = io.WriteString(p.screen, "fastlabel: "+words.Plain(tidy(u.root))+": "+f.line(words.Widest)+"\n")
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
	root    string
	elapsed time.Duration
	rate    float64 // entries a second
	total   int64   // entries, as from has it; 0: unknown
	from    bound
	left    time.Duration // 0: unknown
}

// bound is where the number of entries is from; "": it is unknown.
type bound string

const (
	byInodes  bound = "inodes"   // in use on the filesystem: there may be fewer entries
	byLastRun bound = "last_run" // so many entries were there
)

func (b bound) words(n string) string {
	if b == byInodes {
		return "at most " + n
	}
	return "about " + n
}

// bound is how many entries there are, or 0. The last run at this root knows best. One
// that has been passed is none: entries were created since, or are names of one file.
func (u *underWay) bound(s relabel.State) (total int64, from bound) {
	if s.LastRun > 0 && s.LastRun >= s.Seen {
		return s.LastRun, byLastRun
	}
	if n := u.inodes.Load(); n > 0 && n >= s.Seen {
		return n, byInodes
	}
	return 0, ""
}

func (p *progress) far(u *underWay, now time.Time) far {
	s := u.state()
	if s.Path == "" && s.Call == "" {
		s.Path = u.path // between two
	}
	u.path = s.Path
	f := far{State: s, root: u.root, elapsed: now.Sub(u.began), rate: u.estimate.rate(now, s.Seen)}
	f.total, f.from = u.bound(s)
	if f.elapsed >= earliest && s.Call == "" { // a call such as syncfs is not about entries
		f.left = left(f.total-s.Seen, f.rate)
	}
	return f
}

// percent is of the total. A run that has not ended is not at 100.
func (f far) percent() int64 {
	return min(99, int64(100*float64(f.Seen)/float64(f.total)))
}

// line is for people, in so many columns.
func (f far) line(room int) string {
	parts := []string{words.Thousands(f.Seen) + " entries"}
	if f.Failed > 0 {
		parts = append(parts, words.Thousands(f.Failed)+" failed")
	}
	parts = append(parts, words.Clock(f.elapsed)+" elapsed")
	if f.total > 0 {
		whole := slices.Clone(parts)
		whole[0] = fmt.Sprintf("%s of %s (%d%%)", words.Thousands(f.Seen), f.from.words(words.Thousands(f.total)), f.percent())
		// Failures and the time matter more than how many entries there are.
		if len(strings.Join(whole, ", ")) <= room {
			parts = whole
		}
	}
	if f.left > 0 {
		parts = append(parts, f.from.words(words.Clock(f.left))+" left")
	}
	parts = append(parts, words.Thousands(int64(math.Round(f.rate)))+"/s")
	if f.Call != "" {
		return words.Fit(append(parts, "in "+words.Clean(f.Call)), "", room)
	}
	if f.total == 0 {
		parts = append(parts, words.Thousands(f.Found)+" directories found so far")
	}
	return words.Fit(parts, f.Path, room)
}

// tidy cuts a PATH that would bury the line.
func tidy(path string) string {
	if len(path) > words.Widest {
		return words.Tail(path, words.Widest)
	}
	return path
}

// left is how much is left of a run that was stopped: so many entries by from, and
// at least so many directories; 0 is not known.
func (u *underWay) left() (entries int64, from bound, dirs int64) {
	if u.state == nil {
		return 0, "", 0
	}
	s := u.state()
	total, from := u.bound(s)
	return max(0, total-s.Seen), from, s.Found - s.Entered
}

// watched has the run tell u how far it is, and be held back.
func (j *job) watched(o *relabel.Options, u *underWay) {
	if j.progress != nil {
		o.OnBegin = func(state func() relabel.State) { j.progress.watch(u, state) }
	}
	if j.pacer != nil {
		o.Throttle = func(ctx context.Context, entries int) { j.pacer.Wait(ctx, entries) }
	}
}
