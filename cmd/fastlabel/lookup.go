// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/child"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel"
)

// mistake is an operand that was probably not meant; nothing was written. hint, if not
// "", is printed last, to be pasted.
type mistake struct {
	what, hint string
	refused    bool // it is never labelled
}

func (m mistake) Is(target error) bool { return m.refused && target == relabel.ErrRefused }

func (m mistake) Error() string {
	text := m.what + "; nothing was begun"
	if m.hint != "" {
		text += "; " + m.hint
	}
	return text
}

// notBegun returns the message for a command line by which nothing was begun.
func notBegun(err error) string {
	if errors.As(err, new(mistake)) {
		return words.Clean(err.Error())
	}
	return report.FaultOf("", err).String() + "; nothing was begun"
}

// mistaken tells that an operand was hardly meant as a PATH. What stands behind --
// is one whatever it looks like.
func (s *settings) mistaken(operands []string, isThere func(string) bool) error {
	for i, o := range operands[:len(operands)-s.literal] {
		if strings.Contains(o, "/") {
			continue
		}
		if _, err := secctx.Compose(defaultLabel, "", "", "", o); err == nil && !isThere(o) {
			return mistake{what: words.Brief(o) + ": it is a level and no PATH", hint: "to give it: -l " + words.Brief(o)}
		}
		if isContext(o) {
			return mistake{what: words.Brief(o) + ": it is a label and no PATH", hint: "to give it: --label " + words.Brief(o)}
		}
		if near := nearest(o, s.callable); i == 0 && s.command == "" && !s.named && near != "" && isThere(o) {
			return mistake{what: words.Brief(o) + ": it may be the command " + near + " mistyped", hint: "if it is a PATH write " + words.Brief("./"+o)}
		}
	}
	return nil
}

// isContext reports whether an operand looks like a security context. A name in which three or
// four fields have colons between them is rare, and ./ in front makes it a PATH.
func isContext(word string) bool {
	fields := strings.Split(word, ":")
	return len(fields) >= 3 && len(fields) <= 5 && !slices.Contains(fields[:3], "")
}

// lookUp looks at each PATH before any of them is touched: one that is missing
// is most often a typing error, and one that is refused another one.
func (j *job) lookUp(ctx context.Context, operands, paths []string) error {
	if j.lstat == nil {
		return nil
	}
	isThere := func(p string) bool { _, err := j.lstat(p); return err == nil }
	if err := j.mistaken(operands, isThere); err != nil {
		return err
	}
	places := j.mounts.Places()
	all := slices.Concat(paths, j.exclude)
	local, remote := j.mounts.Part(all)
	here, err := j.lookAt(ctx, local, places, child.Is())
	if err != nil {
		return err
	}
	there, err := j.lookAt(ctx, remote, places, true)
	if err != nil {
		return err
	}
	j.looked = map[string]looked{}
	maps.Copy(j.looked, here)
	maps.Copy(j.looked, there)
	var missing []string
	for _, p := range all {
		if isMissing(j.looked[p].err) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		first, why := missing[0], j.looked[missing[0]].err
		which := words.Brief(first)
		if len(missing) > 1 {
			which += " and " + words.Thousands(int64(len(missing)-1)) + " more"
		}
		m := mistake{what: which + ": " + cmp.Or(errors.Unwrap(why), why).Error()}
		if near := nearest(first, j.callable); near != "" && slices.Contains(operands, first) {
			m.hint = "did you mean fastlabel " + near + "?"
		}
		return m
	}
	for _, p := range paths {
		if m := j.looked[p].mistake; m != nil {
			return *m
		}
	}
	return j.astray(ctx, paths)
}

// astray is an error for an exclusion that lies in none of paths: it would leave
// nothing alone, and what was meant would be labelled. To restorecon it is none.
func (j *job) astray(ctx context.Context, paths []string) error {
	if j.command == "restorecon" {
		return nil
	}
	var patience time.Duration
	if child.Is() { // only there a look may hang
		patience = wait.Patience
	}
	for _, dir := range j.exclude {
		astray, _, answered := wait.Looks(ctx, patience, func(at *atomic.Int64) bool {
			return !slices.ContainsFunc(paths, func(path string) bool {
				at.Add(1)
				return site.LiesIn(dir, path)
			})
		})
		if astray && answered {
			return mistake{what: "--exclude " + words.Brief(dir) + ": it lies in no PATH"}
		}
	}
	return nil
}

// looked holds what is unusual at a PATH, or an exclusion.
type looked struct {
	err      error
	mistake  *mistake // it is refused, or there is a question about it
	isLink   bool     // a symbolic link that leads to something
	toDir    bool     // to a directory
	readOnly bool     // nothing can be written there
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// look looks at one PATH, or exclusion.
func (j *job) look(path string, places site.Places) (l looked) {
	info, err := j.lstat(path)
	if err != nil || info == nil { // the run tells of most errors
		return looked{err: err}
	}
	if j.command != "restorecon" && !slices.Contains(j.exclude, path) {
		l.mistake = j.objection(path, info, places)
	}
	l.readOnly = j.readOnly != nil && j.readOnly(path)
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := j.lstat(path + "/")
		l.toDir = err == nil && to.IsDir()
		l.isLink = l.toDir || errors.Is(err, syscall.ENOTDIR)
	}
	return l
}

// objection returns a reason not to label path, or a question about it; nil for none.
func (j *job) objection(path string, info fs.FileInfo, places site.Places) *mistake {
	if why, instead := places.Why(path, info); why != "" {
		return &mistake{words.Brief(path) + ": refused: " + why, instead, true}
	}
	if !j.asks() {
		return nil
	}
	is, _ := j.inspect(path, defaultLabel, relabel.SkipRoot) // the run says what is wrong
	has, _ := secctx.Canonical(is.Label)
	if parts := strings.SplitN(has, ":", 4); len(parts) == 4 && parts[3] != "s0" {
		return &mistake{what: words.Brief(path) + ": it has a level of its own", hint: "-l " + parts[3] + " compares with that, -l s0 with what all containers share"}
	}
	return nil
}

// asks reports whether the answer depends on a level that was not given.
func (j *job) asks() bool {
	for _, flag := range []string{"label", "type", "level", "reference"} {
		if j.given.Changed(flag) {
			return false
		}
	}
	return (j.dryRun || j.command != "") && (j.only == 0 || j.only&relabel.PartLevel != 0)
}

// lookPatience bounds one look at a served filesystem: the run waits longer, and says what hangs.
const lookPatience = 200 * time.Millisecond

// lookAt looks at PATHs. Of a served filesystem that does not answer nothing is found: the run
// says what it waits for.
func (j *job) lookAt(ctx context.Context, paths []string, places site.Places, served bool) (map[string]looked, error) {
	late, cancel := wait.Linger(ctx, wait.Grace) // a look may be about to return
	defer cancel()
	var patience time.Duration // none: one that does not return is waited for
	if served {
		late, patience = context.WithoutCancel(ctx), lookPatience
	}
	found, n, ok := wait.Looks(late, patience, func(at *atomic.Int64) map[string]looked {
		all := map[string]looked{}
		for _, p := range paths {
			if ctx.Err() != nil {
				break
			}
			at.Add(1)
			if l := j.look(p, places); l != (looked{}) {
				all[p] = l
			}
		}
		return all
	})
	switch {
	case served:
		return found, nil
	case !ok:
		return found, hungAt("lstat", paths[max(n, 1)-1], context.Cause(ctx))
	}
	return found, context.Cause(ctx)
}
