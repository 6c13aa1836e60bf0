package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/spool"
)

// choose picks the records that are named, in the order of the list; all of them
// if none is.
func choose(entries []spool.Entry, names []string) ([]spool.Entry, error) {
	if len(names) == 0 {
		return entries, nil
	}
	named := map[[3]string]bool{}
	id := func(e spool.Entry) [3]string { return [3]string{string(e.State), string(e.Key), e.Name} }
	for _, name := range names {
		e, err := find(entries, name)
		if err != nil {
			return nil, err
		}
		named[id(e)] = true
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e spool.Entry) bool { return !named[id(e)] }), nil
}

// find returns the record with a name, as spool list prints it, or with an
// unambiguous beginning of it. The session's key may stand before it.
func find(entries []spool.Entry, name string) (spool.Entry, error) {
	found := slices.DeleteFunc(slices.Clone(entries), func(e spool.Entry) bool {
		return name == "" || !strings.HasPrefix(e.Name, name) && !strings.HasPrefix(string(e.Key)+"/"+e.Name, name)
	})
	switch len(found) {
	case 0:
		return spool.Entry{}, fmt.Errorf("no record is named %q; 'reme-hook spool list' lists them", name)
	case 1:
		return found[0], nil
	}
	return spool.Entry{}, fmt.Errorf("%d records begin with %q; write more of the name, or <session key>/<name>", len(found), name)
}

func newSpoolShowCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show <record>",
		Short: "Print a waiting record with its text",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, names []string) error {
			entries, err := a.spool().List()
			if err != nil {
				return err
			}
			e, err := find(entries, names[0])
			if err != nil {
				return err
			}
			if asJSON {
				line, err := a.exported(e)
				if err != nil {
					return err
				}
				return a.printJSON(line)
			}
			return a.printRecord(e)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the record as JSON")
	return c
}

func (a *app) printRecord(e spool.Entry) error {
	s := a.spooled(e)
	fmt.Fprintf(a.stdout, "%s/%s\n%s, %d bytes, %s old\n", s.Key, s.Name, s.State, s.Bytes, a.age(e))
	if s.Reason != "" {
		fmt.Fprintln(a.stdout, "reason:", s.Reason)
	}
	if e.Damage != "" {
		data, err := a.spool().Raw(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "\n%s\n", strings.TrimRight(string(data), "\n"))
		return nil
	}
	fmt.Fprintf(a.stdout, "session: %s of %s\n", e.Turn.ID, e.Turn.Host)
	for _, l := range [][2]string{{"turn", string(e.Turn.Turn)}, {"folder", e.Turn.Cwd}, {"flush", string(e.Turn.Flush)}} {
		if l[1] != "" {
			fmt.Fprintf(a.stdout, "%s: %s\n", l[0], l[1])
		}
	}
	for _, m := range e.Turn.Events {
		fmt.Fprintf(a.stdout, "\n%s: %s\n", m.Role, m.Content)
	}
	if n := e.Turn.Note; n != nil {
		fmt.Fprintf(a.stdout, "\nnote: %s\n%s\n", n.Title, n.Content)
	}
	return nil
}

// exported is a record in the output of spool export and spool show --json.
type exported struct {
	Version int             `json:"version"`
	State   spool.State     `json:"state"`
	Key     string          `json:"key"`
	Name    string          `json:"name"`
	Record  json.RawMessage `json:"record,omitempty"` // as it lies on the disk
	Damage  string          `json:"damage,omitempty"` // why it cannot be read
	Raw     string          `json:"raw,omitempty"`    // its bytes, if it is damaged
}

func (a *app) exported(e spool.Entry) (exported, error) {
	data, err := a.spool().Raw(e)
	out := exported{Version: 1, State: e.State, Key: string(e.Key), Name: e.Name, Damage: e.Damage}
	if e.Damage != "" {
		out.Raw = string(data)
	} else {
		out.Record = data
	}
	return out, err
}

func newSpoolExportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "export [<record>...]",
		Short: "Print records with their text as JSON, one a line",
		Long:  "Print all records, or those that are named, with their text: one JSON object a line.",
		RunE: func(_ *cobra.Command, names []string) error {
			entries, err := a.spool().List()
			if err != nil {
				return err
			}
			if entries, err = choose(entries, names); err != nil {
				return err
			}
			enc := json.NewEncoder(a.stdout)
			enc.SetEscapeHTML(false)
			for _, e := range entries {
				line, err := a.exported(e)
				if err == nil {
					err = enc.Encode(line)
				}
				if err != nil {
					return fmt.Errorf("export %s: %w", e.Name, err)
				}
			}
			return nil
		},
	}
}

type spoolDropOptions struct {
	quarantined bool
	yes         bool
}

func newSpoolDropCommand(a *app) *cobra.Command {
	var o spoolDropOptions
	c := &cobra.Command{
		Use:   "drop <record>... | --quarantined",
		Short: "Delete records for good",
		Long: `Delete records for good, delivered or not. 'reme-hook spool export' keeps a copy.
On a terminal it asks first; elsewhere it wants --yes.`,
		RunE: func(c *cobra.Command, names []string) error {
			return a.runSpoolDrop(c.Context(), o, names)
		},
	}
	c.Flags().BoolVar(&o.quarantined, "quarantined", false, "all that is in quarantine")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return c
}

func (a *app) runSpoolDrop(ctx context.Context, o spoolDropOptions, names []string) error {
	if o.quarantined == (len(names) > 0) {
		return usageError{errors.New("name the records to drop, or say --quarantined; 'reme-hook spool list' lists them")}
	}
	private()
	entries, err := a.spool().List()
	if err != nil {
		return err
	}
	if entries, err = choose(entries, names); err != nil {
		return err
	}
	if o.quarantined {
		entries = slices.DeleteFunc(entries, func(e spool.Entry) bool { return e.State != spool.Quarantined })
	}
	if len(entries) == 0 {
		fmt.Fprintln(a.stdout, "nothing to drop")
		return nil
	}
	if !o.yes {
		if err := a.confirmDrop(entries); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := a.spool().Drop(ctx, e); err != nil {
			return fmt.Errorf("drop %s: %w", e.Name, err)
		}
		fmt.Fprintln(a.stdout, "dropped", e.Name)
	}
	return nil
}

func (a *app) confirmDrop(entries []spool.Entry) error {
	if !isatty.IsTerminal(a.stdin.Fd()) {
		return usageError{errors.New("nothing was dropped: what is dropped is lost, so say --yes")}
	}
	for _, e := range entries {
		fmt.Fprintf(a.stderr, "%-11s  %s  %d events  %s\n", e.State, e.Name, len(e.Turn.Events), e.Key)
	}
	fmt.Fprint(a.stderr, "What is dropped is lost. Go on? [y/N] ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was dropped")
}
