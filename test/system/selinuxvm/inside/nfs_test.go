// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// node is a machine as far as NFS and fastlabel can tell: a process with a /run and a
// network of its own, in which a server exports a directory, and a client has it mounted.
type node struct {
	pid    int
	volume string
}

// serve is what a node does, given its name and what it exports. What the
// programs of NFS would tell the kernel is written by hand: the client, the export, which flags it
// has (any port, security_label, no subtree checks, fsid) and which handle is its root.
// A server takes no user attributes in its time of grace, of which ten seconds is the least.
// The client asks for nothing again by itself for an hour.
const serve = `set -e
hostname $1
busybox ifconfig lo up
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t nfsd nfsd /proc/fs/nfsd
cd /proc/fs/nfsd
echo '-3 +4 +4.1 +4.2' >versions
echo 10 >nfsv4leasetime
echo 10 >nfsv4gracetime
until=$(($(date +%s) + 86400))
echo "nfsd 127.0.0.1 $until all" >/proc/net/rpc/auth.unix.ip/channel
echo "all $2 $until $((0x2 | 0x80 | 0x400 | 0x2000)) 65534 65534 0" >/proc/net/rpc/nfsd.export/channel
echo "all 1 \\x00000000 $until $2" >/proc/net/rpc/nfsd.fh/channel
echo 'tcp 2049' >portlist
echo 2 >threads
mkdir /run/nfs
mount -i -t nfs4 -o addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.2,actimeo=3600 127.0.0.1:/ /run/nfs
echo ready
read end
umount /run/nfs
echo 0 >threads
`

// nodes are two that share a volume on dir.
func nodes(t *testing.T, dir string) (a, b node) {
	t.Helper()
	// A server that has delegated something to its client first waits until it is given
	// back: half a minute was seen, and what that client had kept was given up with it.
	const leases = "/proc/sys/fs/leases-enable"
	treetest.Must(t, os.WriteFile(leases, []byte("0"), 0))
	t.Cleanup(func() { _ = os.WriteFile(leases, []byte("1"), 0) })
	treetest.Must(t, os.MkdirAll("/var/lib/nfs/v4recovery", 0o755))
	return newNode(t, "a", dir), newNode(t, "b", dir)
}

func newNode(t *testing.T, name, dir string) node {
	t.Helper()
	cmd := exec.Command("sh", "-c", serve, "sh", name, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	treetest.Must(t, err)
	out, err := cmd.StdoutPipe()
	treetest.Must(t, err)
	treetest.Must(t, cmd.Start())
	t.Cleanup(func() {
		_, err := in.Write([]byte("\n"))
		treetest.Check(t, err, cmd.Wait())
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("node %s: %q, %v", name, line, err)
	}
	return node{cmd.Process.Pid, "/run/nfs/volume"}
}

// run runs a program on the node, and gives its exit code.
func (n node) run(t *testing.T, program string, args ...string) (int, string) {
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(n.pid), "-m", "-n", "-u", "--", program}, args...)...)
	out, _ := cmd.CombinedOutput() // the exit code tells
	t.Logf("%q: %d\n%s", args, cmd.ProcessState.ExitCode(), out)
	return cmd.ProcessState.ExitCode(), string(out)
}

// must is run of fastlabel, which has to end with code.
func (n node) must(t *testing.T, code int, args ...string) {
	t.Helper()
	if got, _ := n.run(t, command, append(args, n.volume)...); got != code {
		t.Errorf("%q: exit code %d, not %d", args, got, code)
	}
}

// TestNFS: two machines label one volume of NFS 4.2, in turns and at once, and each goes
// by what there is and not by what its kernel has heard of it. The control is that this
// tells a label which the other machine has replaced.
func TestNFS(t *testing.T) {
	dir := fresh(t, "ext4")
	root := grow(t, dir)
	a, b := nodes(t, dir)
	t.Run("turns", func(t *testing.T) {
		a.must(t, 0, "--label", labelA)
		all(t, root, labelA)
		top := []string{"-n", treetest.Attr, "--only-values", a.volume + "/top"}
		a.run(t, "getfattr", top...)
		b.must(t, 0, "--label", labelB)
		all(t, root, labelB)
		if _, has := a.run(t, "getfattr", top...); !strings.Contains(has, labelA) {
			t.Errorf("control: node a was told %s", has)
		}
		a.must(t, 4, "probe", "--label", labelA)
		a.must(t, 4, "verify", "--label", labelA)
		b.must(t, 0, "--label", labelA)
		a.must(t, 0, "--label", labelB)
		all(t, root, labelB)
		b.must(t, 0, "--skip", "root", "--label", labelA)
		all(t, root, labelA)
	})
	t.Run("two labels", func(t *testing.T) {
		treetest.Build(t, mkdir(t, root, "more"), treetest.Text(t, "dir d%d x20\nfile d0/f%d x200\nfile d1/f%d x200"))
		// A run that ends with 1 and a call under way leaves that behind, and it may write
		// when the other run has ended: such a pair shows nothing of what is labelled.
		shown := 0
		for pairs := 0; shown < 3 && pairs < 12; pairs++ {
			var done, left [2]bool
			one := func(i int, n node, label string) func() {
				return func() {
					code, said := n.run(t, command, "--label", label, n.volume)
					done[i], left[i] = code == 0, code != 0 && strings.Contains(said, "does not return")
				}
			}
			var both sync.WaitGroup
			both.Go(one(0, a, labelA))
			both.Go(one(1, b, labelB))
			both.Wait()
			has := labelOf(t, root)
			switch {
			case has != labelA && has != labelB:
				if done[0] || done[1] {
					t.Errorf("one said that it is done, and the root has %s", has)
				}
			case left[0] || left[1]:
				continue
			default:
				all(t, root, has)
			}
			shown++
		}
		if shown == 0 {
			t.Error("each run left a call behind, and nothing was shown")
		}
		a.must(t, 0, "--label", labelA)
		all(t, root, labelA)
	})
}
