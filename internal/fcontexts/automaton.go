// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"encoding/binary"
	"math/bits"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
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

type automaton struct {
	owner   *Set
	steps   []step
	classes []class
	numbers map[class]uint16 // of classes

	mu     sync.Mutex
	states map[string]*state // that are kept, by their sets
	kept   int               // words in states
	most   int               // of them
	none   *state            // nothing matches any more
	// hardNone: an expression that only regexp2 can match has <<none>>.
	hardNone bool
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

// mostSteps limits the length of an expression with all that {n,m} repeats.
const mostSteps = 10_000

// compile appends the expression text to the program, as the whole of a path, and returns
// where it begins; false if it is too long, or none of package regexp/syntax. any says that
// the rule is about all kinds of files.
func (a *automaton) compile(text string, rule int32, any bool) (start uint32, ok bool) {
	re, err := syntax.Parse(text, syntax.ClassNL|syntax.OneLine|syntax.PerlX|syntax.DotNL)
	if err != nil {
		return 0, false
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > mostSteps {
		return 0, false
	}
	// What begins or ends a group, or does nothing, has no step.
	skip := func(i uint32) uint32 {
		for prog.Inst[i].Op == syntax.InstCapture || prog.Inst[i].Op == syntax.InstNop {
			i = prog.Inst[i].Out
		}
		return i
	}
	base := uint32(len(a.steps))
	ends := func(i uint32) bool { return prog.Inst[skip(i)].Op == syntax.InstMatch }
	for i, inst := range prog.Inst {
		s := step{rule: rule, to: base + skip(inst.Out)}
		switch inst.Op {
		case syntax.InstAlt:
			s.op, s.or = stepFork, base+skip(inst.Arg)
		case syntax.InstMatch:
			s.op = stepMatch
		default: // of what matches nothing the class is empty
			var c class
			if r := inst.Rune; inst.Op == syntax.InstRune1 && r[0] < utf8.RuneSelf {
				c.add(byte(r[0]), byte(r[0])) // as most are
			} else {
				for b := range 256 {
					if inst.MatchRune(runeOf(byte(b))) {
						c.add(byte(b), byte(b))
					}
				}
			}
			// States tell no bytes beyond ASCII from each other.
			if high := [2]uint64(c[2:]); inst.Op == syntax.InstEmptyWidth || high != [2]uint64{} && high != [2]uint64(anyByte[2:]) {
				a.steps = a.steps[:base]
				return 0, false
			}
			s.class = a.class(c)
			fork := prog.Inst[skip(inst.Out)]
			s.all = any && c == anyByte && fork.Op == syntax.InstAlt &&
				(skip(fork.Out) == uint32(i) && ends(fork.Arg) || skip(fork.Arg) == uint32(i) && ends(fork.Out))
		}
		a.steps = append(a.steps, s)
	}
	return base + skip(uint32(prog.Start)), true
}

// class returns the number of c.
func (a *automaton) class(c class) uint16 {
	number, ok := a.numbers[c]
	if !ok {
		number = uint16(len(a.classes))
		a.numbers[c] = number
		a.classes = append(a.classes, c)
	}
	return number
}

// close puts the steps and the rules that these steps stand for in a.set and
// a.accept. The lock is held, but while the set is loaded.
func (a *automaton) close(at []uint32) {
	a.seen = append(a.seen, make([]uint32, max(0, len(a.steps)-len(a.seen)))...)
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

// enter returns the state in the directory of n, which s leads to: from there on its
// expressions are asked too, which begin with its path. Those that no automaton can match
// are returned beside it.
func (a *automaton) enter(s *state, n *node) (_ *state, hard []int32) {
	if len(n.rules) == 0 {
		return s, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var at []uint32
	for _, i := range n.rules {
		r := &a.owner.rules[i]
		text, err := translate(r.Pattern)
		if start, ok := a.compile(text, i, r.Kind == 0); ok && err == nil {
			at = append(at, start)
			continue
		}
		r.hard = compileHard(r.Pattern, text, err)
		hard = append(hard, i)
		a.hardNone = a.hardNone || r.Context == ""
	}
	for i := range len(n.path) {
		a.close(at)
		at = a.after(a.set, n.path[i])
	}
	return a.build(append(at, s.set...), s.accept), hard
}

// prune takes out of a.set and a.accept the rules that have no say where a later one
// matches whatever follows: see [Set.first].
func (a *automaton) prune() {
	all := int32(-1)
	for _, i := range a.set {
		if s := &a.steps[i]; s.all && s.rule > all && slices.Contains(a.accept, s.rule) { // .+ needs a byte
			all = s.rule
		}
	}
	if all < 0 {
		return
	}
	rules := a.owner.rules
	deeper := func(rule int32) bool { return rules[rule].depth > rules[all].depth }
	none := func(rule int32) bool { return rule < all && rules[rule].Context == "" && deeper(rule) }
	keep := a.hardNone || slices.ContainsFunc(a.accept, none) || slices.ContainsFunc(a.set, func(i uint32) bool { return none(a.steps[i].rule) })
	gone := func(rule int32) bool { return rule < all && (!keep || !deeper(rule)) }
	a.accept = slices.DeleteFunc(a.accept, gone)
	a.set = slices.DeleteFunc(a.set, func(i uint32) bool { return gone(a.steps[i].rule) })
}

// build returns the state at these steps, where these rules match besides. The lock
// is held, but while the set is loaded.
func (a *automaton) build(at []uint32, accept []int32) *state {
	a.close(at)
	a.accept = append(a.accept, accept...)
	a.prune()
	slices.Sort(a.set)
	slices.SortFunc(a.accept, a.owner.order)
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
		c := a.classes[a.steps[i].class]
		if c.has(0x80) { // as the bytes that no pattern names
			c = c.inverted()
		}
		s.special[0] |= c[0]
		s.special[1] |= c[1]
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
