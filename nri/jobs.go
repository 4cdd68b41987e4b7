// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel"
)

// # Who owns what
//
// Each job has a goroutine, which alone writes its err until it closes done; then all
// may read it. The rest of a job, and the map of jobs, are guarded by labeller.mu, which
// is not held while a filesystem is asked. A job is in the map until its goroutine has
// ended, so that a volume that hangs has one, however often it is asked for; and, if it
// failed when no request waited, until one comes.
//
// Why not a relabel.Group alone: it tells volumes by mount, and each pod has a mount of
// its own; and it does not limit how many are at work.

// errGone ends a job whose pod is deleted. Its volume cannot be unmounted before:
// the run holds it.
var errGone = fmt.Errorf("%w: a volume of the pod was unmounted", relabel.ErrStopped)

// watchEach is the interval of what looks now and then: a moment for people.
const watchEach = 5 * time.Second

// endEach is the interval of what looks for work to be ended.
const endEach = 50 * time.Millisecond

// key is a volume that gets a label.
type key struct{ device, root, label string }

// labeller labels volumes, a few at a time.
type labeller struct {
	group  relabel.Group
	places chan struct{} // of jobs that walk
	linger time.Duration
	log    *slog.Logger
	counts *counts
	mounts func() ([]mountinfo.Mount, error)
	change func(path, from, to string) // is called with each entry that is labelled; may be nil

	mu   sync.Mutex
	jobs map[key]*job
	shut bool
	all  sync.WaitGroup
}

// job labels one volume for all who ask for it, by the mount of the pod that was first: if
// that pod asks no more, the next try of another begins anew, by its own.
type job struct {
	volume
	label   string
	since   time.Time
	asked   time.Time   // when its pod did so last
	unasked *time.Timer // fires when that is too long ago
	stop    context.CancelCauseFunc
	waiting int // requests

	done chan struct{}
	err  error

	step string // under way, before it walks
	// The place among those that walk: since when, and how to give it back.
	walks time.Time
	free  func()
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

func newLabeller(volumes int, linger time.Duration, log *slog.Logger, n *counts) *labeller {
	l := &labeller{
		places: make(chan struct{}, volumes), linger: linger, log: log, counts: n, mounts: mountinfo.Read, jobs: make(map[key]*job),
	}
	l.group.Trace = l.trace
	return l
}

// join finds or begins the job for a volume. The caller leaves it.
func (l *labeller) join(v volume, label string) *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{v.device, v.root, label}
	if j := l.jobs[k]; j != nil {
		j.waiting++
		if !j.unasked.Stop() {
			return j // it ends, and the next try begins anew
		}
		if j.ended() { // and failed, which this request gets
			delete(l.jobs, k)
			return j
		}
		if v.path == j.path {
			j.asked = time.Now()
		}
		j.unasked.Reset(l.linger - time.Since(j.asked))
		return j
	}
	ctx, stop := context.WithCancelCause(context.Background())
	j := &job{volume: v, label: label, since: time.Now(), asked: time.Now(), stop: stop, waiting: 1, done: make(chan struct{}), step: "reading its label"}
	if l.shut {
		j.err = relabel.ErrStopped
		close(j.done)
		return j
	}
	j.unasked = time.AfterFunc(l.linger, func() {
		stop(relabel.ErrStopped)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forget(j)
	})
	l.jobs[k] = j
	l.all.Go(func() { l.run(ctx, j) })
	return j
}

// leave is for a request that is answered.
func (l *labeller) leave(jobs []*job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range jobs {
		j.waiting--
	}
}

// forget drops a job that has ended. mu is held.
func (l *labeller) forget(j *job) {
	if k := (key{j.device, j.root, j.label}); j.ended() && l.jobs[k] == j {
		delete(l.jobs, k)
	}
}

func (l *labeller) run(ctx context.Context, j *job) {
	report, err := l.label(ctx, j)
	l.counts.volume(err)
	l.log.Info("volume", "path", j.path, "label", j.label, "seen", report.Seen, "written", report.Written,
		"trusted", report.Trusted, "elapsed", time.Since(j.since), "error", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	j.err = err
	close(j.done)
	if err == nil || j.waiting > 0 || ctx.Err() != nil {
		j.unasked.Stop()
		l.forget(j)
	}
}

// label labels the volume when it is its turn.
func (l *labeller) label(ctx context.Context, j *job) (relabel.Report, error) {
	none := relabel.Report{Root: j.path, Label: j.label}
	// What is labelled takes no place, and neither does what does not answer.
	s, err := relabel.Inspect(j.path, j.label, relabel.SkipRoot)
	if err != nil || s.Labelled {
		none.Trusted = s.Labelled
		return none, err
	}
	l.mu.Lock()
	j.step = "waiting for other volumes"
	l.mu.Unlock()
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	l.mu.Lock()
	j.walks, j.free = time.Now(), sync.OnceFunc(func() { <-l.places })
	l.mu.Unlock()
	defer j.free()
	if all, err := l.mounts(); err != nil {
		return none, err
	} else if !j.mounted(all) {
		return none, errGone
	}
	// The Group knows what a run waits for, and how to end one.
	returned := make(chan struct{})
	defer close(returned)
	defer context.AfterFunc(ctx, func() { l.end(j.path, returned) })()
	return l.group.Tree(context.WithoutCancel(ctx), j.path, j.label, relabel.SkipRoot)
}

// end stops the Group's work at path. There is none before Tree has begun it, so it is
// looked for until Tree has returned.
func (l *labeller) end(path string, returned <-chan struct{}) {
	for {
		short, cancel := context.WithTimeout(context.Background(), grace)
		err := l.group.Stop(short, path)
		cancel()
		if err != nil { // what was stopped stays so
			l.log.Warn("not stopped", "path", path, "error", err)
			return
		}
		select {
		case <-returned:
			return
		case <-time.After(endEach):
		}
	}
}

// farOf describes the jobs that have not ended, for people.
func (l *labeller) farOf(jobs []*job) error {
	work := make(map[key]string)
	for _, w := range l.group.Pending() {
		work[key{root: w.Root, label: w.Label}] = w.String()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var far []string
	for _, j := range jobs {
		if j.ended() {
			continue
		}
		how := work[key{root: j.path, label: j.label}]
		if how == "" {
			how = fmt.Sprintf("%s for %v", j.step, time.Since(j.since).Round(time.Second))
		}
		far = append(far, j.name+": "+how)
	}
	return fmt.Errorf("labelling goes on, and the pod starts when it is done: %s", strings.Join(far, "; "))
}

// each does what now and then until ctx ends.
func each(ctx context.Context, what func()) {
	tick := time.NewTicker(watchEach)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			what()
		case <-ctx.Done():
			return
		}
	}
}

// release stops the jobs of pods that are being deleted, so that the kubelet can unmount
// their volumes.
func (l *labeller) release() {
	all, err := l.mounts()
	if err != nil {
		l.log.Warn("no table of mounts", "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		if !j.ended() && j.leaves(all) {
			j.unasked.Stop()
			j.stop(errGone)
		}
	}
}

// abandon stops and joins the jobs that a pod began for these volumes, since it is to have
// another label by now. The caller leaves them.
func (l *labeller) abandon(all []volume) (jobs []*job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		if !j.ended() && slices.ContainsFunc(all, func(v volume) bool { return v.path == j.path }) {
			j.waiting++
			j.unasked.Stop()
			j.stop(relabel.ErrStopped)
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// yield takes the place from jobs that wait: for a filesystem that does not answer, or
// for the volume's lock. They keep no other waiting, and continue without one.
func (l *labeller) yield() {
	moves := make(map[string]bool)
	for _, w := range l.group.Pending() {
		moves[w.Root] = moves[w.Root] || w.Waits == ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		if j.free != nil && time.Since(j.walks) >= watchEach && !moves[j.path] {
			j.free()
		}
	}
}

// states counts the jobs that walk and those that do not yet.
func (l *labeller) states() (walk, queued int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		switch {
		case j.ended():
		case j.free != nil:
			walk++
		default:
			queued++
		}
	}
	return walk, queued
}

// shutdown ends all jobs; the roots keep their seals. It is an error if ctx ends first.
func (l *labeller) shutdown(ctx context.Context) error {
	l.mu.Lock()
	l.shut = true
	for _, j := range l.jobs {
		j.unasked.Stop()
		j.stop(relabel.ErrStopped)
	}
	l.mu.Unlock()
	if err := l.group.Shutdown(ctx); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { l.all.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.New("a volume does not answer")
	}
}
