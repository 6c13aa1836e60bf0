//go:build unix

package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ReMe is a real ReMe service on loopback.
type ReMe struct {
	URL, Workspace string
	log            *os.File
	cmd            *exec.Cmd
	ended          chan struct{}
}

const (
	remeStart = 2 * time.Minute  // 3 to 20 s are usual
	remeStop  = 30 * time.Second // it finishes what it is at, then saves its indexes
)

// StartReMe starts the program bin on a workspace, in a home of its own. model is the address of its model; without one it
// has no key.
func StartReMe(ctx context.Context, bin, home, workspace, model string) (*ReMe, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, err
	}
	return startReMe(ctx, bin, home, workspace, model, port)
}

func startReMe(ctx context.Context, bin, home, workspace, model string, port int) (*ReMe, error) {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(home, "reme.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	r := &ReMe{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Workspace: workspace, log: log, ended: make(chan struct{})}
	r.cmd = exec.Command(bin, "start", "workspace_dir="+workspace, fmt.Sprintf("service.port=%d", port), "enable_logo=false")
	r.cmd.Dir = home
	r.cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONUNBUFFERED=1", "NO_PROXY=127.0.0.1"}
	if model != "" {
		r.cmd.Env = append(r.cmd.Env, "LLM_BACKEND=openai", "LLM_API_KEY=sk-test", "LLM_MODEL_NAME=fake", "LLM_BASE_URL="+model+"/v1")
	}
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, remeStart)
	defer cancel()
	for tick := time.Tick(50 * time.Millisecond); ; {
		if _, err = r.Job(ctx, "version", nil); err == nil {
			return r, nil
		}
		select {
		case <-tick:
			continue
		case <-r.ended:
		case <-ctx.Done():
			r.Kill()
		}
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("ReMe did not start: %w\n%.4000s", err, text)
	}
}

// Port is where it listens.
func (r *ReMe) Port() int {
	var port int
	_, _ = fmt.Sscanf(r.URL, "http://127.0.0.1:%d", &port)
	return port
}

// Stop ends it as a user does.
func (r *ReMe) Stop() {
	_ = r.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-r.ended:
	case <-time.After(remeStop):
		_ = r.cmd.Process.Kill()
		<-r.ended
	}
	_ = r.log.Close()
}

// Kill ends it at once.
func (r *ReMe) Kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
	_ = r.log.Close()
}

// RemeAnswer is the envelope of ReMe's jobs.
type RemeAnswer struct {
	Answer   any
	Success  bool
	Metadata map[string]any
}

// Job asks for a job; that it failed is an error.
func (r *ReMe) Job(ctx context.Context, name string, args map[string]any) (RemeAnswer, error) {
	if args == nil {
		args = map[string]any{}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/"+name, strings.NewReader(toJSON(args)))
	if err != nil {
		return RemeAnswer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return RemeAnswer{}, err
	}
	defer res.Body.Close()
	var a RemeAnswer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return a, err
	}
	if !a.Success {
		return a, fmt.Errorf("%s failed: %v", name, a.Answer)
	}
	return a, nil
}

// Dialog returns the texts that it keeps of a session, "role: text" each.
func (r *ReMe) Dialog(session string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(r.Workspace, "session", "dialog", session+".jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range bytes.Lines(data) {
		var m struct {
			Role    string
			Content []struct{ Text string }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		text := m.Role + ":"
		for _, c := range m.Content {
			text += " " + c.Text
		}
		out = append(out, text)
	}
	return out, nil
}

// Notes returns the texts of the notes that it made of a session.
func (r *ReMe) Notes(session string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(r.Workspace, "daily", "*", "*.md"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), "session_id: "+session+"\n") {
			out = append(out, string(text))
		}
	}
	return out, nil
}

// Extractor plays the model of ReMe's memory agent: it writes down the whole conversation, and what it makes of it. A
// conversation that has "fault=…" in it gets that fault until the fault is repaired: 401, 429 or 500 (a status), garbage
// (no JSON), badname (a note that ReMe refuses), skip (nothing is worth a note) or hang (no answer).
type Extractor struct {
	Chat
	*extracted
}

type extracted struct {
	mu       sync.Mutex
	repaired []string
	writes   map[string]int // notes written, by session
	hanging  chan struct{}
}

// NewExtractor starts the model.
func NewExtractor() (*Model, Extractor) {
	e := Extractor{extracted: &extracted{writes: map[string]int{}, hanging: make(chan struct{}, 8)}}
	return newModel(e), e
}

// Repair ends a fault.
func (e Extractor) Repair(fault string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.repaired = append(e.repaired, fault)
}

// Writes tells how often a note of a session was written.
func (e Extractor) Writes(session string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writes[session]
}

// Hanging yields once for each request that hangs.
func (e Extractor) Hanging() <-chan struct{} { return e.hanging }

func (e Extractor) parse(body map[string]any, tasks []string) Request {
	r := e.Chat.parse(body, tasks)
	r.Kind = Aux
	return r
}

// Derived is what the model makes of a fact: words that nobody said.
const Derived = "Conclusion of the extractor: ask Ottokar about "

var (
	faultIn   = regexp.MustCompile(`fault=(\w+)`)
	historyIn = regexp.MustCompile(`(?s)# Recent Conversation\s*(.*?)\s*# Your Task`)
	sessionIn = regexp.MustCompile(`Session ID: (\S+)`)
	dayIn     = regexp.MustCompile(`Today: (\d{4}-\d\d-\d\d)`)
	targetIn  = regexp.MustCompile(`Target path: (\S+)`)
	taggedIn  = regexp.MustCompile("((?:daily|digest)/[^\\s`'\"]+\\.md)")
	frontIn   = regexp.MustCompile(`(?s)^.*?---\n.*?\n---\n`)
	aboutIn   = regexp.MustCompile(`(?m)^\w+ is called (\w+)|called (\w+)|named (\w+)`)
)

func first(re *regexp.Regexp, text string) string {
	for i, group := range re.FindStringSubmatch(text) {
		if i > 0 && group != "" {
			return group
		}
	}
	return ""
}

func (e Extractor) answer(w http.ResponseWriter, hr *http.Request, r Request, _ Step, n int) {
	text := strings.Join(r.Role("user"), "\n")
	results := r.Role("tool")
	fault := first(faultIn, text)
	e.mu.Lock()
	if slices.Contains(e.repaired, fault) {
		fault = ""
	}
	e.mu.Unlock()
	step := Step{Text: "Done."}
	history := first(historyIn, text)
	note := "# Facts\n\n" + history + "\n\n" + Derived + first(aboutIn, history) + ".\n"
	switch tools := toolsOf(r.Body); {
	case slices.Contains([]string{"401", "429", "500"}, fault):
		w.Header().Set("Content-Type", "application/json")
		var status int
		_, _ = fmt.Sscan(fault, &status)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error":{"message":"scripted to fail","type":"fake","code":"` + fault + `"}}`))
		return
	case fault == "garbage":
		_, _ = w.Write([]byte("this is no JSON"))
		return
	case fault == "hang":
		e.hanging <- struct{}{}
		<-hr.Context().Done()
		return
	case fault == "skip":
		step.Text = "Skipped: nothing worth keeping."
	case slices.Contains(tools, "daily_write") && len(results) == 0:
		session := first(sessionIn, text)
		name := "note-" + session[max(0, len(session)-24):]
		if fault == "badname" {
			name = "bad/name?"
		} else {
			e.wrote(session)
		}
		step.Tool, step.Args = "daily_write", map[string]any{
			"name": name, "description": "What was said in " + session, "session_id": session, "date": first(dayIn, text), "content": note,
		}
	case slices.Contains(tools, "list_tags") && len(results) == 0:
		step.Tool, step.Args = "frontmatter_update", map[string]any{"path": first(taggedIn, text), "metadata": map[string]any{"memory_tags": []string{"fake_tag"}}}
	case slices.Contains(tools, "edit") && strings.Contains(text, "# Recent Conversation"):
		path := first(targetIn, text)
		switch len(results) {
		case 0:
			step.Tool, step.Args = "read", map[string]any{"path": path}
		case 1:
			e.wrote(path)
			name := strings.TrimSuffix(filepath.Base(path), ".md")
			step.Tool, step.Args = "write", map[string]any{
				"path": path, "name": name, "description": "What was said, and more", "content": frontIn.ReplaceAllString(results[0], "") + "\n\n## Update\n\n" + history + "\n",
			}
		}
	}
	e.Chat.answer(w, hr, r, step, n)
}

func (e Extractor) wrote(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writes[what]++
}

func toolsOf(body map[string]any) []string {
	var out []string
	for _, t := range list(body, "tools") {
		f, _ := t["function"].(map[string]any)
		out = append(out, str(f, "name"))
	}
	return out
}
