// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	old    = "system_u:object_r:default_t:s0"
	want   = "system_u:object_r:container_file_t:s0:c1,c2"
	other  = "system_u:object_r:container_file_t:s0:c8,c9"
	theirs = "system_u:object_r:usr_t:s0"
)

// model is a volume: its root is a directory of tmpfs, and beneath it are labels that are only
// noted. It is the Walk of one run at a time.
type model struct {
	t       *testing.T
	dir     string
	fd      int
	beneath []string
	changed []bool // of beneath, since the root was set up
	want    string
	noSeal  bool
	event   string // what happens in the middle of the walk
	stop    int    // the call at which the run is killed; 0: none
	calls   int
	killed  bool
	written int64
	failed  error
	labels  []string // that the root, or an interrupted run, had
	rival   bool     // another run's claim is there
	now     string   // what Labelled and Unlabelled said last
}

type kill struct{}

func (m *model) At(call string) {
	if call == "" {
		return
	}
	if m.calls++; m.calls == m.stop {
		m.killed = true
		panic(kill{})
	}
}

func (m *model) Note(string, ...any)       {}
func (m *model) Order() Order              { return Transactions } // its barriers fail on tmpfs, and syncfs comes in their place
func (m *model) Written() int64            { return m.written }
func (m *model) Failed() error             { return m.failed }
func (m *model) Refused(e sys.Errno) error { return e }
func (m *model) Labelled(_ *Root, w bool)  { m.now = "labelled" }
func (m *model) Unlabelled()               { m.now = "" }
func (m *model) Reread(context.Context) (int64, error) {
	before := m.written
	for i := range m.beneath {
		m.label(i)
	}
	return m.written - before, nil
}

func (m *model) label(i int) {
	if m.At("setxattr"); m.beneath[i] != m.want {
		m.beneath[i], m.changed[i] = m.want, true
		m.written++
	}
}

func (m *model) has() string {
	has, _, e := (&xattrio.IO{Attr: sys.NewAttr(xattrio.Attribute, "")}).Read(xattrio.Target{FD: m.fd})
	if e != 0 {
		m.t.Fatal(e)
	}
	return has.String()
}

func (m *model) trusted(label string) bool {
	trust, _, _, e := Look(sys.Opened, m.fd, true, label)
	if e != 0 {
		m.t.Fatal(e)
	}
	return trust == Trusted
}

func (m *model) set(attribute, value string) {
	_ = unix.Fremovexattr(m.fd, attribute)
	if value == "" {
		return
	}
	if err := unix.Fsetxattr(m.fd, attribute, []byte(value), 0); err != nil {
		m.t.Fatal(err)
	}
}

// run is one run.
func (m *model) run(to, event string, stop int) (err error) {
	m.want = to
	m.event, m.stop, m.calls, m.killed, m.written, m.failed, m.now = event, stop, 0, false, 0, nil, ""
	defer func() {
		if thrown := recover(); thrown != nil && thrown != any(kill{}) {
			panic(thrown)
		}
	}()
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	k, _, _ := readClaim(sys.Opened, m.fd)
	m.rival = k.want != "" && k.want != to
	if m.rival && event == "waits" {
		defer time.AfterFunc(Noticed/2, func() { m.set(xattrio.Attribute, theirs) }).Stop()
	}
	begin := time.Now()
	c := &Root{Run: m, FD: m.fd, Kind: sys.Tmpfs, Path: m.dir, Want: to, NoSeal: m.noSeal}
	if err := c.Begin(ctx); err != nil {
		return err
	}
	if waited := time.Since(begin) >= Noticed; waited != m.rival {
		m.t.Errorf("it waited for another run: %t", waited)
	}
	for i := range m.beneath {
		if i == 1 {
			err = m.happens(cancel)
		}
		if err != nil || m.failed != nil {
			break
		}
		if has := m.has(); has != "" && has != theirs && !c.Right() && slices.Contains(m.labels, has) {
			m.t.Errorf("the root has %q when an entry is written", has)
		}
		m.label(i)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	err = c.End(ctx, err)
	calls := m.calls
	if c.Revoke(); m.calls != calls {
		m.t.Error("the root is written after the end")
	}
	return err
}

// complete reports whether the run has done everything.
func (m *model) complete() bool {
	_, claimed, _ := readClaim(sys.Opened, m.fd)
	return m.trusted(want) && !claimed && m.all()
}

// all reports whether everything beneath the root has the label.
func (m *model) all() bool {
	return !slices.ContainsFunc(m.beneath, func(l string) bool { return l != want })
}

// check is the oracle. The root was trusted for the label was.
func (m *model) check(err error, was string) {
	has := m.has()
	sealed := has == "" || !slices.Contains(append(m.labels, theirs), has)
	for _, label := range append(secctx.Seals("", want), old, want, other, theirs) {
		healed := label == theirs && m.killed && was == want // no claim shows a healer to others
		for i, l := range m.beneath {
			if l != label && m.trusted(label) && (label != was || m.changed[i]) && !healed {
				m.t.Errorf("it is trusted for %q, and beneath it are %q", label, m.beneath)
			}
		}
	}
	stays := was == want && !m.killed && m.event != "fails" // a right root that nothing proves wrong
	if m.killed {
		done := has == want && (m.all() || m.event == "created") // that may be in the tick of the seal
		if !sealed && !done && was != want && has != theirs && slices.Contains(m.changed, true) {
			m.t.Errorf("who reads the label alone takes it for %q", has)
		}
		return
	}
	switch m.event {
	case "waits":
		if m.rival && (!errors.Is(err, ErrOvertaken) || m.written > 0 || has != theirs) {
			m.t.Errorf("%v, %d written, the root has %q", err, m.written, has)
		}
	case "", "created":
		if err != nil || !m.complete() || m.now != "labelled" {
			m.t.Errorf("%v, the root has %q, and beneath it are %q", err, has, m.beneath)
		}
	case "theirs", "rival":
		k, _, _ := readClaim(sys.Opened, m.fd)
		if !errors.Is(err, ErrOvertaken) || !sealed || m.now != "" || m.event == "rival" && (k.want == other) == (was == want) {
			m.t.Errorf("%v, the root has %q, and the claim %v", err, has, k)
		}
	default:
		if err == nil || sealed == stays || m.trusted(want) != stays || m.now != "" {
			m.t.Errorf("%v, the root has %q", err, has)
		}
	}
}

// happens is the event.
func (m *model) happens(cancel func()) error {
	switch m.event {
	case "fails":
		m.failed = unix.EIO
	case "cancel":
		cancel()
	case "hangs":
		return unix.ETIME
	case "theirs":
		m.set(xattrio.Attribute, theirs)
	case "rival":
		seal := secctx.Seals(m.has(), other)[0]
		found, _, _ := readClaim(sys.Opened, m.fd)
		m.set(ClaimName, claim{other, seal, found.former}.String())
		m.set(xattrio.Attribute, seal)
	case "created":
		m.beneath, m.changed = append(m.beneath, old), append(m.changed, false)
		if _, err := os.MkdirTemp(m.dir, ""); err != nil {
			m.t.Error(err)
		}
	}
	return nil
}

// TestModel: whatever a root had, whatever its claim says, whatever happens to a run and at
// whichever call it is killed, the root is trusted for no label that the tree has not, and the
// next run completes it.
func TestModel(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "plain")
	dir := treetest.Fresh(t, "tmpfs")
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenRead, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer sys.Close(fd)
	seals := secctx.Seals("", want)
	cases := 0
	for _, has := range []string{"", old, want, seals[0], seals[1], "no label"} {
		for _, text := range []string{
			"", claim{want, has, []string{old}}.String(), claim{want, seals[2], nil}.String(),
			claim{other, has, []string{seals[0]}}.String(), claim{}.String(), "version=1", strings.Repeat("x", 5000),
		} {
			k := parseClaim(text)
			for _, event := range []string{"", "fails", "cancel", "hangs", "theirs", "rival", "waits", "created"} {
				synctest.Test(t, func(t *testing.T) {
					for stop := 1; ; stop++ {
						m := &model{t: t, dir: dir, fd: fd, beneath: []string{has, has, has}, changed: make([]bool, 3), labels: append([]string{old, want, other}, k.former...)}
						m.set(xattrio.Attribute, has)
						m.set(ClaimName, text)
						was := has
						if text != "" {
							was = "none"
						}
						if k.seal != has || !slices.Contains(seals, has) {
							m.labels = append(m.labels, has)
						}
						if text != "" || has == want { // what an interrupted run has not reached, or a stray
							m.beneath[0], m.beneath[2] = old, old
						}
						cases++
						m.check(m.run(want, event, stop), was)
						killed, calls := m.killed, m.calls
						again := []string{other, want, other, old}
						if !killed { // then no label is remembered
							again = nil
						}
						for _, label := range again {
							if err := m.run(label, "hangs", 0); err == nil || has != "" && slices.Contains(m.labels, m.has()) || slices.ContainsFunc(m.labels, m.trusted) {
								t.Errorf("interrupted again on the way to %s: %v, the root has %q", label, err, m.has())
							}
						}
						if err := m.run(want, "", 0); err != nil || !m.complete() {
							t.Errorf("the next run: %v, the root has %q, and beneath it are %q", err, m.has(), m.beneath)
						}
						if t.Failed() {
							t.Logf("the root had %q, and the claim %.99q; %s, killed %t at call %d", has, text, event, killed, calls)
						}
						if t.Failed() || !killed {
							return
						}
					}
				})
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d cases", cases)
	// The control: without a seal an interrupted run leaves a root that is trusted.
	m := &model{t: t, dir: dir, fd: fd, beneath: []string{old, old}, changed: make([]bool, 2), noSeal: true}
	m.set(xattrio.Attribute, old)
	if err := m.run(want, "hangs", 0); err == nil || !m.trusted(old) || m.beneath[0] == old {
		t.Errorf("without a seal: %v, the root has %q, and beneath it are %q", err, m.has(), m.beneath)
	}
}
