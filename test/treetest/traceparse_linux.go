// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// newCalls names calls that strace may know only by number. Their numbers are
// the same on all architectures that we build for.
var newCalls = map[string]string{
	"syscall_0x1cf": "setxattrat",
	"syscall_0x1d0": "getxattrat",
	"syscall_0x1d1": "listxattrat",
	"syscall_0x1d2": "removexattrat",
	"syscall_0x1d3": "open_tree_attr",
	"syscall_0x1d4": "file_getattr",
	"syscall_0x1d5": "file_setattr",
}

// pending is a call that has begun and not ended.
type pending struct {
	index int    // in the calls
	text  string // what was printed of it
}

// parseTrace reads what strace -f -y wrote. A call that another thread's line
// cuts in two is put together again, where it began.
func parseTrace(text string) ([]Call, error) {
	var calls []Call
	begun := map[int]pending{}
	paths := map[int]string{} // of descriptors; threads share them
	first, program := 0, 0    // the first process; where its program begins
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		num, rest, _ := strings.Cut(line, " ")
		pid, err := strconv.Atoi(num)
		if err != nil {
			return nil, fmt.Errorf("strace: no process: %q", line)
		}
		if first == 0 {
			first = pid
		}
		rest = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(rest, "+++") || strings.HasPrefix(rest, "---") || strings.HasPrefix(rest, "strace:") {
			continue
		}
		at := len(calls)
		if tail, ok := strings.CutPrefix(rest, "<... "); ok {
			name, tail, _ := strings.Cut(tail, " resumed>")
			if _, ok := begun[pid]; !ok && name == "execve" {
				pid = successor(begun, pid) // the others end, the caller takes the first's number
			}
			b, ok := begun[pid]
			if !ok {
				continue // begun before the trace
			}
			delete(begun, pid)
			at, rest = b.index, b.text+tail
		} else {
			calls = append(calls, Call{PID: pid})
		}
		if head, ok := strings.CutSuffix(rest, " <unfinished ...>"); ok {
			begun[pid] = pending{at, head}
			rest = head
		}
		c, err := parseCall(rest)
		if err != nil {
			return nil, fmt.Errorf("strace: %w: %q", err, line)
		}
		c.PID = calls[at].PID
		c.Dir = follow(c, paths, calls[at].Dir)
		calls[at] = c
		if c.Name == "execve" && c.Ret == "0" && (pid == first || c.PID == first) {
			program = at + 1
		}
	}
	return calls[min(program, len(calls)):], nil
}

// successor finds the thread whose execve made it the process pid.
func successor(begun map[int]pending, pid int) int {
	for other, b := range begun {
		if strings.HasPrefix(b.text, "execve(") {
			return other
		}
	}
	return pid
}

// follow keeps the paths of descriptors, and gives that of the first argument.
func follow(c Call, paths map[int]string, known string) string {
	if fd, p, ok := descriptor(c.Ret); ok && p != "" {
		paths[fd] = p
	}
	if len(c.Args) == 0 {
		return known
	}
	if strings.HasPrefix(c.Args[0], "AT_FDCWD<") {
		_, p, _ := descriptor("0" + strings.TrimPrefix(c.Args[0], "AT_FDCWD"))
		return p
	}
	fd, p, ok := descriptor(c.Args[0])
	switch {
	case !ok || known != "":
		return known
	case c.Name == "close":
		delete(paths, fd)
		return p
	case p == "" && c.byNumber():
		return paths[fd]
	}
	return p
}

// byNumber reports whether strace printed bare numbers for a call whose first
// argument is a directory.
func (c Call) byNumber() bool {
	i, ok := pathAt[c.Name]
	return ok && i == 1 && len(c.Args) > 1 && strings.HasPrefix(c.Args[1], "0x")
}

// descriptor reads "3</path>", "3" and "0x3".
func descriptor(s string) (fd int, path string, ok bool) {
	num, path, found := strings.Cut(s, "<")
	n, err := strconv.ParseInt(strings.TrimSpace(num), 0, 64)
	if err != nil {
		return 0, "", false
	}
	if found {
		path = unquoteC(`"` + strings.TrimSuffix(path, ">") + `"`)
	}
	return int(n), path, true
}

// parseCall reads "name(arg, arg) = ret", or the beginning of one.
func parseCall(s string) (Call, error) {
	name, rest, ok := strings.Cut(s, "(")
	if !ok || name == "" || strings.ContainsAny(name, " \"") {
		return Call{}, errors.New("not a call")
	}
	c := Call{Name: name}
	if known, ok := newCalls[name]; ok {
		c.Name = known
	}
	var depth []byte // open brackets
	start := 0
	for i := 0; i < len(rest); i++ {
		switch ch := rest[i]; {
		case ch == '"':
			for i++; i < len(rest) && rest[i] != '"'; i++ {
				if rest[i] == '\\' {
					i++
				}
			}
		case ch == '<' && i > 0 && i+1 < len(rest) && rest[i+1] != '<' && isDescriptorEnd(rest[i-1]):
			if end := strings.IndexByte(rest[i:], '>'); end > 0 {
				i += end
			}
		case ch == '/' && strings.HasPrefix(rest[i:], "/*"):
			if end := strings.Index(rest[i:], "*/"); end > 0 {
				i += end + 1
			}
		case strings.IndexByte("([{", ch) >= 0:
			depth = append(depth, ch)
		case strings.IndexByte(")]}", ch) >= 0 && len(depth) > 0:
			depth = slices.Delete(depth, len(depth)-1, len(depth))
		case ch == ',' && len(depth) == 0:
			c.Args = append(c.Args, strings.TrimSpace(rest[start:i]))
			start = i + 1
		case ch == ')':
			if arg := strings.TrimSpace(rest[start:i]); arg != "" {
				c.Args = append(c.Args, arg)
			}
			ret, ok := strings.CutPrefix(strings.TrimLeft(rest[i+1:], " "), "= ")
			if !ok {
				return c, errors.New("no result")
			}
			c.Ret = ret
			return c, nil
		}
	}
	if arg := strings.TrimSpace(rest[start:]); arg != "" {
		c.Args = append(c.Args, arg) // the rest of the call is yet to come
	}
	return c, nil
}

func isDescriptorEnd(ch byte) bool { return ch >= '0' && ch <= '9' || ch == 'D' }

// unquoteC undoes strace's quotes: C escapes, octal of one to three digits.
func unquoteC(s string) string {
	s = strings.TrimPrefix(s, `"`)
	if i := strings.LastIndexByte(s, '"'); i >= 0 {
		s = s[:i] // what follows says that the string was cut
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte("ntrvfab", s[i]); at >= 0 {
			b.WriteByte("\n\t\r\v\f\a\b"[at])
			continue
		}
		end := i
		for end < len(s) && end < i+3 && s[end] >= '0' && s[end] <= '7' {
			end++
		}
		if n, err := strconv.ParseUint(s[i:end], 8, 8); err == nil {
			b.WriteByte(byte(n))
			i = end - 1
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
