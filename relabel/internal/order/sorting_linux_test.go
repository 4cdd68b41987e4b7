// SPDX-License-Identifier: Apache-2.0

package order

import "testing"

// TestRoom: a directory that does not fit gets what there is to spare, but no more than
// it needs nor than the bound; and what was lent before is lent again where it is enough.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		size, spare int64
		want        int
	}{
		{100, 1 << 40, 1000},
		{1000, 1 << 40, 1000},
		{5000, 1 << 40, 5000},
		{5000, 3000, 3000},
		{5000, 10, 1000},
		{5000, 0, 1000},
		{1 << 40, 1 << 40, mostBudget},
	} {
		s := Sorting{Budget: 1000, Memory: func() int64 { return c.spare }}
		if got := s.Room(c.size); got.Budget != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
		if s.Memory = nil; s.Room(c.size).Budget != 1000 {
			t.Errorf("%+v: %+v without more", c, s.Room(c.size))
		}
	}

	var m Memory[string]
	var plans []*Plan
	for _, budget := range []int{1000, 5000, 1000, 6000} {
		m.Queue("d", 0, Room{Budget: budget})
		g := m.Next()
		if g == nil || g.budget < budget || m.Next() != nil {
			t.Fatalf("for %d: %+v", budget, g)
		}
		plans = append(plans, g.Plan)
		m.Free(g)
	}
	if plans[0] == plans[1] || plans[1] != plans[2] || plans[2] == plans[3] {
		t.Errorf("%p", plans)
	}
}
