// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// The expressions of all rules are one program of a nondeterministic automaton. What
// runs is its deterministic form, which is made as far as paths need it: a state is
// the set of places in the program at which the rules may be after some bytes.
//
// Many goroutines run it at once. A state does not change but for its edges, each of
// which is set once, to a state that is complete; they are read without the lock.
// States are made under it, by the goroutine that needs one first.

// step is an instruction of the program.
type step struct {
	op    stepOp
	all   bool   // of stepByte: here the rule matches whatever is left, and its kind is any
	class uint16 // of stepByte
	rule  int32
	to    uint32
	or    uint32 // of stepFork
}

type stepOp uint8

const (
	stepByte stepOp = iota // a byte of the class leads to to
	stepFork
	stepMatch
)

// edge says what distinguishes a class: whether it holds the bytes that no pattern
// names (0x80 and up), and which it treats in another way.
type edge struct {
	others  bool
	special [2]uint64
}

type automaton struct {
	owner   *Set
	steps   []step
	classes []class
	edges   []edge           // of classes
	numbers map[class]uint16 // of classes
	bytes   [256]uint16      // of those that are a byte, plus one

	mu     sync.Mutex
	states map[string]*state // that are kept, by their sets
	kept   int               // words in states
	most   int               // of them
	none   *state            // nothing matches any more
	// What close and build work with.
	seen   []uint32 // by step: the round in which it was reached
	round  uint32
	stack  []uint32
	set    []uint32
	accept []int32
	key    []byte
}

// mostKept bounds what is kept of states, in words: 8 MiB. A Debian system of 900,000
// entries needs 2,100 states by its own policy, 2,000 by Fedora's, and a tenth of that.
// What goes beyond is made again whenever it is needed.
const mostKept = 1 << 20

// state is a set of steps, and where each byte leads from there.
type state struct {
	set    []uint32 // the steps of stepByte
	accept []int32  // the rules that match if the path ends here, the last first
	// special are the bytes that have an edge of their own; all others share one.
	special [2]uint64
	own     []atomic.Pointer[state]
	others  atomic.Pointer[state]
	plain   Dir // for a directory in which this is all that counts
}

func (a *automaton) init(owner *Set) {
	a.owner = owner
	a.most = mostKept
	a.numbers = map[class]uint16{}
	a.states = map[string]*state{}
	a.none = a.build(nil, nil)
}

// compile appends e to the program, as the whole of a path, and returns where it
// begins. any says that the rule is about all kinds of files.
func (a *automaton) compile(e *expr, rule int32, any bool) uint32 {
	end := a.emit(step{op: stepMatch, rule: rule})
	if e.op == opAlternate {
		// Within ^a|b|c$, ^ belongs to the first and $ to the last.
		rest := &expr{op: opRepeat, max: -1, subs: []*expr{{op: opClass, class: anyByte}}}
		branches := &expr{op: opAlternate}
		for i, sub := range e.subs {
			branch := &expr{op: opConcat}
			if i > 0 {
				branch.hold(rest)
			}
			branch.hold(sub)
			if i < len(e.subs)-1 {
				branch.hold(rest)
			}
			branches.hold(branch)
		}
		e = branches
	}
	start := a.expr(e, end, rule)
	// .* at the very end: a step that any byte repeats, and that may be left.
	for i := end + 1; any && i < uint32(len(a.steps)); i++ {
		if s := a.steps[i]; s.op == stepByte && a.classes[s.class] == anyByte {
			if fork := a.steps[s.to]; fork.op == stepFork && fork.to == i && fork.or == end {
				a.steps[i].all = true
			}
		}
	}
	return start
}

func (a *automaton) emit(s step) uint32 {
	a.steps = append(a.steps, s)
	return uint32(len(a.steps) - 1)
}

// expr appends e, which next follows, and returns where it begins.
func (a *automaton) expr(e *expr, next uint32, rule int32) uint32 {
	switch e.op {
	case opClass:
		return a.emit(step{op: stepByte, class: a.class(e.class), rule: rule, to: next})
	case opLiteral:
		for i := len(e.text) - 1; i >= 0; i-- {
			next = a.emit(step{op: stepByte, class: a.byte(e.text[i]), rule: rule, to: next})
		}
		return next
	case opConcat:
		for _, sub := range slices.Backward(e.subs) {
			next = a.expr(sub, next, rule)
		}
		return next
	case opAlternate:
		start := a.expr(e.subs[0], next, rule)
		for _, sub := range e.subs[1:] {
			start = a.emit(step{op: stepFork, rule: rule, to: start, or: a.expr(sub, next, rule)})
		}
		return start
	}
	body := e.subs[0]
	if e.max < 0 {
		loop := a.emit(step{op: stepFork, rule: rule, or: next})
		a.steps[loop].to = a.expr(body, loop, rule)
		next = loop
	} else {
		leave := next
		for range e.max - e.min {
			next = a.emit(step{op: stepFork, rule: rule, to: a.expr(body, next, rule), or: leave})
		}
	}
	for range e.min {
		next = a.expr(body, next, rule)
	}
	return next
}

// byte returns the number of the class of b alone.
func (a *automaton) byte(b byte) uint16 {
	if a.bytes[b] == 0 {
		var c class
		c.add(b)
		a.bytes[b] = a.class(c) + 1
	}
	return a.bytes[b] - 1
}

// class returns the number of c.
func (a *automaton) class(c class) uint16 {
	number, ok := a.numbers[c]
	if !ok {
		number = uint16(len(a.classes))
		a.numbers[c] = number
		a.classes = append(a.classes, c)
		e := edge{others: c.has(0x80), special: [2]uint64{c[0], c[1]}}
		if e.others {
			e.special = [2]uint64{^c[0], ^c[1]}
		}
		a.edges = append(a.edges, e)
	}
	return number
}

// close puts the steps and the rules that these steps stand for in a.set and
// a.accept. The lock is held, but while the set is loaded.
func (a *automaton) close(at []uint32) {
	if len(a.seen) < len(a.steps) {
		a.seen = make([]uint32, len(a.steps))
		a.round = 0
	}
	a.round++
	a.set, a.accept = a.set[:0], a.accept[:0]
	a.stack = append(a.stack[:0], at...)
	for len(a.stack) > 0 {
		i := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.seen[i] == a.round {
			continue
		}
		a.seen[i] = a.round
		switch step := a.steps[i]; step.op {
		case stepFork:
			a.stack = append(a.stack, step.to, step.or)
		case stepMatch:
			a.accept = append(a.accept, step.rule)
		case stepByte:
			a.set = append(a.set, i)
		}
	}
}

// after returns to which steps b leads from those.
func (a *automaton) after(set []uint32, b byte) (at []uint32) {
	for _, i := range set {
		if step := &a.steps[i]; a.classes[step.class].has(b) {
			at = append(at, step.to)
		}
	}
	return at
}

// enter returns the state in a directory that s leads to, where these expressions
// join, which begin with its path.
func (a *automaton) enter(s *state, starts []uint32, path string) *state {
	if len(starts) == 0 {
		return s
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := starts
	for i := range len(path) {
		a.close(at)
		at = a.after(a.set, path[i])
	}
	return a.build(append(at, s.set...), s.accept)
}

// build returns the state at these steps, where these rules match besides. The lock
// is held, but while the set is loaded.
func (a *automaton) build(at []uint32, accept []int32) *state {
	a.close(at)
	a.accept = append(a.accept, accept...)
	// What came before a rule that matches whatever follows has no say any more.
	all := int32(-1)
	for _, i := range a.set {
		if a.steps[i].all {
			all = max(all, a.steps[i].rule)
		}
	}
	a.accept = slices.DeleteFunc(a.accept, func(rule int32) bool { return rule < all })
	a.set = slices.DeleteFunc(a.set, func(i uint32) bool { return a.steps[i].rule < all })
	slices.Sort(a.set)
	slices.SortFunc(a.accept, func(x, y int32) int { return int(y - x) })
	a.accept = slices.Compact(a.accept)

	a.key = a.key[:0]
	for _, i := range a.set {
		a.key = binary.NativeEndian.AppendUint32(a.key, i)
	}
	for _, rule := range a.accept {
		a.key = binary.NativeEndian.AppendUint32(a.key, ^uint32(rule))
	}
	if old := a.states[string(a.key)]; old != nil {
		return old
	}
	s := &state{set: slices.Clone(a.set), accept: slices.Clone(a.accept)}
	for _, i := range s.set {
		special := a.edges[a.steps[i].class].special
		s.special[0] |= special[0]
		s.special[1] |= special[1]
	}
	s.own = make([]atomic.Pointer[state], bits.OnesCount64(s.special[0])+bits.OnesCount64(s.special[1]))
	s.plain = Dir{set: a.owner, at: s}
	if words := 40 + 2*len(s.set) + len(s.accept) + len(s.own); a.kept+words <= a.most {
		a.kept += words
		a.states[string(a.key)] = s
	}
	return s
}

// edge returns where s keeps what b leads to.
func (s *state) edge(b byte) *atomic.Pointer[state] {
	if b >= 0x80 || s.special[b>>6]>>(b&63)&1 == 0 {
		return &s.others
	}
	below := bits.OnesCount64(s.special[b>>6] & (1<<(b&63) - 1))
	if b >= 64 {
		below += bits.OnesCount64(s.special[0])
	}
	return &s.own[below]
}

// next returns the state after b.
func (a *automaton) next(s *state, b byte) *state {
	edge := s.edge(b)
	if to := edge.Load(); to != nil {
		return to
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	to := a.build(a.after(s.set, b), nil)
	if a.states[string(a.key)] == to { // it is kept
		edge.Store(to)
	}
	return to
}

// flat reports that no name leads away from s.
func (s *state) flat() bool {
	return s.special[0]&^(1<<'/') == 0 && s.special[1] == 0 && s.others.Load() == s
}

// run returns the state after name, which has no slash.
func (a *automaton) run(s *state, name []byte) *state {
	for _, b := range name {
		if s.flat() {
			break
		}
		s = a.next(s, b)
	}
	return s
}

// beneath returns the state in the directory name.
func (a *automaton) beneath(s *state, name []byte) *state { return a.next(a.run(s, name), '/') }
