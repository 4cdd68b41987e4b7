// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestStoryHook: a hostPath is relabelled by nobody but the hook, and only if the pod
// asks for it.
func TestStoryHook(t *testing.T) {
	need(t)
	create(t, "runtimeclass", nil)
	for relabel, want := range map[string]string{"false": "Permission denied", "true": "read"} {
		at := "/mnt/hook-" + relabel
		makeFiles(t, at, 1)
		treetest.Must(t, os.WriteFile(at+"/f", []byte("read\n"), 0o644))
		name := "hook-" + relabel
		create(t, "hook", map[string]string{"NAME": name, "RELABEL": relabel, "LEVEL": "s0:c27,c28", "PATH": at})
		keep(t, name)
		awaitRunning(t, name, patience)
		text := ""
		await(t, time.Minute, name+" has read", func() bool { text = said(t, name); return text != "" })
		t.Logf("%s: %q, %s", name, text, label(at))
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q has not %q", name, text, want)
		}
	}
}

// TestStoryGroup: the runtime asks a relabel.Group in place of go-selinux; containerd for the
// volume of the other stories, slowly, CRI-O with docs/patches/crio.patch for a million files. A
// request leaves when its own deadline comes, and the name is free again for the next one, which
// joins the walk: no attempt gets another number, and the volume is walked once.
func TestStoryGroup(t *testing.T) {
	need(t)
	at, l := data, "s0:c33,c34"
	if crio {
		at = "/volumes/xfs/million"
		makeFiles(t, at, 1_000_000)
		create(t, "volume", map[string]string{"NAME": "million", "PATH": at})
	}
	runtime := os.Getenv("RUNTIME")
	node(t, "container_runtime", runtime+"-group")
	t.Cleanup(func() { node(t, "container_runtime", runtime) })
	opened := opens(t, filepath.Join(at, "5"))
	newPod(t, "group", filepath.Base(at), level(l))
	t.Logf("it runs after %v", awaitRunning(t, "group", patience))
	if n := opened.Load(); n != 1 {
		t.Errorf("a directory of the volume was opened %d times, not once", n)
	}
	wrote(t, "group", l)
	holds(t, at, l)
	e := events(t, "group")
	if !has(e, "deadline") {
		t.Error("one request was enough: none came again")
	}
	if has(e, "reserved") {
		t.Error("a request kept the name")
	}
	var p pod
	ask(t, "GET", namespace+"/pods/group", &p)
	if c := p.Status.ContainerStatuses; len(c) != 1 || c[0].RestartCount != 0 {
		t.Errorf("not the first attempt: %+v", c)
	}
}

// opens counts how often a directory is opened to be read from now on. The events are read as they
// come: of equal ones that wait the kernel keeps one.
func opens(t *testing.T, dir string) *atomic.Int64 {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	treetest.Must(t, err)
	events := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { events.Close() }) // the reader ends
	_, err = syscall.InotifyAddWatch(fd, dir, syscall.IN_OPEN|syscall.IN_ONLYDIR)
	treetest.Must(t, err)
	n, buf := new(atomic.Int64), make([]byte, 64<<10)
	go func() {
		for {
			size, err := events.Read(buf)
			if err != nil {
				return
			}
			for at := 0; at < size; at += syscall.SizeofInotifyEvent {
				event := (*syscall.InotifyEvent)(unsafe.Pointer(&buf[at]))
				if at += int(event.Len); event.Len == 0 { // else it is of something in the directory
					n.Add(1)
				}
			}
		}
	}()
	return n
}

// TestStoryStarts: fifty pods at once with a volume of twenty files each, by CRI-O as it is and with
// the patch, in turns. The figures are for docs/runtimes.md: no start fails by its time.
func TestStoryStarts(t *testing.T) {
	if !crio {
		t.Skip("the other one's Group is slow on purpose")
	}
	need(t)
	node(t, "kubelet", "10m")
	defer node(t, "kubelet", limit.String())
	defer node(t, "container_runtime", "crio")
	const pods = 50
	name, at := func(i int) string { return fmt.Sprintf("starts-%d", i) }, "/volumes/xfs/"
	for i := range pods {
		makeFiles(t, at+name(i), 20)
		create(t, "volume", map[string]string{"NAME": name(i), "PATH": at + name(i)})
	}
	for turn, program := range []string{"crio", "crio-group", "crio-group", "crio"} {
		t.Run(fmt.Sprint(turn), func(t *testing.T) {
			node(t, "container_runtime", program)
			ready(t)
			began, begin := creating(t), time.Now()
			for i := range pods {
				newPod(t, name(i), name(i), level(fmt.Sprintf("s0:c%d,c%d", 100+turn, 200+i)))
			}
			for i := range pods {
				awaitRunning(t, name(i), patience)
			}
			t.Logf("%s: %.1f starts a minute, %v of CreateContainer", program, pods/time.Since(begin).Minutes(), creating(t)-began)
			for i := range pods {
				holds(t, at+name(i), fmt.Sprintf("s0:c%d,c%d", 100+turn, 200+i))
			}
		})
	}
}
