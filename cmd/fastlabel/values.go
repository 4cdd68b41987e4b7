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

// maxThreads is a guard against a slip of the finger: each worker holds a
// thread of the kernel.
const maxThreads = 1024

// value is a flag's value for pflag, with sentences of our own for what is
// wrong.
type value struct {
	set func(string) error
	is  string // pflag's name of the type: only "bool" matters
}

func (v value) Set(s string) error { return v.set(s) }
func (v value) String() string     { return "" }
func (v value) Type() string       { return v.is }

func boolean(p *bool) value {
	return value{is: "bool", set: func(s string) (err error) {
		if *p, err = strconv.ParseBool(s); err != nil {
			return errors.New("not true or false")
		}
		return nil
	}}
}

// text takes anything but an empty string: that is an unset variable in a
// script, and to go on with the default would label a tree wrongly.
func text(p *string) value {
	return value{is: "string", set: func(s string) error {
		if s == "" {
			return errors.New("it is empty")
		}
		*p = s
		return nil
	}}
}

func list(p *[]string) value {
	return value{is: "string", set: func(s string) error {
		if s == "" {
			return errors.New("it is empty")
		}
		*p = append(*p, s)
		return nil
	}}
}

// enum takes one of values.
func enum(p *string, values ...string) value {
	return value{is: "string", set: func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("not one of %s", strings.Join(values, ", "))
		}
		*p = s
		return nil
	}}
}

// skipping takes what --skip does.
func skipping(p *string) value {
	known := enum(p, "none", "root", "top", "unchanged")
	return value{is: known.is, set: func(s string) error { return known.set(skipNow(s)) }}
}

// skipNow is what a value of --skip is called now: unchanged was once changed.
func skipNow(s string) string {
	if s == "changed" {
		return "unchanged"
	}
	return s
}

func threads(p *int) value {
	return value{is: "string", set: func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > maxThreads {
			return fmt.Errorf("not a number from 0 to %d", maxThreads)
		}
		*p = n
		return nil
	}}
}

func rate(p *int) value {
	const most = 1_000_000_000 // no machine comes near
	return value{is: "string", set: func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > most {
			return fmt.Errorf("not a number from 0 to %d", most)
		}
		*p = n
		return nil
	}}
}

func percent(p *float64) value {
	return value{is: "string", set: func(s string) error {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n > 0 && n <= 100) {
			return errors.New("not a percentage above 0 and up to 100")
		}
		*p = n
		return nil
	}}
}

func duration(p *time.Duration) value {
	return value{is: "string", set: func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("not a duration such as 90s, 5m or 1h30m")
		}
		if d < 0 {
			return errors.New("a duration cannot be negative")
		}
		*p = d
		return nil
	}}
}
