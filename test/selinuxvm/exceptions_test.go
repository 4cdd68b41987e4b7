// SPDX-License-Identifier: Apache-2.0

package selinuxvm

// exceptions are the tests of the house that cannot pass where SELinux
// enforces, or in an emulated machine, each with its reason.
var exceptions = []exception{
	{
		`relabel/internal/sys (TestMend|TestVisit|TestXattr|TestXattrOpen|TestAttrHolds)(/.*)?`,
		`\\x00"|invalid argument`,
		"labels are compared to the byte, and the kernel ends each with a NUL; some are no contexts, which it refuses",
	},
	{
		`relabel/internal/sys TestLongValue`,
		`invalid argument`,
		"a value of thousands of bytes that is no context",
	},
	{
		`relabel TestDropinContract(/.*)?`,
		`x00|EINVAL|invalid argument|without btrfs`,
		"labels are compared to the byte, and the kernel ends each with a NUL; some are no contexts, which it refuses",
	},
	{
		`relabel TestEscape(/.*)?`,
		`strayed false`,
		"asks for ten turns in three seconds, which an emulated machine does not make",
	},
	{
		`relabel TestProcIsReal`,
		`permission denied`,
		"mounts on its own /proc/self/fd, which the policy lets nobody do",
	},
	{
		`relabel (TestEqualLabels|TestLongLabel)`,
		`x00|invalid argument`,
		"stores labels in forms that the kernel refuses, or puts in its own before they are read",
	},
	{
		`relabel TestSealHolds(/.*)?`,
		`permission denied`,
		"takes a label away, which the kernel allows nobody",
	},
	{
		`relabel TestUnlabelableRoot`,
		`Complete:true`,
		"has ramfs for a filesystem without labels, and the policy gives it some",
	},
	{
		`cmd/fastlabel TestHookInterrupted`,
		`executable file not found`,
		"builds the command with go, which is not there",
	},
	{
		`cmd/fastlabel TestHookTerminated`,
		`exit -1, not 1`,
		"waits until SIGTERM is caught, which Go's runtime does before the command listens: emulated, the signal comes in between",
	},
	{
		`cmd/fastlabel TestReal`,
		`does not bear labels|lsetxattr`,
		"a golden of a kernel with setxattrat and without SELinux, where /proc answers otherwise",
	},
}
