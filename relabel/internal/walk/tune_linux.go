// SPDX-License-Identifier: Apache-2.0

package walk

// tuned is a walk to package tune.
type tuned struct{ *Walk }

func (k tuned) Entries() (n int64) {
	for w := range k.all {
		n += w.passed.Load()
	}
	return n
}

func (k tuned) Steady() bool {
	for w := range k.all {
		if w.watched.HeldUp.Load() {
			return false
		}
	}
	return k.handle() != nil
}

func (k tuned) Relieve() bool      { return k.relieve(k.handle()) }
func (k tuned) Shed(n int)         { k.handle().Shed(n) }
func (k tuned) ReadCold(cold bool) { k.ahead.SetCold(cold) }
