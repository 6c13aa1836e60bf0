package doctor

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/redact"
	"github.com/agentscope-ai/reme-hook/spool"
)

// Bundle writes an archive for those who are to help: versions, the configuration
// without its values, the findings, the end of the log, and the names and sizes
// of files. It has no text of a turn, no secret, no value of the environment, and
// names sessions by the end of their keys only.
func (d Doctor) Bundle(w io.Writer, version string, values []config.Value, findings []Finding) error {
	s := d.scrubber()
	z := zip.NewWriter(w)
	add := func(name, text string) error {
		f, err := z.CreateHeader(&zip.FileHeader{Name: "reme-hook/" + name, Method: zip.Deflate, Modified: d.Now()})
		if err == nil {
			_, err = io.WriteString(f, text)
		}
		return err
	}
	addJSON := func(name string, v any) error {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		return add(name, string(text)+"\n")
	}
	scrubbed := slices.Clone(findings)
	for i := range scrubbed {
		if scrubbed[i].Code == configCode { // config.json has what can be said of it
			scrubbed[i].What = "the configuration has something that cannot be used"
		}
		scrubbed[i].What, scrubbed[i].Do = s.text(scrubbed[i].What), s.text(scrubbed[i].Do)
	}
	type problem struct {
		Key    string `json:"key,omitempty"` // not of those that are unknown
		Origin string `json:"origin"`
	}
	problems := []problem{}
	for _, p := range d.Problems {
		if !slices.ContainsFunc(config.Keys(), func(k config.Key) bool { return k.Name == p.Key }) {
			p.Key = ""
		}
		problems = append(problems, problem{p.Key, p.Origin})
	}
	for _, step := range []func() error{
		func() error {
			return addJSON("version.json", map[string]any{
				"version": 1, "reme_hook": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "at": d.Now().UTC().Format(time.RFC3339),
			})
		},
		func() error { return addJSON("doctor.json", Report(scrubbed, nil)) },
		func() error {
			return addJSON("config.json", map[string]any{"version": 1, "values": plain(values), "problems": problems})
		},
		func() error { return addJSON("spool.json", map[string]any{"version": 1, "records": d.records()}) },
		func() error { return add("files.txt", s.text(d.files())) },
		func() error { return add("hook.jsonl", s.lines(string(tail(d.Log, logTail)))) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	return z.Close()
}

// plain leaves of values what cannot tell anything: switches, numbers, and what
// was not set by anybody.
func plain(values []config.Value) []config.Value {
	out := slices.Clone(values)
	for i, v := range out {
		switch v.Value.(type) {
		case bool, int:
			continue
		}
		if v.Origin != "default" || v.Name == "workspace" { // the default has the user's name
			out[i].Value = "(" + v.Origin + ")"
		}
	}
	return out
}

// record is a record of the spool as a bundle tells of it.
type record struct {
	State spool.State `json:"state"`
	Key   string      `json:"key"`
	Name  string      `json:"name"`
	Bytes int64       `json:"bytes"`
	Age   float64     `json:"age_seconds,omitempty"`
}

func (d Doctor) records() []record {
	out := []record{}
	entries, _ := d.Spool.List() // an error is among the findings
	for _, e := range entries {
		r := record{State: e.State, Key: shortKey(string(e.Key)), Name: e.Name, Bytes: e.Bytes}
		if !e.Turn.UpdatedAt.IsZero() {
			r.Age = d.Now().Sub(e.Turn.UpdatedAt).Seconds()
		}
		out = append(out, r)
	}
	return out
}

// files lists what lies in the folder of the integrations, and how much in each
// folder of the workspace: names of notes say what they are about.
func (d Doctor) files() string {
	var b strings.Builder
	d.own(func(path string, st fs.FileInfo) {
		rel, err := filepath.Rel(d.Env.IntegrationsDir, path)
		if err != nil {
			return
		}
		fmt.Fprintf(&b, "%s %10d %s integrations/%s\n", st.Mode(), st.Size(), st.ModTime().UTC().Format(time.RFC3339), filepath.ToSlash(rel))
	})
	type folder struct {
		files int
		bytes int64
	}
	folders := map[string]folder{}
	n := 0
	_ = filepath.WalkDir(d.Config.Workspace, func(path string, e fs.DirEntry, err error) error {
		if n++; n > maxFiles {
			return filepath.SkipAll
		}
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		st, err := e.Info()
		rel, relErr := filepath.Rel(d.Config.Workspace, path)
		if err != nil || relErr != nil {
			return nil
		}
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if !slices.Contains([]string{"session", "daily", "digest", "metadata"}, top) {
			top = "(others)"
		}
		f := folders[top]
		f.files++
		f.bytes += st.Size()
		folders[top] = f
		return nil
	})
	for _, top := range []string{"session", "daily", "digest", "metadata", "(others)"} {
		fmt.Fprintf(&b, "%d files, %d bytes in workspace/%s\n", folders[top].files, folders[top].bytes, top)
	}
	return b.String()
}

// keyForm is what [client.Session.Key] makes: host, slugs and twelve digits. The
// slugs are the host's own names of things, which may say something.
var keyForm = regexp.MustCompile(`\b([a-z][a-z-]{0,19}?)-[A-Za-z0-9-]*-([0-9a-f]{12})\b`)

// shortKey names a session by its host and the end of its key.
func shortKey(text string) string { return keyForm.ReplaceAllString(text, "$1-…-$2") }

// scrubber takes out of a text what it should not have in the first place.
type scrubber struct{ hide *strings.Replacer }

// minHidden is how long a value of the environment must be to be worth hiding:
// "1" is everywhere.
const minHidden = 6

func (d Doctor) scrubber() scrubber {
	type pair struct{ value, name string }
	var pairs []pair
	for _, v := range d.Env.Environ {
		if name, value, ok := strings.Cut(v, "="); ok && len(value) >= minHidden {
			pairs = append(pairs, pair{value, "${" + name + "}"})
		}
	}
	for value, name := range map[string]string{d.Env.Home: "~", d.Config.Token: "${token}", d.Config.URL(): "${service}", d.Env.IntegrationsDir: "${integrations}", d.Config.Workspace: "${workspace}"} {
		if value != "" {
			pairs = append(pairs, pair{value, name})
		}
	}
	// A replacer takes the first that matches: the longest, so that nothing of it
	// is left over.
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(len(b.value), len(a.value)), strings.Compare(a.name, b.name))
	})
	var list []string
	for _, p := range pairs {
		list = append(list, p.value, p.name)
		if quoted, err := json.Marshal(p.value); err == nil && string(quoted) != `"`+p.value+`"` {
			list = append(list, strings.Trim(string(quoted), `"`), p.name) // as lines of the log spell it
		}
	}
	return scrubber{strings.NewReplacer(list...)}
}

func (s scrubber) text(text string) string {
	return shortKey(redact.Text(s.hide.Replace(text)))
}

// lines is text for lines of the log: what is no line of ours is left out.
func (s scrubber) lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if json.Valid([]byte(line)) {
			b.WriteString(s.text(line))
		}
	}
	return b.String()
}
