// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFigures holds the figures of README.md and docs to the raw data: each line of a page
// that has such a form, with a number for each %, has the numbers that were measured.
func TestFigures(t *testing.T) {
	order, quick, floor := measured(t, "order"), measured(t, "quick"), measured(t, "floor-300k")
	million := func(who string) (seconds, mib float64) {
		s := order.one(t, "ext4", "hash", 1e6, "wrong", 2, who)
		return quantile(s.wall, 0.5), float64(s.maxrss) / 1024
	}
	ours, oursMiB := million("fastlabel@fl-inplace")
	chcon, chconMiB := million("chcon")
	peer, peerMiB := million("go-selinux")
	check(t, "README.md", "| fastlabel | % | 1 |", ours)
	check(t, "README.md", "| `chcon -R -h` | % | % |", chcon, chcon/ours)
	check(t, "README.md", "| go-selinux, as in podman and CRI-O | % | % |", peer, peer/ours)

	const page = "docs/performance.md"
	means, least := map[string][]float64{}, math.Inf(1)
	for _, name := range []string{"go-selinux", "chcon", "setfiles"} {
		var row bytes.Buffer
		quick.peer(&row, name)
		n := numbers(t, regexp.MustCompile(`[\d.]+\b`).FindAllString(row.String(), 4)...)
		means[name], least = n[:3], min(least, n[3])
	}
	check(t, page, "| fastlabel | % | 1 | % |", ours, oursMiB)
	check(t, page, "| `chcon -R -h` | % | % | % |", append([]float64{chcon, chcon / ours, chconMiB}, means["chcon"]...)...)
	check(t, page, "| go-selinux | % | % | % |", append([]float64{peer, peer / ours, peerMiB}, means["go-selinux"]...)...)
	check(t, page, "| `setfiles -T 0` | % | % | % |", means["setfiles"]...)
	check(t, page, "The least was %:", least)
	var ratios []float64
	warm := measured(t, "warm")
	for c, contestants := range warm {
		if f, ok := warm.floor(c, "fastlabel"); ok {
			ratios = append(ratios, quantile(contestants["fastlabel"].wall, 0.5)/f)
		}
	}
	check(t, page, "% combinations, % entries | % times its time; at worst % |", float64(len(ratios)), 300_000, geometric(ratios), slices.Max(ratios))
	scale, fuse, ten := measured(t, "scale"), measured(t, "fuse"), measured(t, "ten")
	tmpfs := scale.one(t, "tmpfs", "hash", 1e7, "wrong", 2, "fastlabel")
	check(t, page, "of tmpfs, all wrong | % s, % MiB |", quantile(tmpfs.wall, 0.5), float64(tmpfs.maxrss)/1024)
	wide := func(who string) *series {
		return measured(t, "wide").one(t, "ext4", "hash", 9_900_000, "wrong", 2, who)
	}
	ample, small := wide("fastlabel"), wide("fastlabel-small")
	check(t, page, "all wrong | % s, % MiB; in little memory % s, % MiB |",
		quantile(ample.wall, 0.5), float64(ample.maxrss)/1024, quantile(small.wall, 0.5), float64(small.maxrss)/1024)
	check(t, page, "for each call to a server | % s; with one worker % s |", fuse.median(t, "slowfs", "flat", 20_000, "right", 0, "fastlabel"), fuse.median(t, "slowfs", "flat", 20_000, "right", 1, "fastlabel"))
	attached := func(fs, who string) float64 {
		s := measured(t, "turns")[cell{fs, "20G", "realistic", 100_000, "right", true, 0, 3_000}][who]
		return quantile(s.wall, 0.5)
	}
	check(t, page, "1 ms each | ext4 % s, XFS % s; go-selinux %, % s |", attached("ext4", "fastlabel"), attached("xfs", "fastlabel"), attached("ext4", "go-selinux"), attached("xfs", "go-selinux"))
	in := func(state, who string) float64 { return 1000 * ten.median(t, "ext4", "flat", 10, state, 2, who) }
	check(t, page, "ten files on ext4 | % ms right, % ms wrong; `chcon -R -h` % ms |", in("right", "fastlabel"), in("wrong", "fastlabel"), in("wrong", "chcon"))
	check(t, page, "the command takes % ms to start, and % ms for lock, seal and disk", in("right", "fastlabel"), in("wrong", "fastlabel")-in("right", "fastlabel"))
	check(t, "docs/comparison.md", "% ms with `chcon -R -h`, % ms with fastlabel", in("wrong", "chcon"), in("wrong", "fastlabel"))
	flat, flats := measured(t, "since").ratios(t, []string{"ext4", "xfs", "tmpfs", "btrfs"}, []string{"flat"}, 300_000, "marked", "fastlabel", "marked", "fastlabel-changed")
	many, manies := measured(t, "since").ratios(t, []string{"ext4", "xfs", "tmpfs", "btrfs"}, []string{"realistic"}, 300_000, "marked", "fastlabel", "marked", "fastlabel-changed")
	check(t, page, "one directory: % to % times as fast; many: % to % times", flat, flats, many, manies)
	stray, strays := floor.ratios(t, []string{"btrfs"}, shapes, 300_000, "stray", "fastlabel", "right", "fastlabel")
	check(t, page, "on btrfs: % to % times as long as all right", stray, strays)
	by := func(state, who string) float64 {
		return measured(t, "system").median(t, "ext4", "system", 300_000, state, 2, who)
	}
	right, wrong := by("right", "fastlabel"), by("wrong", "fastlabel")
	check(t, page, "by rules, ext4 | % s right, % s wrong; restorecon 3.4: %, % times", right, wrong, by("right", "restorecon")/right, by("wrong", "restorecon")/wrong)

	record := measured(t, "record")
	disk, disks := record.ratios(t, []string{"ext4", "xfs"}, []string{"flat", "realistic"}, 100_000, "wrong", "fastlabel-record", "wrong", "fastlabel-exact")
	_, memory := record.ratios(t, []string{"tmpfs"}, []string{"flat", "realistic"}, 100_000, "wrong", "fastlabel-record", "wrong", "fastlabel-exact")
	check(t, "docs/undo.md", "takes % to % times as long", disk, disks)
	check(t, "docs/undo.md", "% times at worst on tmpfs", memory)
}

// TestReaderFigures does that for docs/manners.md, from what a reader went through.
func TestReaderFigures(t *testing.T) {
	var out bytes.Buffer
	if err := tellWaits(&out, "results/2026-11-22-latency.jsonl"); err != nil {
		t.Fatal(err)
	}
	for row, flags := range map[string]string{
		"| nothing |": "nothing", "| `fastlabel` |": "fastlabel", "| `--nice` |": "fastlabel --nice",
		"| `--max-rate 20000` |":        "fastlabel --max-rate 20000",
		"| `--max-pressure 20` |":       "fastlabel --max-pressure 20",
		"| `--nice --max-rate 20000` |": "fastlabel --nice --max-rate 20000",
	} {
		m := regexp.MustCompile(`(?m)^\| ` + flags + ` \| \d+ \| (\S+) \| (\S+) \| \S+ \| (\S+) \| (\S+) \|`).FindStringSubmatch(out.String())
		if m == nil {
			t.Fatalf("nothing of %s in\n%s", flags, &out)
		}
		form, want := row+" % ms | % ms | % ms |", numbers(t, m[1:]...)
		if flags == "nothing" {
			want = want[:3]
		} else {
			form += " % |"
		}
		check(t, "docs/manners.md", form, want...)
	}
}

// TestTortureFigures does that for docs/tests.md, from what make torture printed.
func TestTortureFigures(t *testing.T) {
	text := readFile(t, "../test/torture/results/2026-11-22/full.txt")
	// sums adds up the runs and violations, and the control's, of the checks that begin so, in such a place.
	sums := func(check, where string) (total []float64) {
		total = make([]float64, 4)
		for line := range strings.Lines(text) {
			columns := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)
			if len(columns) < 7 || !strings.HasPrefix(columns[0], check) || where != "" && columns[1] != where {
				continue
			}
			for i, column := range []int{2, 3, 5, 6} {
				if columns[column] != "-" {
					total[i] += numbers(t, columns[column])[0]
				}
			}
		}
		if total[0] == 0 {
			t.Fatalf("no check is %s", check)
		}
		return total
	}
	// said is the number of a note.
	said := func(form string) float64 {
		return numbers(t, regexp.MustCompile(form).FindStringSubmatch(text)[1])[0]
	}
	const page = "docs/tests.md"
	s1, r1, r3, r4 := sums("S1", ""), sums("R1", ""), sums("R3", ""), sums("R4 creators", "")
	check(t, page, "five ways | % runs | % labels outside", s1[0], s1[1])
	check(t, page, "| % points | % false roots | go-selinux: % of % |", r1[0], r1[1], r1[3], r1[2])
	r2, on, without := sums("R2", ""), sums("R2", "ext4"), sums("R2", "btrfs")
	check(t, page, "| % points | % false roots | go-selinux: % of % on ext4; without the order % of % on btrfs", r2[0], r2[1], on[3], on[2], without[3], without[2])
	check(t, page, "| % faults | % | go-selinux: exit 0 with a wrong label in % of % |", r3[0], r3[1], r3[3], r3[2])
	check(t, page, "| % runs, % new entries | % unlabelled | go-selinux: % of % runs |", r4[0], said(`(\d+) created between`), r4[1], r4[3], r4[2])
	r5, r6, q1 := sums("R5 two", ""), sums("R6 a hung call: its waiter", ""), sums("Q1", "")
	check(t, page, "| % pairs | % mixed | go-selinux: % of % |", r5[0], r5[1], r5[3], r5[2])
	check(t, page, "| % runs | %: out within a second | go-selinux, `chcon`: still there in % of % |", r6[0], r6[1], r6[3], r6[2])
	check(t, page, "| % trees | % differ | a build that skips links: % of % |", q1[0], q1[1], q1[3], q1[2])
	check(t, page, "| % entries in one directory | % MiB of 64 | % | go-selinux: % MiB |", said(`one directory +tmpfs, (\d+) entries`), said(`(\d+) MiB of 64`), 0, said(`go-selinux: (\d+) MiB, 33`))
	check(t, page, "| % nested directories | % MiB of 128 |", said(`in the one before +tmpfs, (\d+) entries`), said(`(\d+) MiB of 128`))
}

// check holds the numbers of all lines of the page that have the form, one after the other, to
// those that were measured: each to its last digit that is no zero.
func check(t *testing.T, page, form string, want ...float64) {
	t.Helper()
	pattern := strings.ReplaceAll(regexp.QuoteMeta(form), "%", `(?:\*\*)?([\d.,]*\d)`)
	pattern = strings.ReplaceAll(strings.ReplaceAll(pattern, " ms ", `\sms(?:\*\*)?\s`), " ", `\s+`)
	var words []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(readFile(t, filepath.Join("..", page)), -1) {
		words = append(words, m[1:]...)
	}
	if len(words) != len(want) {
		t.Errorf("%s: %q has %q, for %.4g", page, form, words, want)
		return
	}
	for i, got := range numbers(t, words...) {
		digits := strings.ReplaceAll(words[i], ",", "")
		whole, decimals, _ := strings.Cut(digits, ".")
		unit := math.Pow10(-len(decimals))
		if decimals == "" && whole != "0" {
			unit = math.Pow10(len(whole) - len(strings.TrimRight(whole, "0")))
		}
		if math.Abs(got-want[i]) > 0.6*unit { // some were rounded twice
			t.Errorf("%s: %q: %s, and measured was %.4g", page, form, words[i], want[i])
		}
	}
}

// measured are the results of a file, but for runs that others disturbed.
func measured(t *testing.T, name string) board {
	t.Helper()
	files, err := filepath.Glob("results/*-" + name + ".jsonl")
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %q, %v", name, files, err)
	}
	records, err := readRecords(files)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := newBoard(records, false)
	return b
}

// one is what a contestant took in the one cell that is so.
func (b board) one(t *testing.T, fs, corpus string, n int, state string, threads int, who string) *series {
	t.Helper()
	var found *series
	for c, contestants := range b {
		if c.FS == fs && c.Corpus == corpus && c.N == n && c.State == state && c.Threads == threads && contestants[who] != nil {
			if found != nil {
				t.Fatalf("%s stands twice in %s, %s", who, fs, corpus)
			}
			found = contestants[who]
		}
	}
	if found == nil {
		t.Fatalf("no %s in %s, %s, %d, %s", who, fs, corpus, n, state)
	}
	return found
}

func (b board) median(t *testing.T, fs, corpus string, n int, state string, threads int, who string) float64 {
	t.Helper()
	return quantile(b.one(t, fs, corpus, n, state, threads, who).wall, 0.5)
}

// ratios are the least and the most of one contestant's time in a state over another's.
func (b board) ratios(t *testing.T, on, corpora []string, n int, state, who, than, whom string) (least, most float64) {
	t.Helper()
	least = math.Inf(1)
	for _, fs := range on {
		for _, corpus := range corpora {
			r := b.median(t, fs, corpus, n, state, 2, who) / b.median(t, fs, corpus, n, than, 2, whom)
			least, most = min(least, r), max(most, r)
		}
	}
	return least, most
}

func numbers(t *testing.T, words ...string) (all []float64) {
	t.Helper()
	for _, word := range words {
		n, err := strconv.ParseFloat(strings.ReplaceAll(word, ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
