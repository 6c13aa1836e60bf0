package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

const (
	generatedBy   = "reme-hook"
	maxNoteText   = 16 << 10  // bytes of a generated note
	maxDialogRead = 128 << 20 // bytes of a dialog, from its end, that notes are made of
)

// writeNotes brings the notes of a session up to date: one for each local day.
// The caller holds the session's lock.
func (w *Workspace) writeNotes(ctx context.Context, dialogPath string) error {
	f, err := os.Open(w.abs(dialogPath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var start int64
	if st.Size() > maxDialogRead {
		if start, err = lastLineStart(f, st.Size()-maxDialogRead); err != nil {
			return err
		}
	}
	var days []*dayNote
	seen := map[int64]bool{}
	_, err = scanLines(f, start, st.Size(), func(line []byte, _, _ int64) bool {
		m, ok := parseRow(line, w.loc)
		if !ok || isBlank(m.Text) || m.Host == "" || m.ID != "" && seen[idHash(m.ID)] {
			return ctx.Err() == nil
		}
		seen[idHash(m.ID)] = true
		day := w.day(m.At)
		i := slices.IndexFunc(days, func(d *dayNote) bool { return d.date == day })
		if i < 0 {
			i = len(days)
			days = append(days, &dayNote{date: day, session: client.Session{Host: m.Host, Scope: m.Scope, ID: m.Session}, loc: w.loc})
		}
		days[i].add(m)
		return ctx.Err() == nil
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	for _, d := range days {
		if err := w.writeDayNote(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// dayNote is what a session said on one day.
type dayNote struct {
	date     string
	session  client.Session
	loc      *time.Location
	cwd      string
	turns    []*noteTurn
	files    []string
	commands []string
	last     string // id of the last event
}

type noteTurn struct {
	id       client.TurnID
	at       time.Time
	asked    string
	answered string
}

const (
	maxAskedText    = 400 // characters of a turn in a note
	maxAnsweredText = 600
	maxNamed        = 12 // files, and commands, that a note names
)

func (d *dayNote) add(m row) {
	if m.Cwd != "" {
		d.cwd = m.Cwd
	}
	d.last = m.ID
	var t *noteTurn
	if i := slices.IndexFunc(d.turns, func(t *noteTurn) bool { return t.id == m.Turn }); i >= 0 && m.Turn != "" {
		t = d.turns[i]
	} else {
		t = &noteTurn{id: m.Turn, at: m.At}
		d.turns = append(d.turns, t)
	}
	if m.Role == client.User {
		t.asked = joinSentences(t.asked, m.Text, maxAskedText)
	} else {
		t.answered = joinSentences(t.answered, m.Text, maxAnsweredText)
	}
	files, commands := namedIn(m.Text)
	d.files = addNew(d.files, files)
	d.commands = addNew(d.commands, commands)
}

// joinSentences adds the first sentences of text that fit in n characters.
func joinSentences(have, text string, n int) string {
	left := n - countChars(have)
	if left < 40 && have != "" {
		return have
	}
	text = harmless.Text(cutBytes(strings.TrimSpace(text), 8*n))
	var b strings.Builder
	for _, s := range splitSentences(text) {
		if left -= countChars(s); left < 0 {
			break
		}
		b.WriteString(s)
	}
	out := harmless.Line(b.String())
	if out == "" {
		out = firstWords(text, n)
	}
	return strings.TrimSpace(have + " " + out)
}

func addNew(have, more []string) []string {
	for _, s := range more {
		if len(have) < maxNamed && !slices.Contains(have, s) {
			have = append(have, s)
		}
	}
	return have
}

// namedIn finds what a text names in backticks or as a path, and the lines of
// its shell blocks.
func namedIn(text string) (files, commands []string) {
	text = cutBytes(harmless.Text(text), maxIndexed)
	shell, fenced := false, false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if lang, ok := strings.CutPrefix(line, "```"); ok {
			fenced = !fenced
			shell = fenced && slices.Contains([]string{"sh", "bash", "shell", "zsh", "console"}, strings.TrimSpace(lang))
			continue
		}
		if fenced {
			if c := strings.TrimPrefix(line, "$ "); shell && c != "" && len(c) <= 120 && c[0] != '#' {
				commands = append(commands, c)
			}
			continue
		}
		for i, piece := range strings.Split(line, "`") {
			if i%2 == 0 {
				for _, token := range strings.Fields(piece) {
					if token = strings.Trim(token, `.,;:!?()[]{}<>"'*`); strings.Contains(token, "/") && looksLikeFile(token) {
						files = append(files, token)
					}
				}
				continue
			}
			switch {
			case piece == "" || len(piece) > 120:
			case looksLikeFile(piece):
				files = append(files, piece)
			case looksLikeCommand(piece):
				commands = append(commands, strings.TrimPrefix(piece, "$ "))
			}
		}
	}
	return files, commands
}

func looksLikeFile(s string) bool {
	ext := strings.TrimPrefix(path.Ext(s), ".")
	if ext == "" || len(ext) > 8 || len(s) > 120 || strings.ContainsAny(s, " \t()=,;|*$") || strings.Contains(s, "://") || strings.HasPrefix(s, ".") && !strings.Contains(s, "/") {
		return false
	}
	if !strings.Contains(s, "/") && len(ext) > 5 {
		return false // os.environ rather than a file
	}
	return strings.Trim(ext, "0123456789") != "" && isAlnum(ext)
}

func isAlnum(s string) bool {
	for i := range len(s) {
		if classOf(rune(s[i])) != inWord {
			return false
		}
	}
	return true
}

func looksLikeCommand(s string) bool {
	if strings.HasPrefix(s, "$ ") {
		return true
	}
	first, _, more := strings.Cut(s, " ")
	if !more {
		return false
	}
	switch first {
	case "go", "git", "npm", "npx", "pnpm", "yarn", "node", "python", "python3", "pip", "uv", "cargo", "make", "docker", "kubectl", "helm", "terraform",
		"curl", "ssh", "sudo", "apt", "brew", "systemctl", "psql", "sqlite3", "gh", "pytest", "mvn", "gradle", "bun", "deno", "ruff", "reme", "reme-hook":
		return true
	}
	return false
}

// keyHash is the part of a session key that names its notes.
func keyHash(s client.Session) string {
	k := string(s.Key())
	return k[len(k)-12:][:8]
}

func (d *dayNote) title() string {
	for _, t := range d.turns {
		if t.asked != "" {
			return firstWords(t.asked, 80)
		}
	}
	return "Session of " + string(d.session.Host)
}

func (d *dayNote) description() string {
	where := ""
	if d.cwd != "" {
		where = " in " + path.Base(filepath.ToSlash(d.cwd))
	}
	return fmt.Sprintf("%d turn(s) with %s%s: %s", len(d.turns), d.session.Host, where, d.title())
}

// render makes the note. The same turns give the same bytes; if they are too
// many, the newest are told.
func (d *dayNote) render(name string) string {
	key := string(d.session.Key())
	var head, tail strings.Builder
	fmt.Fprintf(&head, "---\ndescription: %s\ngenerated_by: %s\nname: %s\nsession_id: %s\nsource_conversation: %s\n---\n\n# %s\n",
		yamlScalar(d.description()), generatedBy, yamlScalar(name), yamlScalar(key), yamlScalar("[["+dialogPath(d.session)+"]]"), d.title())
	list := func(label string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&tail, "\n%s: `%s`\n", label, strings.Join(items, "`, `"))
		}
	}
	list("Files", d.files)
	list("Commands", d.commands)

	room := maxNoteText - head.Len() - tail.Len() - 200
	var told []string
	for _, t := range slices.Backward(d.turns) {
		text := t.render(d.loc)
		if room -= len(text); room < 0 {
			break
		}
		told = append(told, text)
	}
	slices.Reverse(told)
	if n := len(d.turns) - len(told); n > 0 {
		fmt.Fprintf(&head, "\n%d earlier turn(s) are in the conversation.\n", n)
	}
	return head.String() + strings.Join(told, "") + tail.String()
}

func (t *noteTurn) render(loc *time.Location) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n", t.at.In(loc).Format("15:04"))
	if t.asked != "" {
		fmt.Fprintf(&b, "\nAsked: %s\n", t.asked)
	}
	if t.answered != "" {
		fmt.Fprintf(&b, "\nOutcome: %s\n", t.answered)
	}
	return b.String()
}

// The last line of a generated note tells how far it goes and whether it is as
// we left it. It is in the file and not in the index, because the index may be
// lost and the note of a user may not.
const markStart = "<!-- reme-hook: through "

func noteMark(through, text string) string {
	return markStart + shortHash(through) + " text " + shortHash(text) + " -->\n"
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// readMark tells how far a note goes and whether someone has edited it.
func readMark(note string) (through string, edited bool) {
	i := strings.LastIndex(note, markStart)
	if i < 0 {
		return "", true
	}
	through, _, _ = strings.Cut(note[i+len(markStart):], " ")
	return through, note[i:] != markStart+through+" text "+shortHash(strings.TrimSuffix(note[:i], "\n"))+" -->\n"
}

func stripMark(text string) string {
	if i := strings.LastIndex(text, markStart); i >= 0 {
		return strings.TrimRight(text[:i], "\n")
	}
	return text
}

// writeDayNote writes the note of a day unless it is there, and leaves what
// someone has edited as it is.
func (w *Workspace) writeDayNote(ctx context.Context, d *dayNote) error {
	unlock, err := w.lockDaily(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	dir := dailyDir + "/" + d.date
	name, number := w.findDayNote(dir, keyHash(d.session))
	if name != "" {
		old, err := os.ReadFile(w.abs(dir + "/" + name + ".md"))
		if err != nil {
			return err
		}
		through, edited := readMark(string(old))
		if through == shortHash(d.last) {
			// A crash may have come before the note was listed.
			keys, _ := parseFrontMatter(string(old))
			return w.listNote(ctx, d.date, dir+"/"+name+".md", name, cmp.Or(keys["description"], d.description()))
		}
		if edited {
			base := strings.TrimSuffix(name, "-"+strconv.Itoa(number))
			name = base + "-" + strconv.Itoa(number+1)
		}
	} else {
		name = slug(d.title()) + "-" + keyHash(d.session)
	}
	text := d.render(name)
	if err := w.putNote(ctx, dir+"/"+name+".md", text+"\n"+noteMark(d.last, text)); err != nil {
		return err
	}
	crash.Point("note.written")
	return w.listNote(ctx, d.date, dir+"/"+name+".md", name, d.description())
}

// findDayNote returns the newest note of a session in a day's folder: its name
// and number, 1 for the one without a number.
func (w *Workspace) findDayNote(dir, hash string) (name string, number int) {
	entries, _ := os.ReadDir(w.abs(dir))
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok {
			continue
		}
		n := 0
		if strings.HasSuffix(base, "-"+hash) {
			n = 1
		} else if i := strings.LastIndexByte(base, '-'); i > 0 && strings.HasSuffix(base[:i], "-"+hash) {
			n, _ = strconv.Atoi(base[i+1:])
		}
		if n > number {
			name, number = base, n
		}
	}
	return name, number
}

func (w *Workspace) lockDaily(ctx context.Context) (func(), error) {
	return durable.Lock(ctx, w.abs(privateDir+"/locks/daily.lock"))
}

func (w *Workspace) putNote(ctx context.Context, rel, text string) error {
	change := w.changing(rel)
	abs := w.abs(rel)
	if err := errors.Join(durable.MkdirAll(filepath.Dir(abs)), durable.Sweep(filepath.Dir(abs))); err != nil {
		return err
	}
	if err := durable.WriteFile(abs, []byte(text)); err != nil {
		return err
	}
	w.changed(ctx, rel, change)
	return nil
}

const (
	notesOpen  = "<!-- notes:auto -->"
	notesClose = "<!-- /notes:auto -->"
)

// listNote puts a note into the list of its day, which is ReMe's file as much as
// ours: only our line, and the count that ReMe writes, are touched.
func (w *Workspace) listNote(ctx context.Context, date, notePath, name, description string) error {
	rel := dailyDir + "/" + date + ".md"
	old, err := os.ReadFile(w.abs(rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := withListed(string(old), date, fmt.Sprintf("- [[%s]]", notePath), fmt.Sprintf(" name: %s description: %s", name, harmless.Line(description)))
	if text == string(old) {
		return nil
	}
	return w.putNote(ctx, rel, text)
}

func withListed(text, date, link, rest string) string {
	if strings.TrimSpace(text) == "" {
		text = fmt.Sprintf("---\ndescription: 0 note(s) today.\nname: '%s'\n---\n\n%s\n%s\n", date, notesOpen, notesClose)
	}
	from := strings.Index(text, notesOpen)
	to := strings.LastIndex(text, notesClose)
	if from < 0 || to < from {
		text = strings.TrimRight(text, "\n") + "\n\n" + notesOpen + "\n" + notesClose + "\n"
		from = strings.Index(text, notesOpen)
		to = strings.LastIndex(text, notesClose)
	}
	from += len(notesOpen)
	var lines []string
	found := false
	count := 0
	for line := range strings.SplitSeq(strings.Trim(text[from:to], "\n"), "\n") {
		if line == "" || line == "(none)" {
			continue
		}
		if strings.HasPrefix(line, link) {
			line, found = link+rest, true
		}
		lines = append(lines, line)
	}
	if !found {
		lines = append(lines, link+rest)
	}
	for _, l := range lines {
		if strings.HasPrefix(l, "- [[") {
			count++
		}
	}
	head := text[:from]
	for line := range strings.SplitSeq(head, "\n") {
		var n int
		if _, err := fmt.Sscanf(line, "description: %d note(s) today.", &n); err == nil || line == "description: No notes today." {
			head = strings.Replace(head, line, fmt.Sprintf("description: %d note(s) today.", count), 1)
			break
		}
	}
	return head + "\n" + strings.Join(lines, "\n") + "\n" + text[to:]
}
