// Package prose makes memories of any size for measurements. Its texts are spliced
// of the comments of Go's standard library, so that words are as common or rare, and
// stand beside each other, as in what people write about programs; and as in
// people's work, ever new names of things come up. The same numbers give the same
// texts as long as Go's version is the same.
package prose

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

const (
	perSession = 20 // turns of a session
	perProject = 50 // sessions of a project
	stretch    = 6  // words on average that are taken from one place
	nameEvery  = 40 // words between names, on average
	newName    = 8  // one name of so many was never used before
)

// hosts are those that sessions are of, by turns.
var hosts = []client.Host{"codex", "claude-code", "kimi", "hermes"}

// Source is what texts are made of.
type Source struct {
	words []string
	at    map[string][]int32 // where a word is
}

// Load reads the comments of the standard library of the Go that is on the path.
func Load() (*Source, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask go for its standard library: %w", err)
	}
	s := &Source{at: map[string][]int32{}}
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			return s.read(path)
		}
		return nil
	})
	if err == nil && len(s.words) == 0 {
		err = fmt.Errorf("no comments below %s", root)
	}
	for i, w := range s.words {
		s.at[w] = append(s.at[w], int32(i))
	}
	return s, err
}

func (s *Source) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "// ")
		if ok && !strings.HasPrefix(line, "Copyright") && !strings.HasPrefix(line, "Use of this source") && !strings.HasPrefix(line, "license that") {
			s.words = append(s.words, strings.Fields(line)...)
		}
	}
	return nil
}

// Text makes a text of about n words. The names that it speaks of are those of
// names, the first of which are the commonest.
func (s *Source) Text(rnd *rand.Rand, n int, names *Names) string {
	var b strings.Builder
	at := rnd.IntN(len(s.words))
	for range max(3, n/2+rnd.IntN(n+1)) {
		w := s.words[at]
		if rnd.IntN(nameEvery) == 0 {
			w = names.pick(rnd)
		}
		b.WriteString(w)
		b.WriteByte(' ')
		if rnd.IntN(stretch) == 0 {
			same := s.at[s.words[at]]
			at = int(same[rnd.IntN(len(same))])
		}
		at = (at + 1) % len(s.words)
	}
	return strings.TrimSpace(b.String())
}

// Names are what people of a project call their things.
type Names struct {
	project uint64
	known   []string
}

func (n *Names) pick(rnd *rand.Rand) string {
	if len(n.known) == 0 || rnd.IntN(newName) == 0 {
		n.known = append(n.known, newNameOf(rnd))
		return n.known[len(n.known)-1]
	}
	return n.known[int(float64(len(n.known))*rnd.Float64()*rnd.Float64())]
}

func newNameOf(rnd *rand.Rand) string {
	word := func() string {
		var b strings.Builder
		for range 2 + rnd.IntN(2) {
			b.WriteByte("bdfgklmnprstvz"[rnd.IntN(14)])
			b.WriteByte("aeiou"[rnd.IntN(5)])
		}
		return b.String()
	}
	switch rnd.IntN(6) {
	case 0:
		return fmt.Sprintf("E%d", rnd.IntN(100000))
	case 1:
		return fmt.Sprintf("%s/%s_%s.go", word(), word(), word())
	case 2:
		return word() + strings.ToUpper(word()[:1]) + word()
	case 3:
		return fmt.Sprintf("--%s-%s", word(), word())
	default:
		return word() + word()
	}
}

// Prompt makes what a user may ask in a project.
func (s *Source) Prompt(n int) string {
	rnd := rand.New(rand.NewPCG(uint64(n), 2))
	names := newNames(uint64(n % 3))
	return s.Text(rnd, 14, names)
}

// newNames returns the names of a project, the older ones.
func newNames(project uint64) *Names {
	n := &Names{project: project}
	rnd := rand.New(rand.NewPCG(project, 3))
	for range 50 {
		n.known = append(n.known, newNameOf(rnd))
	}
	return n
}

// Turn is a question and its answer.
type Turn struct {
	ID          client.TurnID
	At          time.Time
	User, Reply string
}

// Session is a conversation.
type Session struct {
	client.Session
	Cwd   string
	Turns []Turn
}

// Sessions makes so many turns, the oldest first, the last of them now.
func (s *Source) Sessions(turns int, now time.Time, each func(Session) error) error {
	count := (turns + perSession - 1) / perSession
	names := newNames(0)
	for i := range count {
		project := uint64(i / perProject)
		if names.project != project {
			names = newNames(project)
		}
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		session := Session{
			Session: client.Session{Host: hosts[i%len(hosts)], Scope: "default", ID: fmt.Sprintf("%08x-%d", rnd.Uint32(), i)},
			Cwd:     fmt.Sprintf("/src/project-%d", project),
		}
		// Fifty sessions a day, the last of them an hour ago.
		at := now.Add(-time.Hour - time.Duration(count-i)*24*time.Hour/50)
		for n := range min(perSession, turns-i*perSession) {
			session.Turns = append(session.Turns, Turn{
				ID: client.TurnID(fmt.Sprintf("turn-%d", n)), At: at.Add(time.Duration(n) * time.Minute),
				User: s.Text(rnd, 20, names), Reply: s.Text(rnd, 120, names),
			})
		}
		if err := each(session); err != nil {
			return err
		}
	}
	return nil
}

// Fill writes turns into the dialogs of a workspace, as another program would that
// knows their format.
func (s *Source) Fill(dir string, turns int, now time.Time) error {
	return s.Sessions(turns, now, func(session Session) error {
		var b []byte
		for _, t := range session.Turns {
			for _, m := range []struct {
				role client.Role
				text string
			}{{client.User, t.User}, {client.Assistant, t.Reply}} {
				row, err := json.Marshal(map[string]any{
					"name": m.role, "role": m.role, "content": []map[string]string{{"type": "text", "text": m.text}},
					"id": client.NewEventID(t.ID, m.role, 1), "created_at": t.At.UTC().Format(time.RFC3339),
					"metadata": map[string]any{"host": session.Host, "scope_id": session.Scope, "session_id": session.ID, "turn_id": t.ID, "cwd": session.Cwd},
				})
				if err != nil {
					return err
				}
				b = append(append(b, row...), '\n')
			}
		}
		path := filepath.Join(dir, "session", "dialog", string(session.Host), string(session.Key())+".jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
		last := slices.MaxFunc(session.Turns, func(a, b Turn) int { return a.At.Compare(b.At) }).At
		return os.Chtimes(path, last, last)
	})
}
