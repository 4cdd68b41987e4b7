// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/outlook"
)

// An explanation is one object; docs/explain.md has its keys. What is not known
// is left out.

type jsonMount struct {
	jsonPath
	Type     string `json:"type"`
	Source   string `json:"source"`
	Source64 string `json:"source_base64,omitempty"`
	Manner   string `json:"options"`
	Labels   *bool  `json:"labels,omitempty"`
	NoLabels string `json:"no_labels,omitempty"`
}

func mountInJSON(m mounted) jsonMount {
	line := jsonMount{jsonPath{m.point, inBase64(m.point)}, m.fstype, m.source, inBase64(m.source), m.manner(), nil, m.noLabels}
	if bears := m.noLabels == ""; !m.unknown {
		line.Labels = &bears
	}
	return line
}

type jsonCount struct {
	Label       string `json:"label"`
	LabelBase64 string `json:"label_base64,omitempty"`
	Top         int64  `json:"top"`
	Beneath     int64  `json:"beneath"`
}

type jsonSample struct {
	Whole       bool        `json:"whole"`
	Entries     int64       `json:"entries"`
	Directories int64       `json:"directories"`
	Failed      int64       `json:"failed"`
	Seconds     float64     `json:"seconds"`
	Each        float64     `json:"seconds_each"`
	Labels      []jsonCount `json:"labels"`
	Others      int64       `json:"others,omitempty"`
	Strays      int64       `json:"strays"`
}

type jsonEntries struct {
	Least int64  `json:"min"`
	Most  int64  `json:"max,omitempty"`
	From  string `json:"from"`
}

type jsonRun struct {
	Label   string    `json:"label"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Entries int64     `json:"entries"`
	Written int64     `json:"written"`
}

type jsonWork struct {
	Does  string   `json:"does"`
	Least *float64 `json:"seconds_min,omitempty"`
	Most  *float64 `json:"seconds_max,omitempty"`
}

type jsonWay struct {
	Runtime string   `json:"runtime"`
	Now     jsonWork `json:"now"`
	Then    jsonWork `json:"labelled"`
}

type jsonContainer struct {
	Pod             string `json:"pod"`
	Name            string `json:"container"`
	Level           string `json:"level,omitempty"`
	User            string `json:"user,omitempty"`
	Left            string `json:"left,omitempty"`
	LeftByCRIO      string `json:"left_by_crio,omitempty"`
	ContainerdDraws bool   `json:"containerd_draws,omitempty"`
	TrySkip         bool   `json:"try_skip,omitempty"`
	RuntimeClass    string `json:"runtime_class,omitempty"`
}

func (j *jsonLines) explained(e explanation) {
	line := struct {
		jsonHead
		Real        string          `json:"real"`
		RealBase64  string          `json:"real_base64,omitempty"`
		Directory   bool            `json:"directory"`
		Whole       bool            `json:"whole_filesystem"`
		Plugin      string          `json:"plugin,omitempty"`
		Mount       jsonMount       `json:"mount"`
		Beneath     []jsonMount     `json:"mounts"`
		SELinux     bool            `json:"selinux"`
		Has         string          `json:"has,omitempty"`
		HasBase64   string          `json:"has_base64,omitempty"`
		Label       string          `json:"label"`
		From        string          `json:"from"`
		Labelled    bool            `json:"labelled"`
		Interrupted bool            `json:"interrupted"`
		LastRun     *jsonRun        `json:"last_run,omitempty"`
		Sample      jsonSample      `json:"sample"`
		Entries     jsonEntries     `json:"entries"`
		Containers  []jsonContainer `json:"containers,omitempty"`
		Unread      []string        `json:"unread,omitempty"`
		Runtimes    []jsonWay       `json:"runtimes"`
		Helps       string          `json:"helps"`
		Reasons     []string        `json:"reasons"`
	}{
		jsonHead: head("explanation", e.path), Real: e.real, RealBase64: inBase64(e.real), Directory: e.directory, Whole: e.whole,
		Plugin: e.plugin(), Mount: mountInJSON(e.mount), Beneath: []jsonMount{}, SELinux: e.selinux, Has: e.label, HasBase64: inBase64(e.label),
		Label: e.want, From: e.from, Labelled: e.labelled, Interrupted: e.sealed, Unread: e.pods.Unread,
		Helps: string(e.help), Reasons: e.reasons,
	}
	for _, m := range e.beneath {
		line.Beneath = append(line.Beneath, mountInJSON(m))
	}
	if c := e.commit; c.Label != "" {
		line.LastRun = &jsonRun{c.Label, c.Began.UTC(), c.Ended.UTC(), c.Entries, c.Written}
	}
	s := e.sample
	line.Sample = jsonSample{
		Whole: s.Whole, Entries: s.Entries, Directories: s.Directories, Failed: s.Failed,
		Seconds: s.Elapsed.Seconds(), Each: s.Each.Seconds(), Labels: []jsonCount{}, Others: s.Others, Strays: e.future.Strays,
	}
	for _, c := range s.Labels {
		line.Sample.Labels = append(line.Sample.Labels, jsonCount{c.Label, inBase64(c.Label), c.Top, c.Beneath})
	}
	line.Entries = jsonEntries{e.future.Least, e.future.Most, e.counted}
	for _, c := range e.pods.Containers {
		line.Containers = append(line.Containers, jsonContainer{c.Pod, c.Name, c.Level, c.User, c.Left, c.LeftByCRIO, c.ContainerdDraws, c.TrySkip, c.RuntimeClass})
	}
	for _, w := range e.future.Ways() {
		line.Runtimes = append(line.Runtimes, jsonWay{w.Runtime, e.workInJSON(w.Now), e.workInJSON(w.Then)})
	}
	j.line(line, true)
}

func (e explanation) workInJSON(w outlook.Work) jsonWork {
	work := jsonWork{Does: w.String()}
	if least, most, ok := e.future.Cost(w); ok {
		from, to := least.Seconds(), most.Seconds()
		work.Least, work.Most = &from, &to
	}
	return work
}
