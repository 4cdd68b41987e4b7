// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// usrLabel and etcLabel are oldLabel with other types, which rules have.
const (
	usrLabel = "system_u:object_r:usr_t:s0:c1,c2"
	etcLabel = "system_u:object_r:etc_t:s0:c1,c2"
)

// ruled is a tree for which rules have two labels, the same for names of one file.
func ruled(t *testing.T, fs, text string, flags ...string) subject {
	t.Helper()
	s := plant(t, fs, text)
	contexts := filepath.Join(t.TempDir(), "file_contexts")
	rules := s.root + "(/.*)? " + usrLabel + "\n" + s.root + "/.*1 " + etcLabel + "\n"
	treetest.Must(t, os.WriteFile(contexts, []byte(rules), 0o600))
	s.args = append([]string{"restorecon", "-R", "--contexts", contexts}, flags...)
	s.want = func(path string) string {
		if strings.HasSuffix(path, "1") {
			return etcLabel
		}
		return usrLabel
	}
	s.byRules = true
	return s
}

// TestRulesKill is TestKill by rules: whatever call the run is killed before, each entry
// has its former label or that of its rule, the root is trusted for neither, and the next
// run completes.
func TestRulesKill(t *testing.T) {
	t.Parallel()
	s := ruled(t, "ext4", patient[0].text, "-F")
	for _, threads := range []int{1, 4} {
		where := fmt.Sprintf("%s, ext4, -T %d", patient[0].name, threads)
		s.resumes(t, threads, row{check: "R1 kill -9 before call N, by rules", where: where})
	}
}

// resumes runs one cell. Its control is what was left before the next run.
func (s subject) resumes(t *testing.T, threads int, r row) {
	t.Helper()
	r.control = "no next run"
	s.fresh(t)
	calls := s.killed(t, s.quiet(t, threads), 0).Calls
	points := pick(12, 400, 2000)
	for i := range points {
		n := 1 + i*calls/points
		r.runs++
		s.fresh(t)
		s.killed(t, s.quiet(t, threads), n)
		between := 0
		for _, p := range s.paths {
			if has := read(t, p); has != oldLabel && has != s.want(p) {
				between++
			}
		}
		r.controlRuns++
		if s.wrong(t) > 0 {
			r.controlBad++
		}
		trusted := i%4 == 0 && !s.probed(t)
		out, err := s.quiet(t, threads).CombinedOutput()
		if err != nil || s.wrong(t) > 0 || between > 0 || trusted {
			r.bad++
			t.Errorf("killed before call %d: %d entries have neither label, the root is trusted: %t; after the next run %v: %v\n%s", n, between, trusted, s.bearing(t), err, out)
		}
	}
	r.note = fmt.Sprintf("%d calls a run", calls)
	r.add(t)
}

// TestRulesErrnos is TestErrnos by rules that change the type alone.
func TestRulesErrnos(t *testing.T) {
	treetest.Need(t, "root", "seccomp", "tmpfs")
	for i, w := range ways {
		if pick(i != 0 && i != 3, false, false) { // those of a clone, and without one
			continue
		}
		t.Run(strings.ReplaceAll(w.name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			s := ruled(t, "tmpfs", sick)
			r := row{check: "R3 errno x call x Nth, by rules", where: w.name}
			for nth := 1; nth <= 3; nth++ { // of the root, which has its labels nowhere else
				r.runs++
				if what := s.stands(t, fault{w, unix.SYS_GETXATTR, unix.ENOTSUP, nth, false}); what != "" {
					r.bad++
					t.Errorf("getxattr %d: %s", nth, what)
				}
			}
			r.note = s.fails(t, w, pick(149, 1, 1), &r) + "; the control is that of labels"
			r.add(t)
		})
	}
}
