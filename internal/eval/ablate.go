package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ablation takes a part of recall out, by what is written in the place of its code.
// Nothing is fitted again for its absence.
type ablation struct {
	name  string
	edits []edit
}

type edit struct{ file, old, new string }

// source is where the files of an edit are, seen from the root of the module.
const source = "workspace"

var ablations = []ablation{
	{"everything", nil},
	{"words of any talk weigh like others", []edit{{"common.go", "func isEverydayWord(w string) bool {", "func isEverydayWord(w string) bool {\n\treturn false"}}},
	{"no least chance", []edit{{"chance.go", "leastChance = 0.5", "leastChance = 0"}}},
	{"tasks are taken for questions", []edit{{"query.go", "&query{task: isTask(text)}", "&query{}"}}},
	{"overlapping pairs of characters are full evidence", []edit{{"query.go", "if number > 0 {", "if false {"}}},
	{"pairs of characters where two words meet count", []edit{{"query.go", "if meets(t) {", "if false && meets(t) {"}}},
	{"rare identifiers are no answer alone", []edit{{"recall.go", "exactFloor      = 0.4", "exactFloor      = 0"}}},
	{"no correction of spellings, no compounds", []edit{{"query.go", "pairs := q.pairs()", "pairs := q.pairs()[:0]"}, {"spelling.go", "for _, w := range q.spelled {", "for _, w := range q.spelled[:0] {"}}},
	{"no corrections at all", []edit{{"recall.go", "\tr.supersede(hits)\n", ""}}},
	{"what may be a correction has no place", []edit{{"correction.go", "return common >= commonSubject, true", "return common >= commonSubject, false"}}},
	{"no cut of what is far behind the best", []edit{{"recall.go", "leastOfBest     = 0.5", "leastOfBest     = 0"}}},
	{"no preference for the project", []edit{{"recall.go", "sameFactor  = 1.15", "sameFactor  = 1"}}},
	{"what the reply says weighs like what the user said", []edit{{"recall.go", "replyFactor = 0.8", "replyFactor = 1"}}},
	{"short questions are asked alone", []edit{{"context.go", "shortQuestion = 2.5", "shortQuestion = -1"}}},
	{"near copies are not merged", []edit{{"recall.go", "if float64(len(a)) < 0.85*float64(len(b)) {", "if true {"}}},
}

// apply returns the files that the ablation changes, by their path, as they are then.
func (a ablation) apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range a.edits {
		path := filepath.Join(root, source, e.file)
		text, known := changed[path]
		if !known {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = strings.ReplaceAll(string(data), "\r\n", "\n")
		}
		if strings.Count(text, e.old) != 1 {
			return nil, fmt.Errorf("%s: %q is not once in %s", a.name, e.old, path)
		}
		changed[path] = strings.Replace(text, e.old, e.new, 1)
	}
	return changed, nil
}

// ablate prints a row for each ablation: this command is built anew with what the
// ablation changes, and asks the prompts of the part.
func ablate(w io.Writer, root, part string) error {
	dir, err := os.MkdirTemp("", "reme-hook-ablate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(w, rowHeader)
	for _, a := range ablations {
		changed, err := a.apply(root)
		if err != nil {
			return err
		}
		replace := map[string]string{}
		for path, text := range changed {
			replace[path] = filepath.Join(dir, filepath.Base(path))
			if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
				return err
			}
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return err
		}
		list := filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(list, overlay, 0o600); err != nil {
			return err
		}
		cmd := exec.Command("go", "run", "-overlay", list, "./internal/eval", "-part", part, "-row", a.name)
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, w, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

const rowHeader = `| without | r@1 | r@5 | typos r@5 | compounds r@5 | corrected r@1 | project r@1 | follow-up r@5 | paraphrase r@5 | task r@5 | false | items | characters |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`

// printRow prints the tallies as a row of a table in Markdown.
func printRow(w io.Writer, name string, list []*tally) {
	all := find(list, allButTypos)
	fmt.Fprintf(w, "| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.1f%% | %.2f | %.0f |\n", name, all.recall1(), all.recall5(),
		find(list, "typo").recall5(), find(list, "compound").recall5(), find(list, "corrected").recall1(), find(list, "project").recall1(), find(list, "followup").recall5(),
		find(list, "paraphrase").recall5(), find(list, "task").recall5(), 100*find(list, nothing).falseShare(), all.share(float64(all.items)), all.share(all.chars))
}
