// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/outlook"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
)

// An explanation is one object; docs/explain.md has its keys. What is not known
// is left out.

type jsonMount struct {
	report.JSONPath
	Type     string `json:"type"`
	Source   string `json:"source"`
	Source64 string `json:"source_base64,omitempty"`
	Manner   string `json:"options"`
	Labels   *bool  `json:"labels,omitempty"`
	NoLabels string `json:"no_labels,omitempty"`
}

func mountInJSON(m site.Mount) jsonMount {
	line := jsonMount{report.PathOf(m.Point), m.FSType, m.Source, report.Base64(m.Source), m.Manner(), nil, m.NoLabels}
	if has := m.NoLabels == ""; !m.Unknown {
		line.Labels = &has
	}
	return line
}

type jsonRun struct {
	Label   string    `json:"label"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Entries int64     `json:"entries"`
	Written int64     `json:"written"`
}

func (e explanation) object() any {
	line := struct {
		report.Head
		Real        string               `json:"real"`
		RealBase64  string               `json:"real_base64,omitempty"`
		Directory   bool                 `json:"directory"`
		Plugin      string               `json:"plugin,omitempty"`
		Mount       jsonMount            `json:"mount"`
		Beneath     []jsonMount          `json:"mounts"`
		SELinux     bool                 `json:"selinux"`
		Has         string               `json:"has,omitempty"`
		HasBase64   string               `json:"has_base64,omitempty"`
		Label       string               `json:"label"`
		From        string               `json:"from"`
		Labelled    bool                 `json:"labelled"`
		Interrupted bool                 `json:"interrupted"`
		LastRun     *jsonRun             `json:"last_run,omitempty"`
		Containers  []workload.Container `json:"containers,omitempty"`
		Unread      []string             `json:"unread,omitempty"`
		Runtimes    []outlook.Way        `json:"runtimes"`
		Notes       []string             `json:"notes,omitempty"`
		Command     string               `json:"command,omitempty"`
		Advice      []string             `json:"advice"`
	}{
		Head: report.NewHead("explanation", e.Path), Real: e.Real, RealBase64: report.Base64(e.Real), Directory: e.Directory,
		Plugin: e.Plugin(), Mount: mountInJSON(e.Mount), Beneath: []jsonMount{}, SELinux: e.SELinux, Has: e.Label, HasBase64: report.Base64(e.Label),
		Label: e.want, From: e.from, Labelled: e.root.Labelled, Interrupted: e.root.Interrupted, Unread: e.pods.Unread,
		Containers: e.pods.Containers, Runtimes: e.future.Ways(), Notes: e.future.Notes(), Command: e.toLabel(), Advice: e.future.Advice(),
	}
	for _, m := range e.Beneath {
		line.Beneath = append(line.Beneath, mountInJSON(m))
	}
	if c := e.root.Commit; c.Label != "" {
		line.LastRun = &jsonRun{c.Label, c.Began.UTC(), c.Ended.UTC(), c.Entries, c.Written}
	}
	return line
}
