// SPDX-License-Identifier: Apache-2.0

// Suite runs go test once for each of its arguments, all at once, whatever becomes of
// the others, and says at the end how many tests passed, failed and skipped:
//
//	suite [-adapt] [-v] [-flags FLAGS] PASS...
//
// A PASS is a name, settings for the environment, and the arguments of go test:
//
//	"race CGO_ENABLED=1 -race -skip=@treetest.Command|runtime.ReadMemStats ./relabel"
//
// @FUNCTION|... stands for the tests that call one of these functions, directly or not.
// It prints, one pass after the other, a line for each package, all that a failed test
// printed, and why tests skipped. With -v it prints what go test -v prints. A test that is still running when
// its program ends, a program that ends before its first test, and one that does
// not build count as failures. It exits 1 if anything failed, or if nothing ran.
//
// FASTLABEL_PROMISE says what the machine can do. What it cannot do all the same is
// said first; with -adapt it is then no longer promised, and the tests that need it
// skip.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	s := &suite{out: bufio.NewWriter(os.Stdout)}
	adapt := flag.Bool("adapt", false, "do not promise what the machine cannot do")
	flag.BoolVar(&s.verbose, "v", false, "print what go test -v prints")
	flags := flag.String("flags", "", "more flags for go test, all passes")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	s.more = strings.Fields(*flags)
	s.verbose = s.verbose || slices.Contains(s.more, "-v")
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { s.interrupt((<-signals).String()) }()
	s.promise(*adapt)
	s.passes(flag.Args())
	code := s.sum()
	s.out.Flush()
	os.Exit(code)
}

// interrupt ends the suite as soon as each go test under way has ended, which the
// signal reaches too: the terminal and .ci/run send it to all.
func (s *suite) interrupt(why string) { s.stopped.Store(&why) }

// pass runs go test as the fields say.
func (s *suite) pass(t *tally, fields []string) {
	if s.stopped.Load() != nil {
		return
	}
	name, env, args := fields[0], os.Environ(), fields[1:]
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && strings.Contains(args[0], "=") {
		env, args = append(env, args[0]), args[1:]
	}
	if s.promised != "" {
		env = append(env, promiseEnv+"="+s.promised)
	}
	t.name = name
	for i, arg := range args {
		if option, functions, is := strings.Cut(arg, "=@"); is {
			tests, err := callers(".", strings.Split(functions, "|")...)
			if err != nil {
				t.fail("go "+strings.Join(args, " "), err.Error())
				return
			}
			args[i] = option + "=" + tests
		}
	}
	args = append(append([]string{"test", "-json", "-count=1"}, s.more...), args...)
	t.print(fmt.Sprintf("== %s: go %s\n", name, strings.Join(args, " ")))
	t.out.Flush()
	if err := goTest(args, env, t); err != nil && t.failed == 0 {
		t.fail("go test", err.Error())
	}
	t.close()
}

// goTest runs go and has the tally read what it says.
func goTest(args, env []string, t *tally) error {
	cmd := exec.Command("go", args...)
	cmd.Env = env
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		w.Close()
		ended <- err
	}()
	t.read(r)
	return <-ended
}
