// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const unitFile = "deploy/systemd/fastlabel@.service"

// exposure is how exposed systemd-analyze may find the unit, of 100. Version 252 says
// 44 of the unit as it is, and offline counts neither capabilities nor calls.
const exposure = "45"

// instance writes the unit for a volume, with the built program, where
// systemd-analyze finds it.
func instance(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fastlabel@srv-volume.service")
	text = strings.Replace(text, "/usr/bin/fastlabel", buildProgram(t), 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// systemd finds nothing wrong with the unit, and little that is left open; what is
// wrong on purpose it finds.
func TestUnit(t *testing.T) {
	text := read(t, unitFile)
	verify := func(text string) (string, error) {
		out, err := exec.Command("systemd-analyze", "verify", "--man=no", instance(t, text)).CombinedOutput()
		return string(out), err
	}
	security := func(text string) (string, error) {
		out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold="+exposure, instance(t, text)).CombinedOutput()
		return string(out), err
	}
	if out, err := verify(text); err != nil || out != "" {
		t.Errorf("verify: %v: %s", err, out)
	}
	if out, err := security(text); err != nil {
		t.Errorf("security: %v: %s", err, out)
	}
	if out, _ := verify(strings.Replace(text, "ProtectSystem", "ProtectSytem", 1)); !strings.Contains(out, "ProtectSytem") {
		t.Errorf("a key that there is not passes: %q", out)
	}
	if out, err := security("[Service]\nExecStart=/usr/bin/fastlabel\n"); err == nil {
		t.Errorf("a unit that asks for nothing passes: %s", out)
	}
}

// With the unit's capabilities, and all read-only but what the unit says, the
// program labels what belongs to another in the fastest way, and without one of them
// it does not. There need be no systemd here: setpriv and mounts do what it would do. Its filter of
// system calls is not tried.
func TestUnitRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		if strings.Contains(os.Getenv("FASTLABEL_PROMISE"), "root") {
			t.Fatal("root was promised")
		}
		t.Skip("needs root")
	}
	program := buildProgram(t)
	all := strings.Fields(strings.ToLower(strings.ReplaceAll(find(t, unitFile, `(?m)^CapabilityBoundingSet=(.*)$`)[0], "CAP_", "")))
	if out, err := confined(t, program, all); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for i, without := range all {
		fewer := append(append([]string{}, all[:i]...), all[i+1:]...)
		if out, err := confined(t, program, fewer); err == nil {
			t.Errorf("not needed: %s: %s", without, out)
		}
	}
}

// confined labels a volume and exits with 0 if all of it has the label then.
func confined(t *testing.T, program string, capabilities []string) (string, error) {
	t.Helper()
	const script = `
volume=$1 program=$2 set=$3
mount -t tmpfs none "$volume"
mkdir -p "$volume/d/nested" /run/fastlabel
mount -t tmpfs none "$volume/d/nested"
touch "$volume/f" "$volume/d/nested/g"
chown -R 1000:1000 "$volume"
chmod 000 "$volume/f" "$volume/d"
mount --bind /run/fastlabel /run/fastlabel
findmnt -rno TARGET | while IFS= read -r target; do
    case $(printf %b "$target") in
    "$volume" | "$volume"/* | /run/fastlabel | /proc | /proc/* | /sys | /sys/* | /dev | /dev/*) ;;
    *) mount -o remount,bind,ro "$(printf %b "$target")" || exit 90 ;;
    esac
done
if touch "$program.new" 2>/dev/null; then exit 91; fi
setpriv --bounding-set "$set" --inh-caps "$set" -- "$program" --json --skip root -- "$volume" | tee /dev/fd/2 | grep -c '"way":"clone/' || exit
exec "$program" verify -v -- "$volume"
`
	set := "-all"
	for _, c := range capabilities {
		set += ",+" + c
	}
	out, err := exec.Command("unshare", "--mount", "--propagation", "private", "bash", "-euo", "pipefail", "-c", script, "confined", t.TempDir(), program, set).CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "status 9") {
		t.Fatalf("the volume could not be made: %v: %s", err, out)
	}
	return string(out), err
}
