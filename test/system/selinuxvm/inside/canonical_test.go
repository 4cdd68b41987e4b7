// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/internal/secctx"
)

// ask has the kernel check a context, and gives what it makes of it.
func ask(t *testing.T, context string) (string, error) { return asked(t, "context", context) }

// TestCanonical: of ten thousand contexts, good and spoiled ones, ours refuses
// none that the kernel takes, writes each as the kernel does, and takes none
// made of names that the policy knows which the kernel refuses. Names that it
// does not know are another matter: only the policy can tell.
//
// Three differences are meant, and asked for here by name: ours takes a context
// without a level, which is right where the policy has none, and a sensitivity
// above s0, which this policy does not have; and it refuses what stands behind
// a NUL, where the kernel stops to read.
func TestCanonical(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var taken, refused, level, sensitivity, names, nuls int
	for range 10000 {
		context, known := randomContext(random)
		kernel, kernelErr := ask(t, context)
		ours, oursErr := secctx.Canonical(context)
		switch nul := strings.IndexByte(context, 0); {
		case nul >= 0 && nul < len(context)-1:
			if oursErr == nil {
				t.Errorf("ours takes %q, which goes on behind a NUL", context)
			}
			nuls++
		case kernelErr == nil && oursErr != nil:
			t.Errorf("the kernel takes %q, ours says: %v", context, oursErr)
		case kernelErr == nil && kernel != ours:
			t.Errorf("%q is %q to the kernel and %q to ours", context, kernel, ours)
		case kernelErr == nil:
			taken++
		case oursErr != nil:
			refused++
		case strings.Count(context, ":") == 2:
			level++
		case strings.Contains(ours, ":s") && !onlyS0(ours):
			sensitivity++
		case !known:
			names++
		default:
			t.Errorf("ours takes %q as %q, the kernel says: %v", context, ours, kernelErr)
		}
	}
	t.Logf("%d taken by both, %d refused by both; refused by the kernel alone: %d without a level, %d for a sensitivity, %d for a name; %d with a NUL in them",
		taken, refused, level, sensitivity, names, nuls)
	if taken < 2000 || refused < 2000 {
		t.Error("too few of a kind to show anything")
	}
}

// onlyS0 tells a canonical context whose levels are all of s0.
func onlyS0(context string) bool {
	levels := strings.SplitN(context, ":", 4)[3]
	for l := range strings.SplitSeq(levels, "-") {
		if sens, _, _ := strings.Cut(l, ":"); sens != "s0" {
			return false
		}
	}
	return true
}

// randomContext gives a context, and whether its user, role and type are
// whole words of the policy.
func randomContext(r *rand.Rand) (context string, known bool) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	user := pick("system_u", "unconfined_u", "root", "staff_u")
	typ := pick("container_file_t", "user_home_t", "var_t", "unlabeled_t")
	context = user + ":object_r:" + typ
	switch r.IntN(20) {
	case 0: // without a level
	case 1:
		context += ":" + randomLevel(r)
		return spoil(r, context), false
	case 2, 3, 4, 5:
		context += ":" + spoil(r, randomLevel(r))
		return context, true
	case 6, 7, 8, 9:
		context += ":" + randomLevel(r) + "-" + randomLevel(r)
	default:
		context += ":" + randomLevel(r)
	}
	return context, true
}

// randomLevel gives a level that is right as a rule, seldom in canonical form.
func randomLevel(r *rand.Rand) string {
	level := "s0"
	if r.IntN(30) == 0 {
		level = fmt.Sprintf("s%d", r.IntN(18))
	}
	if r.IntN(5) == 0 {
		return level
	}
	limit := 1 << (2 + r.IntN(9)) // few, so that they touch; or all
	var items []string
	for range 1 + r.IntN(5) {
		item := fmt.Sprintf("c%d", r.IntN(limit))
		if r.IntN(3) == 0 {
			item += fmt.Sprintf(".c%d", r.IntN(limit))
		}
		items = append(items, item)
	}
	return level + ":" + strings.Join(items, ",")
}

// spoil changes a byte or two.
func spoil(r *rand.Rand, s string) string {
	const bytes = "sc0123456789:,.- \t\n\x00_xS\x7f\xc3"
	b := []byte(s)
	for range 1 + r.IntN(2) {
		i := r.IntN(len(b) + 1)
		c := bytes[r.IntN(len(bytes))]
		switch {
		case r.IntN(3) == 0 || i == len(b):
			b = append(b[:i], append([]byte{c}, b[i:]...)...)
		case r.IntN(2) == 0:
			b[i] = c
		default:
			b = append(b[:i], b[i+1:]...)
		}
		if len(b) == 0 {
			return "s"
		}
	}
	return string(b)
}
