// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// compare writes as Markdown how two contestants compare in each cell: the
// ratio of medians, and the quartiles of the ratios within each round, which
// say how far to believe it.
func compare(w io.Writer, args []string) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	keepAll := flags.Bool("all", false, "keep runs that other programs disturbed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 3 {
		return errors.New("usage: bench compare [-all] NAME NAME FILE")
	}
	records, err := readRecords(flags.Args()[2:])
	if err != nil {
		return err
	}
	a, b := flags.Arg(0), flags.Arg(1)
	board, _ := newBoard(records, *keepAll)
	fmt.Fprintf(w, "| cell | %s, median s | %s, median s | ratio | within rounds, quartiles | rounds |\n|---|---|---|---|---|---|\n", a, b)
	var ratios []float64
	for _, c := range board.order() {
		x, y := board[c][a], board[c][b]
		if x == nil || y == nil {
			continue
		}
		ratio := quantile(y.wall, 0.5) / quantile(x.wall, 0.5)
		ratios = append(ratios, ratio)
		var pairs []float64
		for round, wall := range x.byRound {
			if other, ok := y.byRound[round]; ok {
				pairs = append(pairs, other/wall)
			}
		}
		fmt.Fprintf(w, "| %s | %.4g | %.4g | %.3f | %.3f–%.3f | %d |\n", c, quantile(x.wall, 0.5), quantile(y.wall, 0.5), ratio,
			quantile(pairs, 0.25), quantile(pairs, 0.75), len(pairs))
	}
	if len(ratios) == 0 {
		return fmt.Errorf("no cell with both %s and %s", a, b)
	}
	fmt.Fprintf(w, "\n%s takes %.3f of %s's time: geometric mean of %d cells, from %.3f to %.3f.\n", b, geometric(ratios), a,
		len(ratios), quantile(ratios, 0), quantile(ratios, 1))
	return nil
}
