// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// Order is a filesystem's guarantee that labels come to the disk as they were written. A root that
// has the label must not come to the disk before an entry's label.
type Order uint8

const (
	// Unordered: it promises nothing, or is not known. To have an order is to wait for the disk.
	Unordered Order = iota
	// Transactions: btrfs has the order of transactions, but fsync takes one file to the disk
	// before the transaction in which it was changed.
	Transactions
	// Ordered: ext4 with a journal and XFS, which replay changes of attributes in the order in
	// which they were made. fsync takes all earlier changes along. So does the fast commit
	// of ext4: a transaction that changed an attribute is committed whole.
	Ordered
	// Volatile: tmpfs.
	Volatile
)

// OrderOf returns the order of the filesystem that the open directory fd is in, of this kind. It
// asks each time: a device may have another filesystem by the next.
func OrderOf(fd int, kind int64) Order {
	switch kind {
	case sys.Tmpfs:
		return Volatile
	case sys.XFS:
		return Ordered
	case sys.Btrfs:
		return Transactions
	case sys.Ext4:
		e := sys.HasJournal(fd)
		if e == 0 || e != syscall.ENODEV && journalTask(fd) {
			return Ordered
		}
	}
	return Unordered
}

// journalTask reports whether sysfs has a number for the task of the journal of the ext4 that fd is
// in, for a kernel before 5.14 and a caller without CAP_SYS_ADMIN. Without a journal it has
// "<none>", in another process namespace than the task's 0, and before Linux 5.1 nothing.
func journalTask(fd int) bool {
	st, _ := sys.Fstatx(fd) // after an error there is no such device
	device, _ := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", st.Dev>>32, uint32(st.Dev)))
	task, _ := os.ReadFile(filepath.Join("/sys/fs/ext4", filepath.Base(device), "journal_task"))
	_, err := strconv.Atoi(strings.TrimSpace(string(task)))
	return err == nil
}

// A barrier is a call on a directory, and its name. The zero one does nothing.
type barrier struct {
	op   string
	call func(fd int) sys.Errno
}

var (
	syncAll     = barrier{"syncfs", sys.Syncfs}
	syncOne     = barrier{"fsync", sys.Fsync}
	transaction = barrier{"BTRFS_IOC_WAIT_SYNC", endTransaction}
)

var barriers = [...]struct {
	all  barrier // what was written to the filesystem so far comes before what is written later
	one  barrier // what was written to the directory itself does
	disk barrier // all of it is on the disk
}{
	Unordered:    {syncAll, syncOne, syncAll},
	Transactions: {transaction, syncOne, transaction},
	Ordered:      {disk: syncAll},
	Volatile:     {},
}

// ToDisk has what was written to the filesystem of fd on its disk. The string is the call that failed.
func (o Order) ToDisk(fd int, at func(call string)) (string, sys.Errno) {
	b := barriers[o].disk
	return b.op, b.on(fd, at)
}

func (b barrier) on(fd int, at func(call string)) sys.Errno {
	if b.call == nil {
		return 0
	}
	at(b.op)
	defer at("")
	return b.call(fd)
}

// endTransaction ends the transaction of btrfs that is under way, which has the metadata, and
// waits for it, but not for other programs' data.
func endTransaction(fd int) sys.Errno {
	switch e := sys.EndTransaction(fd); e {
	case syscall.ENOTTY, syscall.EPERM, syscall.EACCES, syscall.ENOSYS: // a policy that allows no ioctl
		return sys.Syncfs(fd)
	default:
		return e
	}
}
