// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxThreads guards against a mistyped number: each worker holds a thread of the
// kernel.
const maxThreads = 1024

const maxRate = 1_000_000_000 // no machine comes near

// value is a flag's value, with sentences of our own for what is wrong.
type value struct {
	arg   string // what the help calls it; "bool" for a switch, as pflag says
	set   func(string) error
	given []string
}

func (v *value) Set(s string) error { v.given = append(v.given, s); return v.set(s) }
func (v *value) GetSlice() []string { return v.given }
func (v *value) Type() string       { return v.arg }

// String must be a bool's for a switch: cobra reads --help from it.
func (v *value) String() string {
	switch {
	case len(v.given) > 0:
		return v.given[len(v.given)-1]
	case v.arg == "bool":
		return "false"
	}
	return ""
}

func boolean(p *bool) func(string) error {
	return func(s string) (err error) {
		if *p, err = strconv.ParseBool(s); err != nil {
			return errors.New("not true or false")
		}
		return nil
	}
}

// text takes anything but an empty string: that is an unset variable in a
// script, and to go on with the default would label a tree wrongly.
func text(p *string) func(string) error {
	return func(s string) error {
		if s == "" {
			return errors.New("it is empty")
		}
		*p = s
		return nil
	}
}

func list(p *[]string) func(string) error {
	var one string
	return func(s string) error {
		err := text(&one)(s)
		if err == nil {
			*p = append(*p, one)
		}
		return err
	}
}

// enum takes one of values.
func enum(p *string, values ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("not one of %s", strings.Join(values, ", "))
		}
		*p = s
		return nil
	}
}

// upTo takes one from 0 to most.
func upTo(p *int, most int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > most {
			return fmt.Errorf("not a number from 0 to %d", most)
		}
		*p = n
		return nil
	}
}

func duration(p *time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("not a duration such as 90s, 5m or 1h30m")
		}
		if d < 0 {
			return errors.New("a duration cannot be negative")
		}
		*p = d
		return nil
	}
}
