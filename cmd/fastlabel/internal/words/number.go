// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"strconv"
	"time"
)

// Count words a number of things.
func Count(n int64, one, many string) string {
	if n == 1 {
		many = one
	}
	return Thousands(n) + " " + many
}

// Thousands words n with a comma at each thousand.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Seconds words a span of time: 0.042 s, 61.2 s.
func Seconds(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}

// Clock words a span of time in whole seconds: 0:42, 1:01:01.
func Clock(d time.Duration) string {
	s := int64(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
