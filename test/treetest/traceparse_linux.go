// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// newCalls names calls that strace may know only by number. Their numbers are
// the same on all architectures that we build for.
var newCalls = map[string]string{
	"syscall_0x1cf": "setxattrat", "syscall_0x1d0": "getxattrat", "syscall_0x1d1": "listxattrat", "syscall_0x1d2": "removexattrat",
	"syscall_0x1d3": "open_tree_attr", "syscall_0x1d4": "file_getattr", "syscall_0x1d5": "file_setattr",
}

// pending is a call that has begun and not ended.
type pending struct {
	index int    // in the calls
	text  string // what was printed of it
}

// parseTrace reads what strace -f -y -xx wrote. A call that another thread's line
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
		if _, open := begun[pid]; err == nil && c.Ret == "" && !open {
			err = errors.New("no result")
		}
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
	if fd, p := descriptor(c.Ret); p != "" {
		paths[fd] = p
	}
	if known != "" || len(c.Args) == 0 {
		return known
	}
	fd, p := descriptor(c.Args[0])
	if c.Name == "close" {
		delete(paths, fd)
	} else if strings.HasPrefix(c.Args[0], "0x") { // of a call that strace does not know
		return paths[fd]
	}
	return p
}

// descriptor reads "3</path>", "AT_FDCWD</path>", "3" and "0x3".
func descriptor(s string) (fd int, path string) {
	num, path, _ := strings.Cut(s, "<")
	n, err := strconv.ParseInt(num, 0, 64)
	if err != nil && num != "AT_FDCWD" {
		return -1, ""
	}
	path, _ = strconv.Unquote(`"` + path[:max(0, strings.LastIndexByte(path, '>'))] + `"`)
	return int(n), path
}

var (
	callForm = regexp.MustCompile(`^(\w+|\?{3})\((.*?)(?:\) += (.*))?$`)
	hexBytes = regexp.MustCompile(`(\\x[0-9a-f]{2})+`)
)

// parseCall reads "name(arg, arg) = ret", or the beginning of one.
func parseCall(s string) (Call, error) {
	form := callForm.FindStringSubmatch(s)
	if form == nil {
		return Call{}, errors.New("not a call")
	}
	c := Call{Name: cmp.Or(newCalls[form[1]], form[1]), Ret: readable(form[3])}
	depth, start := 0, 0 // of brackets; of the argument
	for i, ch := range []byte(form[2] + ",") {
		switch {
		case strings.IndexByte("([{", ch) >= 0:
			depth++
		case strings.IndexByte(")]}", ch) >= 0:
			depth--
		case ch == ',' && (depth == 0 || i == len(form[2])):
			if arg := strings.TrimSpace(form[2][start:i]); arg != "" {
				c.Args = append(c.Args, readable(arg))
			}
			start = i + 1
		}
	}
	return c, nil
}

// readable has the strings and paths, of which strace -xx prints each byte as a number, as Go quotes them.
func readable(s string) string {
	return hexBytes.ReplaceAllStringFunc(s, func(bytes string) string {
		text, _ := strconv.Unquote(`"` + bytes + `"`)
		quoted := strconv.Quote(text)
		return quoted[1 : len(quoted)-1]
	})
}
