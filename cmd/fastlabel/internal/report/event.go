// SPDX-License-Identifier: Apache-2.0

// Package report says what happens in a run. All of it is one stream of events, and there
// are two sinks for them: lines for people, and JSON for programs.
package report

import "github.com/fastlabel/fastlabel/relabel"

// Kind is the message_type of an event in JSON.
type Kind string

const (
	Failure Kind = "error"
	Change  Kind = "change"  // a label was written, or with Dry would be
	Skip    Kind = "skip"    // an entry, or a PATH
	Note    Kind = "note"    // a sentence for people
	Status  Kind = "status"  // what happens now, and the answer of probe
	Summary Kind = "summary" // what became of a PATH: one for each, the last about it
)

// Event is something that happens. Which fields it has depends on its Kind.
type Event struct {
	Kind
	Root     string // the PATH; "" where it is about the run
	Path     string // of an entry
	Err      error  // of Failure
	From, To string // of Change
	Text     string // of Note; why, of Skip
	State    string // of Status: waiting, stalled, running; "" is an answer
	Call     string // of Status stalled
	Far      *Far   // of Status running
	Probe    *Probe // of an answer
	Result   *Result
	More     bool // Text says how many Failures or Skips were left out
}

// Sink takes events, from several goroutines.
type Sink interface{ Put(e Event) }

// Reporter is a Sink with a verb for each event.
type Reporter struct{ Sink }

func (r Reporter) Failure(root string, err error) { r.Put(Event{Kind: Failure, Root: root, Err: err}) }

func (r Reporter) Note(root, text string) { r.Put(Event{Kind: Note, Root: root, Text: text}) }

func (r Reporter) Result(s Result) { r.Put(Event{Kind: Summary, Root: s.Root, Result: &s}) }

func (r Reporter) Stall(root string, c relabel.HungCall) {
	r.Put(Event{Kind: Status, Root: root, State: "stalled", Call: c.Call, Path: c.Path})
}

// Result is the outcome of one PATH.
type Result struct {
	relabel.Report
	Command string // "", "verify"
	Skip    string // --skip
	DryRun  bool
	Code    int
	Reason  string // why it is not complete

	Labels []Labels // with verify -v: what differs
}

// Labels are so many entries with this label; "" is none, or with Other all further ones.
type Labels struct {
	Label string `json:"has,omitempty"`
	Exact string `json:"has_base64,omitempty"` // if Label is not UTF-8
	Count int64  `json:"count"`
	Other bool   `json:"other,omitempty"`
}

// Probe is the answer of probe for one PATH.
type Probe struct {
	Root, Label, Depth    string
	Labelled, Interrupted bool
	Has                   string // the label that is there instead; "" is none
}
