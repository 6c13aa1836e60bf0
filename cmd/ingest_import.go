package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/redact"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// maxImport bounds a file that is imported, in bytes.
const maxImport = 256 << 10

func newIngestImportCommand(a *app) *cobra.Command {
	var dryRun, yes, asJSON bool
	var names []string
	for _, n := range knownNotes() {
		names = append(names, n.Name)
	}
	c := &cobra.Command{
		Use:   "import <memory> [<file or folder>...]",
		Short: "Bring in the notes of another memory",
		Long: `Bring in the notes that another memory keeps in plain files, each file as a note
that names it: ` + strings.Join(names, ", ") + `. Only the files that are
that memory's own are looked for, and those in the folders that are named, such as
a project's for claude-md. It says what it will write and asks; a file that has
changed since replaces its note, unless someone has edited that; the note of a file
that is gone stays. Secrets are taken out as always.`,
		Args: func(_ *cobra.Command, given []string) error {
			if len(given) == 0 {
				return usageError{fmt.Errorf("name a memory: %s", strings.Join(names, ", "))}
			}
			return nil
		},
		ValidArgs: names,
		RunE: func(c *cobra.Command, given []string) error {
			i := slices.Index(names, given[0])
			if i < 0 {
				return usageError{fmt.Errorf("unknown memory %q; known are %s", given[0], strings.Join(names, ", "))}
			}
			notes := knownNotes()[i]
			if notes.Refusal != "" {
				return errors.New(notes.Refusal)
			}
			if url := a.config.URL(); url != "" {
				return fmt.Errorf("the memory is at %s: run this with REME_SERVICE=embedded on the machine that keeps it", url)
			}
			list, err := imports(c, notes, given[1:])
			if err != nil {
				return err
			}
			return a.withWorkspace(func(ws *workspace.Workspace) error {
				return a.importNotes(c, ws, list, dryRun, yes, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be written")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// imported is a file in the output of ingest import --json.
type imported struct {
	Source string                `json:"source"`
	State  workspace.ImportState `json:"state,omitempty"`
	Note   string                `json:"note,omitempty"`   // its path in the workspace
	Reason string                `json:"reason,omitempty"` // why it is left out

	text workspace.Imported
}

// imports reads the files of a memory, or those that were named.
func imports(c *cobra.Command, notes hooks.Notes, named []string) ([]*imported, error) {
	list := []*imported{}
	add := func(path, cwd string, err error) {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // a file has one note
			path = filepath.Join(dir, filepath.Base(path))
		}
		if slices.ContainsFunc(list, func(i *imported) bool { return i.Source == path }) {
			return
		}
		i := &imported{Source: path}
		if err == nil {
			i.text, err = readImport(path)
			i.text.Cwd, i.text.Host = cwd, notes.Host
		}
		if err != nil {
			i.Reason = err.Error()
		}
		list = append(list, i)
	}
	folder := func(root, cwd string) (found bool) {
		notes.Root = func() string { return root }
		for log, err := range notes.List(c.Context()) {
			add(log.Path, cwd, err)
			found = true
		}
		return found
	}
	if len(named) == 0 {
		root := notes.Root()
		if !folder(root, "") {
			return nil, fmt.Errorf("no notes of %s in %s; name the files, or the folder that they are in", notes.Title, root)
		}
	}
	for _, name := range named {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			add(path, "", nil)
			continue
		}
		// A project may be a stranger's, and lead to what is none of its business.
		notes.Follow = func(file string) bool { return hooks.InFolder(file, path) }
		if !folder(path, path) {
			return nil, fmt.Errorf("no notes of %s in %s; it has them in %s", notes.Title, path, strings.Join(notes.Patterns, ", "))
		}
	}
	return list, nil
}

func readImport(path string) (in workspace.Imported, err error) {
	f, err := os.Open(path)
	if err != nil {
		return in, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return in, err
	}
	if !st.Mode().IsRegular() {
		return in, errors.New("not a file")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxImport+1))
	if err != nil {
		return in, err
	}
	if len(raw) > maxImport {
		return in, errors.New("longer than 256 KiB")
	}
	text := hooks.Clean(string(raw))
	if strings.ContainsRune(text, 0) {
		return in, errors.New("not a text")
	}
	if strings.TrimSpace(text) == "" {
		return in, errors.New("empty")
	}
	if text == redact.Private {
		return in, errors.New("private")
	}
	return workspace.Imported{Source: path, Content: text, At: st.ModTime()}, nil
}

// importNotes says what becomes of each file, and writes the notes if it may.
func (a *app) importNotes(c *cobra.Command, ws *workspace.Workspace, list []*imported, dryRun, yes, asJSON bool) error {
	write := 0
	for _, i := range list {
		if i.Reason == "" {
			note, state, err := ws.Import(c.Context(), i.text, false)
			if err != nil {
				return err
			}
			i.State, i.Note = state, note.Path
			if state == workspace.ImportNew || state == workspace.ImportChanged {
				write++
			}
		}
		if !asJSON {
			a.printImport(i)
		}
	}
	if !dryRun && write > 0 {
		if !yes {
			if err := a.confirmWrite(fmt.Sprintf("%d notes", write)); err != nil {
				return err
			}
		}
		for _, i := range list {
			if i.Reason != "" {
				continue
			}
			if _, _, err := ws.Import(c.Context(), i.text, true); err != nil {
				return err
			}
		}
		if !asJSON {
			fmt.Fprintf(a.stdout, "wrote %d notes\n", write)
		}
	}
	if asJSON {
		return a.printJSON(map[string]any{"version": 1, "dry_run": dryRun, "files": list})
	}
	return nil
}

func (a *app) printImport(i *imported) {
	what := map[workspace.ImportState]string{
		workspace.ImportNew:     "becomes",
		workspace.ImportChanged: "has changed, and replaces",
		workspace.ImportSame:    "is already in",
		workspace.ImportEdited:  "has changed, and so was its note: delete that to import it again:",
	}[i.State]
	if i.Reason != "" {
		fmt.Fprintf(a.stdout, "%s  left out: %s\n", i.Source, i.Reason)
		return
	}
	fmt.Fprintf(a.stdout, "%s  %s %s\n", i.Source, what, i.Note)
}
