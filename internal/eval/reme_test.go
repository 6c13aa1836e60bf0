package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestBesideReMe asks the real ReMe's search the same prompts, with the same
// memories as its daily notes, and wants the workspace to do as well in each
// category, but for a few prompts: it would rather say nothing. That costs most where
// prompts are made of common words, and in tasks. REME_CONTRACT_REME is ReMe's program.
func TestBesideReMe(t *testing.T) {
	program := os.Getenv("REME_CONTRACT_REME")
	switch {
	case program == "" && os.Getenv("REME_CONTRACT_REQUIRED") != "":
		t.Fatal("REME_CONTRACT_REME is not set")
	case program == "":
		t.Skip("REME_CONTRACT_REME is not set: no real ReMe to compare with")
	}
	ctx := t.Context()
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	notes, err := d.writeNotes(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := startReMe(t, program, dir, len(notes))
	r.notes = notes
	theirs, err := d.ask(ctx, "all", r.ask)
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.fill(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ours, err := d.ask(ctx, "all", e.ask)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	for _, part := range []string{"tune", "held"} {
		fmt.Fprintf(&table, "ReMe %s, %s\n", r.version, part)
		printTable(&table, tallies(ofPart(theirs, part)))
		fmt.Fprintf(&table, "the workspace, %s\n", part)
		printTable(&table, tallies(ofPart(ours, part)))
	}
	t.Log("\n" + table.String())
	for _, their := range tallies(theirs) {
		our, fewer := find(tallies(ours), their.name), 1.0
		if their.name == "common" || their.name == "task" {
			fewer = 3
		}
		if our.mrr < their.mrr-fewer || our.falseShare() > their.falseShare() {
			t.Errorf("%s: ReMe does better: MRR %.3f, false recall %.3f", their.name, their.share(their.mrr), their.falseShare())
		}
	}
}

// writeNotes makes a daily note of each turn and returns which memory each path
// stands for.
func (d *data) writeNotes(dir string) (map[string]string, error) {
	notes := map[string]string{}
	for _, m := range d.memories {
		for i, t := range m.turns {
			name := fmt.Sprintf("%s-%d", m.id, i)
			path := "daily/" + m.at.Format(time.DateOnly) + "/" + name + ".md"
			title := m.title
			if title == "" {
				title = t.user
			}
			text, err := json.Marshal(title) // also a YAML string
			if err != nil {
				return nil, err
			}
			body := fmt.Sprintf("---\ndescription: %s\nname: %s\nsession_id: %s\n---\n\n# %s\n\n%s\n", text, name, m.id, title, strings.TrimSpace(t.user+"\n\n"+t.assistant))
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(dir, path), []byte(body), 0o600); err != nil {
				return nil, err
			}
			notes[path] = m.id
		}
	}
	return notes, nil
}

// reme is a running ReMe.
type reme struct {
	url     string
	version string
	notes   map[string]string
}

func startReMe(t *testing.T, program, dir string, notes int) *reme {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	home := t.TempDir()
	var log bytes.Buffer
	cmd := exec.Command(program, "start", "workspace_dir="+dir, "service.backend=http", fmt.Sprint("service.port=", port), "enable_logo=false")
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, &log, &log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=127.0.0.1"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		select {
		case <-exited:
		case <-time.After(60 * time.Second):
			cmd.Process.Kill()
			<-exited
		}
	})
	r := &reme{url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for before := 0; ; {
		var status struct {
			Metadata struct {
				Health struct {
					Version    string
					Components struct {
						Index map[string]struct {
							Docs int `json:"n_docs"`
						} `json:"keyword_index"`
					}
				}
			}
		}
		try, done := context.WithTimeout(ctx, time.Minute)
		err := r.post(try, "/health_check", map[string]any{}, &status)
		done()
		h := status.Metadata.Health
		indexed := h.Components.Index["default"].Docs
		if err == nil && indexed >= notes-notes/100 && indexed == before {
			r.version = h.Version
			return r
		}
		before = indexed
		select {
		case <-exited:
			t.Fatalf("ReMe ended: %s", log.String())
		case <-ctx.Done():
			t.Fatalf("ReMe did not index %d notes in time: %v, %+v", notes, err, status)
		case <-time.After(5 * time.Second): // the check walks the index and keeps ReMe from filling it
		}
	}
}

func (r *reme) post(ctx context.Context, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(answer)
}

func (r *reme) ask(ctx context.Context, q query) (answer, error) {
	a := answer{query: q}
	var found struct {
		Metadata struct {
			Results []struct{ Path, Text string }
		}
	}
	err := r.post(ctx, "/search", map[string]any{"query": q.text, "limit": depth}, &found)
	for _, res := range found.Metadata.Results {
		a.items = append(a.items, r.notes[res.Path])
		a.chars += utf8.RuneCountInString(res.Text)
	}
	return a, err
}
