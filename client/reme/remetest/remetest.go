// Package remetest is a ReMe for tests: it answers as release 0.4.2.0 does, makes a
// note of everything without a model, and fails as it is told to.
package remetest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Server is the ReMe. Its fields are changed with Change while it runs.
type Server struct {
	*httptest.Server
	Version string
	Folder  string // its workspace, as it tells
	Down    bool   // it breaks connections
	// Answers are the failures of the next extractions: "" for none, "broken" for a
	// connection that breaks, "nothing" for a success without a note, or a text.
	Answers  []string
	Found    []map[string]any // what every search finds
	Searches int              // searches so far
	Most     map[string]int   // extractions at once, at most, by session and "" for all
	Gate     chan struct{}    // if set, an extraction waits for it

	mu       sync.Mutex
	requests []string // bodies of auto_memory
	inFlight map[string]int
}

// New starts a ReMe that ends with the test.
func New(t *testing.T) *Server {
	f := &Server{Version: "0.4.2.0", Folder: "/somewhere", inFlight: map[string]int{}, Most: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// ServeHTTP implements http.Handler.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Down {
		panic(http.ErrAbortHandler)
	}
	say := func(answer string, success bool, metadata any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"answer": answer, "success": success, "metadata": metadata})
	}
	switch r.URL.Path {
	case "/version":
		say(f.Version, true, map[string]any{"version": f.Version})
	case "/help":
		say("`auto_memory`", true, nil)
	case "/app_config":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"answer": map[string]any{"workspace_dir": f.Folder, "timezone": "UTC"}, "success": true})
	case "/search":
		f.Searches++
		say("", true, map[string]any{"results": f.Found})
	case "/read":
		say("the note", true, nil)
	case "/auto_memory":
		f.extract(body, say)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (f *Server) extract(body []byte, say func(string, bool, any)) {
	var req struct {
		SessionID string `json:"session_id"`
		Date      string `json:"date"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		panic(err)
	}
	f.requests = append(f.requests, string(body))
	for _, who := range []string{req.SessionID, ""} {
		f.inFlight[who]++
		f.Most[who] = max(f.Most[who], f.inFlight[who])
	}
	if gate := f.Gate; gate != nil {
		f.mu.Unlock()
		<-gate
		f.mu.Lock()
	}
	f.inFlight[req.SessionID]--
	f.inFlight[""]--
	if len(f.Answers) > 0 {
		answer := f.Answers[0]
		f.Answers = f.Answers[1:]
		switch answer {
		case "":
		case "broken":
			panic(http.ErrAbortHandler)
		case "nothing":
			say("Nothing.", true, map[string]any{"path": nil})
			return
		default:
			say(answer, false, nil)
			return
		}
	}
	say("Created.", true, map[string]any{"path": "daily/" + req.Date + "/" + req.SessionID + ".md"})
}

// Change changes fields while the server runs.
func (f *Server) Change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Took returns the bodies of the extractions since the last call.
func (f *Server) Took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}
