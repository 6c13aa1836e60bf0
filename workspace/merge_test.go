package workspace

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/reme"
)

// other is a memory elsewhere.
type other struct {
	found []reme.Passage
	notes map[client.SessionKey][]string
	slow  bool
}

func (o *other) Searches() bool { return true }

func (o *other) Search(ctx context.Context, _ string, _ int) []reme.Passage {
	if o.slow {
		<-ctx.Done()
		return nil
	}
	return o.found
}

func (o *other) Read(context.Context, string, int, int) (string, error) {
	return "the note\x1b[31m\n", nil
}

func (o *other) Notes(key client.SessionKey) []string { return o.notes[key] }

func (o *other) Extracts(client.SessionKey, time.Time) bool { return false }

// Passages of the other memory are recalled if they have what is rare in the query,
// and say more than the turns that they were made from.
func TestMerge(t *testing.T) {
	t.Parallel()
	o := &other{notes: map[client.SessionKey][]string{testSession("told").Key(): {"daily/2026-11-30/told.md"}, testSession("running").Key(): {"daily/2026-11-30/running.md"}}}
	w, err := Open(t.TempDir(), Options{Now: func() time.Time { return noon }, Location: time.UTC, Elsewhere: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	mustAppend(t, w, testSession("told"), testTurn(1, "The staging quokka listens on port 6543.", "Noted.")...)
	for name, c := range map[string]struct {
		query, path, text string
		want              []string // paths, a dialog as "turn"
	}{
		"new":          {"osprey release train", "daily/2026-11-30/a.md", "The release train of Osprey leaves in May.", []string{"upstream/daily/2026-11-30/a.md"}},
		"noise":        {"when does the osprey release train leave", "daily/2026-11-30/a.md", "The weather was fine when they did leave.", nil},
		"echo":         {"staging quokka port", "daily/2026-11-30/told.md", "Facts: the staging quokka has the port 6543, as was told.", []string{"turn"}},
		"more":         {"staging quokka port owner", "daily/2026-11-30/told.md", "Facts: the owner of the staging quokka port is Ottokar.", []string{"turn", "upstream/daily/2026-11-30/told.md"}},
		"of another":   {"staging quokka port", "daily/2026-11-30/b.md", "Elsewhere the staging quokka had the port 7000 for a year.", []string{"turn", "upstream/daily/2026-11-30/b.md"}},
		"copy":         {"staging quokka port", "daily/2026-11-30/b.md", "The staging quokka listens on port 6543. Noted.", []string{"turn"}},
		"running":      {"osprey release train", "daily/2026-11-30/running.md", "The release train of Osprey leaves in May.", nil},
		"list of days": {"osprey release train", "daily/2026-11-30.md", "- [[daily/2026-11-30/a.md]] Osprey release train", nil},
		"digest":       {"osprey release train", "digest/a.md", "The release train of Osprey\x00 leaves in May.", []string{"upstream/digest/a.md"}},
	} {
		o.found = []reme.Passage{{Path: c.path, Start: 3, End: 5, Text: c.text}}
		req := client.RecallRequest{Query: c.query, Host: testSession("running").Host, ScopeID: testSession("running").Scope, Session: "running"}
		res, err := w.Recall(t.Context(), req)
		var got []string
		for _, it := range res.Items {
			if strings.HasPrefix(it.Path, dialogDir) {
				it.Path = "turn"
			} else if it.StartLine != 3 || it.EndLine != 5 || strings.Contains(it.Snippet, "\x00") {
				t.Errorf("%s: %+v", name, it)
			}
			got = append(got, it.Path)
			req.Exclude = append(req.Exclude, it.ID)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
		// What was shown is not shown again, by neither.
		if name == "copy" {
			continue // a copy in another conversation is known only beside the turn
		}
		if res, _ := w.Recall(t.Context(), req); len(res.Items) > 0 {
			t.Errorf("%s: shown again: %+v", name, res.Items)
		}
	}
	o.slow = true
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if res, err := w.Recall(ctx, client.RecallRequest{Query: "staging quokka port"}); err != nil || len(res.Items) != 1 {
		t.Errorf("beside a slow one: %+v, %v", res, err)
	}
	if text, err := w.Read(t.Context(), "reme://upstream/daily/2026-11-30/a.md#L3-L5", 0, 0); err != nil || text != "the note[31m" {
		t.Errorf("%q, %v", text, err)
	}
}

// What a ReMe on our own workspace keeps of a session is no second session, and its
// note stands in for a generated one once the turns are gone.
func TestMirror(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("told")
	mustAppend(t, w, s, testTurn(1, "The staging quokka listens on port 6543.", "Noted.")...)
	if _, err := w.Flush(t.Context(), client.FlushRequest{Session: s, Reason: client.SessionEnd}); err != nil {
		t.Fatal(err)
	}
	copied := testTurn(1, "The staging quokka listens on port 6543.", "Noted.")
	var rows []byte
	for _, e := range copied {
		var err error
		if rows, err = appendRow(rows, s, "", e); err != nil {
			t.Fatal(err)
		}
	}
	mirrored := dialogDir + "/" + s.RemoteID() + ".jsonl"
	for rel, text := range map[string]string{
		mirrored:                        string(rows),
		"daily/2026-11-30/extracted.md": "---\nname: extracted\nsession_id: " + s.RemoteID() + "\n---\n\nThe staging quokka has the port 6543.\n",
	} {
		if err := w.putNote(context.Background(), rel, text); err != nil {
			t.Fatal(err)
		}
	}
	paths := func() []string {
		res, err := w.Recall(t.Context(), client.RecallRequest{Query: "staging quokka port 6543"})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, it := range res.Items {
			out = append(out, it.Path)
		}
		return out
	}
	if got := paths(); !slices.Equal(got, []string{dialogPath(s)}) {
		t.Errorf("recalled %q", got)
	}
	if list, err := w.Sessions(t.Context(), 0); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if st := mustStats(t, w); st.Sessions != 1 || st.Turns != 1 || st.Notes != 2 {
		t.Errorf("%+v", st)
	}
	if err := removeAll(w, dialogPath(s), mirrored); err != nil {
		t.Fatal(err)
	}
	if got := paths(); !slices.Equal(got, []string{"daily/2026-11-30/extracted.md"}) {
		t.Errorf("without the turns: %q", got)
	}
}

func removeAll(w *Workspace, files ...string) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, os.Remove(w.abs(f)))
	}
	return errors.Join(errs...)
}
