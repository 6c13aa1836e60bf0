package gateway

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// load is how many appends the load test makes. With many, it tells what memory
// they leave behind:
//
//	go test -run Load -v -timeout 60m ./gateway -load 100000
var load = flag.Int("load", 1000, "appends of the load test")

// A thousand appends of a hundred sessions and two hundred recalls at once: within
// the limits there is no error, and nothing is lost.
func TestLoad(t *testing.T) {
	t.Parallel()
	const sessions, appends, recalls = 100, 1000, 200
	w := newWorld(t)
	h, err := w.Gateway.handler(HandlerOptions{Log: slog.New(slog.DiscardHandler)}, newLimits())
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: appends + recalls}}
	ask := func(job string, request any) (a Answer) {
		body, err := json.Marshal(request)
		if err != nil {
			t.Error(err)
			return
		}
		res, err := c.Post(s.URL+"/"+job, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil || res.StatusCode != 200 || !a.Success {
			t.Errorf("%s: %d %+v, %v", job, res.StatusCode, a, err)
		}
		return a
	}
	began := time.Now()
	for done := 0; done < *load && !t.Failed(); done += appends {
		var group sync.WaitGroup
		for i := range appends {
			n := done + i
			group.Go(func() {
				id := client.TurnID(fmt.Sprint(n))
				a := ask("agent_session_append", client.AppendRequest{
					Session: client.Session{Host: "codex", Scope: "default", ID: fmt.Sprint("s", n%sessions)}, Cwd: "/src/osprey",
					Events: []client.Event{
						{ID: client.NewEventID(id, client.User, 1), Role: client.User, Content: fmt.Sprintf("Where does pangolin%d live?", n), CreatedAt: noon},
						{ID: client.NewEventID(id, client.Assistant, 1), Role: client.Assistant, Content: fmt.Sprintf("In burrow%d, with its friends and the rest of them.", n), CreatedAt: noon},
					},
				})
				if a.Metadata["appended"] != float64(2) {
					t.Errorf("append %d: %+v", n, a)
				}
			})
		}
		for i := range recalls {
			group.Go(func() {
				ask("agent_memory_recall", client.RecallRequest{Query: fmt.Sprintf("Where does pangolin%d live?", i)})
			})
		}
		group.Wait()
		if (done+appends)%10_000 == 0 {
			t.Logf("%6d appends, %4.0f s: %s", done+appends, time.Since(began).Seconds(), memory())
		}
	}
	rows := map[string]bool{}
	err = filepath.WalkDir(filepath.Join(w.dir, "session"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			var row struct{ ID string }
			if err := json.Unmarshal([]byte(line), &row); err != nil || rows[row.ID] {
				t.Errorf("%s: row %s, %v", path, line, err)
			}
			rows[row.ID] = true
		}
		return err
	})
	if err != nil || len(rows) != 2**load {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	a := ask("agent_memory_recall", client.RecallRequest{Query: fmt.Sprintf("pangolin%d", *load-1)})
	if res, err := asType[client.RecallResult](a.Metadata); err != nil || len(res.Items) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// memory tells what this process holds.
func memory() string {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	told := fmt.Sprintf("heap %.1f MiB, %d goroutines", float64(m.HeapAlloc)/(1<<20), runtime.NumGoroutine())
	status, _ := os.ReadFile("/proc/self/status") // on Linux
	for line := range strings.Lines(string(status)) {
		if rss, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			told += ", resident " + strings.TrimSpace(rss)
		}
	}
	return told
}
