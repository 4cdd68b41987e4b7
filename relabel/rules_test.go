// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/internal/walk"
)

// retyping answers Retype from a table by the type that a label has: what it gets, "" for
// one that stays, and "custom" for one that may be meant.
type retyping map[string]string

func (retyping) Label(string, uint8) (string, error) { return "", errors.ErrUnsupported }

func (r retyping) Retype(has, _ string) (string, bool, error) {
	to, known := r[fieldsOf(has)[2]]
	switch {
	case !known:
		return "", false, errors.ErrUnsupported
	case to == "custom":
		return "", true, nil
	}
	return to, false, nil
}

// TestOver: what is written over each label, by the parts that are asked for and by
// contexts; and what is skipped, right or a failure in its place.
func TestOver(t *testing.T) {
	const want = "unconfined_u:role_r:usr_t:s0:c7"
	contexts := retyping{"etc_t": want, "usr_t": "", "kept_t": "custom"}
	for _, c := range []struct {
		rules   Rules
		has, to string
		outcome walk.Outcome
	}{
		{Rules{Parts: PartUser}, "system_u:object_r:etc_t:s0:c1,c2", "unconfined_u:object_r:etc_t:s0:c1,c2", walk.Written},
		{Rules{Parts: PartRole}, "system_u:object_r:etc_t:s0:c1,c2", "system_u:role_r:etc_t:s0:c1,c2", walk.Written},
		{Rules{Parts: PartType}, "system_u:object_r:etc_t:s0:c1,c2", "system_u:object_r:usr_t:s0:c1,c2", walk.Written},
		{Rules{Label: want, Parts: PartLevel}, "system_u:object_r:etc_t:s0:c1,c2", "system_u:object_r:etc_t:s0:c7", walk.Written},
		{Rules{Label: want, Parts: PartUser | PartLevel}, "system_u:object_r:etc_t:s0", "unconfined_u:object_r:etc_t:s0:c7", walk.Written},
		{Rules{Parts: PartType}, "system_u:object_r:usr_t:s0:c1,c2", "", walk.Right},
		{Rules{Parts: PartType}, "", "", walk.Failed},
		{Rules{Contexts: contexts, Parts: PartType}, "system_u:object_r:etc_t:s0", want, walk.Written},
		{Rules{Contexts: contexts, Parts: PartType}, "system_u:object_r:usr_t:s0", "", walk.Right},
		{Rules{Contexts: contexts, Parts: PartType}, "system_u:object_r:kept_t:s0", "the type kept_t is customizable, and may be meant", walk.Skipped},
		{Rules{Contexts: contexts, Parts: PartType}, "system_u:object_r:other_t:s0", "", walk.Failed},
	} {
		change, err := c.rules.rewrite()
		if err != nil {
			t.Fatal(err)
		}
		to, outcome, err := change(c.has, want)
		if to != c.to || outcome != c.outcome || (err != nil) != (outcome == walk.Failed) {
			t.Errorf("%+v over %q: %q, %v, %v", c.rules, c.has, to, outcome, err)
		}
	}
	if change, err := (Rules{Contexts: contexts}).rewrite(); change != nil || err != nil {
		t.Errorf("a whole label is not just written: %v", err)
	}
	if _, err := (Rules{Label: "u:object_r:t", Parts: PartType | PartLevel}).rewrite(); err == nil || !strings.Contains(err.Error(), "no level") {
		t.Error(err)
	}
	if _, err := (Rules{Contexts: contexts, Parts: PartType | PartLevel}).rewrite(); err == nil || !strings.Contains(err.Error(), "its type alone") {
		t.Error(err)
	}
}
