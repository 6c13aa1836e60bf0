package main

import (
	"bufio"
	"embed"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

//go:embed testdata/*.txt
var dataFiles embed.FS

// clock is when all queries are asked.
var clock = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// noteHost stands in the place of a host where a memory is a note.
const noteHost = "note"

// memory is a conversation or a note.
type memory struct {
	id      string
	project string
	at      time.Time
	host    client.Host
	title   string // of a note
	turns   []turn
}

type turn struct{ user, assistant string }

func (m memory) isNote() bool { return m.host == noteHost }

func (m memory) cwd() string { return "/src/" + m.project }

func (m memory) session() client.Session {
	return client.Session{Host: m.host, Scope: "default", ID: m.id}
}

// query is a prompt, and the memory that answers it.
type query struct {
	id       string
	category string
	text     string
	answer   string // id of a memory; "" if none answers
	cwd      string
	running  *memory // the conversation that it goes on with; nil if it begins one
	held     bool    // nothing is tuned to it
}

func hash(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// data is the whole set, memories oldest first.
type data struct {
	memories []memory
	queries  []query
}

// load reads the set. Its files are lines: "@ id project date host" begins a
// memory that answers something, "# project date host" a conversation that is only
// there to be confused with; U, A and T lines are what the user and the assistant
// said, and the title of a note. "?category prompt" asks for the memory above; in
// *-asked.txt for the one that "= id" names. In the files of follow-ups the
// memory above is the running conversation and "= id" names the answer, if there
// is one. In those of nothing each line is a kind and a prompt.
func load() (*data, error) {
	d := &data{}
	entries, err := dataFiles.ReadDir("testdata")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := dataFiles.ReadFile("testdata/" + e.Name())
		if err != nil {
			return nil, err
		}
		r := reader{data: d, file: e.Name()}
		for scan := bufio.NewScanner(strings.NewReader(string(text))); scan.Scan(); {
			r.line++
			if err := r.read(scan.Text()); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", e.Name(), r.line, err)
			}
		}
	}
	slices.SortStableFunc(d.memories, func(a, b memory) int { return a.at.Compare(b.at) })
	// What a conversation says of a thing must not stand in the way of those who
	// ask for the thing itself.
	slices.SortStableFunc(d.queries, func(a, b query) int {
		if (a.running == nil) == (b.running == nil) {
			return 0
		}
		if a.running == nil {
			return -1
		}
		return 1
	})
	return d, d.check()
}

func (d *data) check() error {
	ids := map[string]bool{}
	for _, m := range d.memories {
		if ids[m.id] || len(m.turns) == 0 || m.isNote() == (m.title == "") {
			return fmt.Errorf("memory %q is empty, there twice, or lacks a title", m.id)
		}
		ids[m.id] = true
	}
	for _, q := range d.queries {
		if ids[q.id] || q.text == "" || q.answer != "" && !ids[q.answer] {
			return fmt.Errorf("query %q is there twice, empty, or has an answer that does not exist", q.id)
		}
		ids[q.id] = true
	}
	return nil
}

// reader reads one file of the set.
type reader struct {
	*data
	file   string
	line   int
	answer string // what the next queries ask for
}

// is tells files of a kind, held back or not.
func (r *reader) is(kind string) bool { return strings.HasSuffix(r.file, kind+".txt") }

func (r *reader) add(q query) {
	q.held = strings.HasPrefix(r.file, "held-")
	r.queries = append(r.queries, q)
}

func (r *reader) read(line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	if r.is("nothing") {
		if kind != "#" && kind != "" {
			r.add(query{id: fmt.Sprint("nothing/", rest), category: "nothing: " + kind, text: rest, cwd: "/src/osprey"})
		}
		return nil
	}
	switch {
	case line == "":
		return nil
	case kind == "@" || kind == "#":
		return r.begin(kind, strings.Fields(rest))
	case len(r.memories) == 0:
		return fmt.Errorf("%q comes before a memory", line)
	}
	m := &r.memories[len(r.memories)-1]
	if r.is("asked") && r.answer != "" {
		m = r.memory(r.answer)
	}
	if m == nil {
		return fmt.Errorf("there is no memory %q", r.answer)
	}
	rest = strings.ReplaceAll(rest, `\n`, "\n")
	switch {
	case kind == "T":
		m.title = rest
	case kind == "U":
		m.turns = append(m.turns, turn{user: rest})
	case kind == "A" && m.isNote():
		m.turns = append(m.turns, turn{assistant: rest})
	case kind == "A" && len(m.turns) > 0:
		m.turns[len(m.turns)-1].assistant = rest
	case kind == "=":
		r.answer = rest
	case kind == "?":
		running := *m
		r.memories = r.memories[:len(r.memories)-1]
		r.add(query{id: running.id + "/?", category: r.category(), text: rest, answer: r.answer, cwd: running.cwd(), running: &running})
		r.answer = ""
	case strings.HasPrefix(kind, "?"):
		r.ask(m, kind[1:], rest)
	case m.isNote():
		m.turns[0].assistant += "\n" + line
	default:
		return fmt.Errorf("%q is not a line of this format", line)
	}
	return nil
}

func (r *reader) memory(id string) *memory {
	i := slices.IndexFunc(r.memories, func(m memory) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return &r.memories[i]
}

func (r *reader) category() string {
	if r.answer == "" {
		return "nothing: followup"
	}
	return "followup"
}

func (r *reader) begin(kind string, fields []string) error {
	m := memory{id: fmt.Sprintf("%s-%d", strings.TrimSuffix(r.file, ".txt"), r.line), at: clock.Add(-time.Hour)}
	switch {
	case r.is("followups") && len(fields) == 2:
		fields = append(fields, m.at.Format(time.DateOnly), "codex")
	case kind == "#" && len(fields) == 3:
		fields = append([]string{m.id}, fields...)
	}
	if len(fields) != 4 {
		return fmt.Errorf("want id, project, date and host, got %q", fields)
	}
	day, err := time.Parse(time.DateOnly, fields[2])
	if err != nil {
		return err
	}
	m.id, m.project, m.host = fields[0], fields[1], client.Host(fields[3])
	if !r.is("followups") {
		m.at = day.Add(10 * time.Hour)
	}
	r.memories = append(r.memories, m)
	return nil
}

// ask adds a query. Half of them are asked in the memory's own project; those of
// the category project all are, for that is all that tells their answers apart.
func (r *reader) ask(m *memory, category, text string) {
	n := 0
	for _, q := range r.queries {
		if q.answer == m.id {
			n++
		}
	}
	q := query{id: fmt.Sprint(m.id, "/", n), category: category, text: text, answer: m.id, cwd: "/src/scratch"}
	if category == "project" || hash(q.id)%2 == 0 {
		q.cwd = m.cwd()
	}
	r.add(q)
}
