// SPDX-License-Identifier: Apache-2.0

package commit

import "testing"

// TestProof: which mark may be left follows from what was proved, and from that
// alone.
func TestProof(t *testing.T) {
	now := Mark{Label: "a", Start: 5e9, Left: 6e9, Entries: 3, Written: 2}
	earlier := Mark{Label: "a", Start: 1e9, Left: 2e9, Entries: 400, Written: 300}
	changes := Mark{Label: "a", Start: 5e9, Left: 6e9, Entries: 400, Written: 300}
	for p, want := range map[proof]Mark{provedAll: now, provedChanges: changes, provedNothing: {}} {
		if k, ok := p.mark(now, earlier); ok != (p != provedNothing) || ok && k != want {
			t.Errorf("%d: %v, %t", p, k, ok)
		}
	}
	for name, c := range map[string]struct {
		run     Run
		sum     Sum
		partial bool
		earlier Mark
		want    proof
	}{
		"everything": {run: Run{Dated: true}, want: provedAll},
		"vanished":   {run: Run{Dated: true}, sum: Sum{Seen: 3, Written: 2}, want: provedAll},
		"changes":    {run: Run{Dated: true}, earlier: earlier, want: provedChanges},
		"skipped":    {run: Run{Dated: true}, sum: Sum{Skipped: 1}},
		"failed":     {run: Run{Dated: true}, sum: Sum{Failed: 1}, earlier: earlier},
		"partial":    {run: Run{Dated: true}, partial: true},
		"undated":    {},
		"no sync":    {run: Run{Dated: true, NoSync: true}, earlier: earlier},
		"dry run":    {run: Run{Dated: true, DryRun: true}},
	} {
		r := &Root{Run: c.run, earlier: c.earlier}
		r.Partial = func() bool { return c.partial }
		if got := r.proved(c.sum); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
