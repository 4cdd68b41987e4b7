// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// attribute is where a security context is stored.
const attribute = "security.selinux"

// run is one call of Tree.
type run struct {
	o       Options
	want    string // the label in canonical form
	means   means
	proc    *proc
	locks   locks
	deny    map[identity]string // never relabelled
	exclude map[identity]string // not this time
	selinux bool                // the kernel goes by labels
	listed  map[uint64]bool     // the mounts that were there at the start
	commits bool                // the root is to be written
	guesses bool                // writing unread is permitted
	hung    atomic.Bool         // a worker did not come back
	cache   cache
	threads int
	stop    context.CancelCauseFunc
	main    *strand
	stalled bool // what attend said last

	// Shared by the workers.
	events sync.Mutex // serialises the callbacks, and guards first and dir.spoiled
	first  []error
	over   atomic.Bool // Tree has returned, beside a call that hangs

	// Shared by the strands, and by Tree when it leaves them behind.
	mu      sync.Mutex
	total   tally
	told    Report
	strands []*strand
}

// Tree gives root and everything beneath it the security context label. The
// Report says how far it came, also beside an error. The error is nil only if
// nothing failed: the Report is then Complete, or that of a dry run.
//
// Errors: ErrLabel, ErrRefused, errors.ErrUnsupported where the filesystem
// bears no labels, the context's cause, an *fs.PathError for one failure and
// an *Incomplete for several.
func Tree(ctx context.Context, root, label string, o Options) (Report, error) {
	return tree(ctx, root, label, o, probe)
}

// tree is the whole path, in the order of doc.go. ask tells what the kernel
// can do.
func tree(ctx context.Context, path, label string, o Options, ask func() means) (Report, error) {
	begin := time.Now()
	r := &run{o: o, told: Report{Root: path, Label: label}}
	r.main = r.strand()
	done := make(chan error, 1)
	go func() { done <- r.all(ctx, path, label, ask) }()
	err := r.attend(ctx, done)
	r.over.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	told.Notes = slices.Clone(told.Notes)
	r.total.fill(&told)
	told.Elapsed = time.Since(begin)
	return told, err
}

// tell changes the Report, count the counts.
func (r *run) tell(what func(told *Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(&r.told)
}

func (r *run) count(o outcome) { r.add(tally{}, o) }

func (r *run) add(t tally, outcomes ...outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.add(t)
	for _, o := range outcomes {
		r.total.count(o)
	}
}

// recount moves an entry that was counted.
func (r *run) recount(from, to outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.of[from]--
	r.total.of[to]++
}

// counted is how many entries had an outcome so far.
func (r *run) counted(o outcome) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total.of[o]
}

func (r *run) all(ctx context.Context, path, label string, ask func() means) error {
	var err error
	if r.want, err = Canonical(label); err != nil {
		return err
	}
	r.tell(func(told *Report) { told.Label = r.want })
	// Whatever is looked up by a path is looked up before the root is opened.
	if err := r.prepare(ask); err != nil {
		return err
	}
	defer r.end(r.proc.close)
	defer r.end(r.locks.close)

	root, err := r.openRoot(path)
	if err != nil {
		return err
	}
	defer r.end(root.close)

	if done, err := r.trusted(root); done || err != nil {
		return err
	}
	held, err := r.lockRoot(ctx, root)
	if err != nil {
		return err
	}
	defer r.end(held.release)
	return r.relabel(ctx, root)
}

// end closes what the run has opened, unless a worker hangs in the kernel. That
// worker may yet come back and use its descriptors, which must not be others'
// by then, and write, under a lock that goes with the process.
func (r *run) end(how func()) {
	if !r.hung.Load() {
		how()
	}
}

func (r *run) letGo(fd int) { r.end(func() { sys.Close(fd) }) }

// relabel is the part of the path that holds the lock.
func (r *run) relabel(ctx context.Context, root *root) error {
	// Whoever held the lock before may have done the work.
	if done, err := r.trusted(root); done || err != nil {
		return err
	}
	if root.st.Kind != sys.KindDir {
		return r.single(root)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	if op, e := r.enclose(&root.mount, root.fd); e != 0 {
		return r.fatal(pathError(op, root.path, e))
	}
	defer r.end(root.mount.close)
	r.tell(func(told *Report) { told.Way = root.confined.String() + "/" + r.way(&root.mount).String() })
	record, err := r.openRecord(root)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := record.seal(); err != nil {
		return err
	}
	// The root's own label comes last: until then it counts as left alone.
	r.count(skipped)
	err = r.walk(ctx, &root.mount, []item{{dir: root.top}})
	if err == nil {
		err = r.submounts(ctx, root)
	}
	if r.hung.Load() {
		return err
	}
	return record.close(ctx, err)
}

// prepare asks everything that is asked by path.
func (r *run) prepare(ask func() means) error {
	r.means = ask()
	r.deny = refusals()
	var err error
	if r.exclude, err = exclusions(r.o.Exclude); err != nil {
		return err
	}
	if r.proc, err = openProc(); err != nil {
		return err
	}
	r.selinux = selinuxOn(r.proc.mounts)
	r.listed = make(map[uint64]bool, len(r.proc.mounts))
	for _, m := range r.proc.mounts {
		r.listed[m.id] = true
	}
	if !r.o.DryRun {
		r.locks = openLocks()
	}
	r.size()
	return nil
}

func exclusions(paths []string) (map[identity]string, error) {
	out := make(map[identity]string, len(paths))
	for _, p := range paths {
		st, e := statPath(p)
		if e != 0 {
			return nil, pathError("statx", p, e)
		}
		out[identify(st)] = excluded
	}
	return out, nil
}

// root is what the caller named.
type root struct {
	mount
	fd int // O_PATH
}

// openRoot names the root by an O_PATH descriptor, whatever its kind, and
// refuses those that must not or cannot be relabelled.
func (r *run) openRoot(path string) (*root, error) {
	r.main.at("openat", path)
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenPath, 0)
	if e != 0 {
		return nil, pathError("openat", path, e)
	}
	r.main.at("statx", path)
	m, op, e := r.proc.locate(fd, path)
	r.main.at("", "")
	if e != 0 {
		sys.Close(fd)
		return nil, pathError(op, path, e)
	}
	m.strand = r.main
	root := &root{mount: *m, fd: fd}
	if what, is := r.deny[identify(m.st)]; is {
		root.close()
		return nil, &fs.PathError{Op: "relabel", Path: path, Err: fmt.Errorf("%w: it is %s, or holds it", ErrRefused, what)}
	}
	if info := r.proc.mount(m.id); info != nil {
		if why := info.unlabelable(r.selinux); why != "" {
			root.close()
			return nil, &fs.PathError{Op: "relabel", Path: path, Err: fmt.Errorf("%w: %s", errors.ErrUnsupported, why)}
		}
	}
	if root.real, e = r.proc.path(fd); e != 0 {
		root.close()
		return nil, pathError("readlinkat", path, e)
	}
	return root, nil
}

func (r *root) close() { sys.Close(r.fd) }

// lockRoot takes the volume's lock, if there is a place for locks.
func (r *run) lockRoot(ctx context.Context, root *root) (*lock, error) {
	if r.o.DryRun {
		return nil, nil
	}
	if r.locks.err != nil {
		r.note("no lock was taken: %v", r.locks.err)
		return nil, nil
	}
	return r.locks.take(ctx, identify(root.st), root.path, r.o.OnWait)
}

// single labels a root that is no directory: there is nothing beneath it, so
// its label vouches for nothing but itself, and is written at once.
func (r *run) single(root *root) error {
	r.expectCopies(&root.mount)
	defer root.mount.close()
	w := r.worker(&root.mount, nil)
	w.hand.way = byDescriptor
	r.tell(func(told *Report) { told.Way = "proc/fd" })
	o := w.alone(target{fd: root.fd, pinned: true}, &dir{mount: &root.mount})
	r.add(tally{up: w.tally.up}, o)
	if o == failure {
		return r.fatal(r.failures())
	}
	r.tell(func(told *Report) { told.Complete = o == right || o == written && !r.o.DryRun })
	return nil
}

// submounts walks what is mounted beneath the root, each mount on its own, one
// after the other; but none waits for one that hangs.
func (r *run) submounts(ctx context.Context, root *root) error {
	if r.o.OneFilesystem {
		return nil
	}
	var left []chan error
	var first error
	for _, info := range beneath(r.proc.mounts, root.real) {
		s, ended := r.strand(), make(chan error, 1)
		go func() {
			ended <- r.submount(ctx, root, info, s)
			s.at("", "")
		}()
		select {
		case err := <-ended:
			first = cmp.Or(first, err)
		case <-s.stalled:
			left = append(left, ended)
		}
		if first != nil {
			break
		}
	}
	for _, ended := range left {
		err := <-ended
		first = cmp.Or(first, err)
	}
	return first
}

func (r *run) submount(ctx context.Context, root *root, info mountEntry, s *strand) error {
	rest := strings.TrimPrefix(info.point[len(root.real):], "/")
	path := strings.TrimRight(root.path, "/") + "/" + rest
	s.at("openat", path)
	fd, passed, e := root.reach(root.fd, rest)
	if e == syscall.ENOENT {
		return nil // unmounted since, or hidden under another mount
	}
	if e != 0 {
		r.count(failure)
		r.report(path, "openat", e)
		return nil
	}
	defer r.letGo(fd)
	s.at("statx", path)
	m, op, e := r.proc.locate(fd, path)
	if e != 0 {
		r.count(failure)
		r.report(path, op, e)
		return nil
	}
	if m.id != info.id {
		return nil // hidden under another mount, or gone
	}
	m.real, m.strand = info.point, s
	why := info.unlabelable(r.selinux)
	if why == "" && info.readOnly {
		why = "mounted read-only"
	}
	for i, id := range passed {
		if r.exclude[id] != "" {
			if i < len(passed)-1 {
				return nil // beneath an exclusion, which is counted
			}
			why = excluded
		}
	}
	if what := r.deny[identify(m.st)]; what != "" {
		why = "it is " + what + ", which is never relabelled"
	}
	if why != "" {
		r.count(skipped)
		r.skip(path, why)
		return nil
	}
	return r.cross(ctx, m, fd)
}

// cross labels one mount beneath the root, its top first.
func (r *run) cross(ctx context.Context, m *mount, fd int) error {
	w := r.worker(m, nil)
	w.hand.way = byDescriptor
	top := target{fd: fd, pinned: true}
	m.strand.at("getxattr", m.path)
	if _, _, e := w.hand.get(top); e == syscall.ENOTSUP {
		r.count(skipped)
		r.skip(m.path, "the filesystem does not bear labels")
		return nil
	}
	if m.st.Kind != sys.KindDir {
		r.expectCopies(m)
		defer m.close()
		o := w.alone(top, &dir{mount: m})
		r.add(tally{up: w.tally.up}, o)
		return nil
	}
	if op, e := r.enclose(m, fd); e != 0 {
		r.count(failure)
		r.report(m.path, op, e)
		return nil
	}
	defer r.end(m.close)
	m.top.outcome = w.alone(top, m.top)
	r.count(m.top.outcome)
	if err := r.walk(ctx, m, []item{{dir: m.top}}); err != nil {
		return err
	}
	if !r.o.DryRun && !r.o.NoSync && r.unsynced() {
		m.strand.at("syncfs", m.path)
		if e := sys.Syncfs(int(m.top.fd)); e != 0 {
			r.count(failure)
			r.report(m.path, "syncfs", e)
		}
	}
	return nil
}

func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.tell(func(told *Report) { told.Notes = append(told.Notes, text) })
	r.events.Lock()
	defer r.events.Unlock()
	if r.o.OnNote != nil && !r.over.Load() {
		r.o.OnNote(text)
	}
}

// failures is the error for what was reported so far.
func (r *run) failures() error {
	n := r.counted(failure)
	if len(r.first) == 1 && n <= 1 {
		return r.first[0]
	}
	return &Incomplete{Failed: n, First: r.first}
}

// fatal words an error of the root itself.
func (r *run) fatal(err error) error {
	if errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("%w: the filesystem does not bear labels", err)
	}
	return err
}
