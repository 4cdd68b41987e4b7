// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// command is one of the command's faces. key is its letter in option.in.
type command struct {
	name, key string
	operands  string
	about     string
	example   string
	more      string
	named     bool // by the word label, which the first may be called by
}

const exitCodes = `Exit codes:
  0  done, or nothing to do       4    differences found, changed meanwhile
  1  some entries failed          124  --timeout reached
  2  usage; nothing was begun     130  interrupted (143: SIGTERM, SIGHUP)
  3  refused, or no labels there
The worst of all PATHs counts: 130 and 143, 124, 2, 1, 3, 4, 0.
`

var listed = fmt.Sprintf("Of failures, the first %d a PATH are listed, all with -v and in JSON.\n", maxListed)

const skipHelp = `--skip root passes over a PATH that bears the label; top asks its entries too.
--skip unchanged looks only where something was created, renamed or moved in
since the last run to this label; labels changed in place it does not find.
`

const withheld = `Where one failed, PATH itself is left without the label, and counts as skipped.
`

const inJSON = `In JSON, a path that is not UTF-8 has its exact bytes in path_base64.
`

const hookHelp = `The sources of bind mounts get linux.mountLabel of the bundle's config.json,
where the container's annotations ask for it:
  io.fastlabel.relabel  true: every volume; or destinations: /data,/logs
  io.fastlabel.shared   true: level s0, for volumes that pods share
  io.fastlabel.skip     none, root (default), top or unchanged, as --skip
  io.fastlabel.label    a label in place of linux.mountLabel
A volume is a writable directory that is bind-mounted. What lies in /dev, /etc,
/proc, /run, /sys or /usr, or is written by the kubelet, is none.
try-skip-volume-selinux-label.crio.io=true is understood as skip top.

Without --timeout it stops after 100 s, or 5 s (half, if that is less) before
the timeout of its own entry in config.json. The next try goes on from there.
Errors go to stderr and to the journal.

Exit codes: 0 done, or nothing to do; 1 something failed; 2 usage.
`

const restoreHelp = `FILE is checked to its end before anything is written. What bears neither the
label that the run gave nor the one it bore before is left alone, and named, as
is another file of the same name. In the counts, written are those put back,
right those that bore their label already, and skipped those left alone.
PATH gets its own label last, if all else is as it was.
`

const explainHelp = `Nothing is written, and nothing beneath PATH is looked at. It tells whether
files there have labels, which label PATH has and what vouches for it, what
CRI-O, containerd and podman will do with PATH and why, and what to write.

Without a label it is the default, with the level of PATH where the types agree.
--for reads pods, and what holds templates of them, as kubectl prints them.

Exit codes: 0 explained; 1 something failed; 2 usage; 124 --timeout reached;
130 interrupted (143: SIGTERM).
`

const wordsHelp = `All PATHs are looked up before any is touched. Put -- before a PATH that is
named like a command. fastlabel label PATH is the same as fastlabel PATH, and
help COMMAND as COMMAND --help. -R and -r are taken, without effect.
`

const whenAsked = `On SIGUSR1 it says how far it is.
`

// commands lists them; the first has no name.
func commands() []command {
	return []command{
		{"", "l", "PATH...", "label PATH and everything beneath it", "fastlabel -l s0:c35,c75 /var/lib/pv", "\n" + skipHelp + "\n" + listed + withheld + inJSON + whenAsked + "\n" + exitCodes, false},
		{"probe", "p", "PATH...", "is it labelled? reads PATH alone", "fastlabel probe -l s0:c35,c75 /var/lib/pv", "\n" + inJSON, false},
		{"verify", "v", "PATH...", "read every label, write none", "fastlabel verify -v /var/lib/pv", "\nDifferences are listed with -v.\n" + listed + inJSON + whenAsked, false},
		{"restore", "r", "FILE", "put back what --record kept", "fastlabel restore /root/pv.record", "\n" + restoreHelp + "\n" + listed + inJSON + whenAsked, false},
		{"explain", "e", "PATH...", "what runtimes do there, and why", "fastlabel explain --for pod.yaml /var/lib/pv", "\n" + explainHelp + inJSON, false},
		{"hook", "h", "", "OCI createRuntime hook; reads stdin", "fastlabel hook <state.json", "\n" + hookHelp, false},
		{"version", "o", "", "print the version", "fastlabel version", "", false},
		{"completion", "o", "bash|zsh|fish", "print a script for that shell", ". <(fastlabel completion bash)", "", false},
	}
}

func (c command) call() string { return strings.TrimSpace("fastlabel " + c.name) }

func (c command) usage() string {
	flags := "[flags]"
	if c.key == "o" {
		flags = ""
	}
	return strings.Join(strings.Fields(c.call()+" "+flags+" "+c.operands), " ")
}

// help is the text of --help.
func (c command) help() string {
	var b strings.Builder
	listed := []command{c}
	if c.name == "" {
		listed = commands()
	}
	for i, each := range listed {
		lead := "Usage:"
		if i > 0 {
			lead = ""
		}
		fmt.Fprintf(&b, "%-6s %-36s %s\n", lead, each.usage(), each.about)
	}
	group := ""
	for _, o := range options(new(settings)) {
		if o.help == "" || !strings.Contains(o.in, c.key) {
			continue
		}
		if o.group != group {
			group = o.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		short := "    "
		if o.short != "" {
			short = "-" + o.short + ", "
		}
		fmt.Fprintf(&b, "  %s%-23s %s\n", short, strings.TrimSpace("--"+o.long+" "+o.arg), o.help)
	}
	b.WriteString(c.more)
	if c.name == "" {
		b.WriteString("\n" + wordsHelp)
	}
	fmt.Fprintf(&b, "\nExample: %s\n", c.example)
	return b.String()
}
