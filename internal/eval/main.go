// Command eval measures how well the memory recalls: on a set of 1,764 turns and
// notes of developers, and 1,379 prompts of which it is known what answers them.
//
//	go run ./internal/eval [-part tune|held|all] [-misses | -fit | -ablate]
//
// For each category of prompts the table has the share whose answer comes first
// (r@1) or among the first five (r@5), the mean reciprocal rank, nDCG, the share
// of the prompts without an answer that got something (false), and what is put
// into the conversation on average. The prompts in the files held-* are held back:
// nothing is tuned to them. -ablate prints what each part of recall is worth.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
)

func main() {
	part := flag.String("part", "tune", "prompts that are asked: tune, held or all")
	misses := flag.Bool("misses", false, "list the prompts that went wrong")
	fitting := flag.Bool("fit", false, "print the constants of a chance that fit the prompts best")
	ablating := flag.Bool("ablate", false, "print the figures without each part of recall in turn, as a table in Markdown; at the root of the module")
	row := flag.String("row", "", "print one row of that table, of this `name`")
	flag.Parse()
	if *ablating {
		root, err := os.Getwd()
		check(err)
		check(ablate(os.Stdout, root, *part))
		return
	}
	d, err := load()
	check(err)
	dir, err := os.MkdirTemp("", "reme-hook-eval-")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	e, err := d.fill(ctx, dir)
	check(err)
	defer e.Close()
	answers, err := d.ask(ctx, *part, e.ask)
	check(err)
	if *fitting {
		printFit(os.Stdout, answers)
		return
	}
	if *row != "" {
		printRow(os.Stdout, *row, tallies(answers))
		return
	}
	if *misses {
		for _, a := range answers {
			printMiss(a)
		}
	}
	printTable(os.Stdout, tallies(answers))
}

// ask puts the queries of a part to a memory.
func (d *data) ask(ctx context.Context, part string, ask func(context.Context, query) (answer, error)) ([]answer, error) {
	var answers []answer
	for _, q := range d.queries {
		if !q.in(part) {
			continue
		}
		a, err := ask(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.id, err)
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// in tells the queries of a part.
func (q query) in(part string) bool { return part == "all" || q.held == (part == "held") }

func ofPart(answers []answer, part string) []answer {
	return slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return !a.query.in(part) })
}

func printMiss(a answer) {
	switch {
	case a.query.answer == "" && len(a.items) > 0:
		fmt.Printf("%-12s %q got %v\n", a.query.category, a.query.text, a.items)
	case a.query.answer != "" && a.rank() != 1:
		fmt.Printf("%-12s %q wants %s at 1, not %d: %v\n", a.query.category, a.query.text, a.query.answer, a.rank(), a.items)
	default:
		return
	}
	for i, c := range a.looked {
		if i == 0 || c.id == a.query.answer {
			fmt.Printf("%14s %s: score %.2f, chance %.2f, %v: %s\n", "", c.id, c.Score, c.Chance, c.Terms, c.Verdict)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
