package cmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// today is the clock of these tests. It is that of the files: a spool takes the
// temporary files of others for left behind if it is not.
var today = time.Now().UTC().Format(time.RFC3339)

// program is reme-hook with a home of its own.
func program(home string, args ...string) *exec.Cmd {
	c := exec.Command("reme-hook", args...)
	c.Env = append(os.Environ(), "HOME="+home, "USERPROFILE="+home, "TZ=UTC", "TEST_NOW="+today,
		"REME_TOKEN=", "REME_WORKSPACE=", integrationsEnv+"=")
	return c
}

// server is a 'reme-hook serve' that runs.
type server struct {
	*testing.T
	cmd    *exec.Cmd
	url    string
	stderr bytes.Buffer
	end    func() error // waits
}

func startServer(t *testing.T, home string, args ...string) *server {
	t.Helper()
	s := &server{T: t, cmd: program(home, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.end = sync.OnceValue(s.cmd.Wait)
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.end()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.end()
		t.Fatalf("%v: %s", err, s.stderr.String())
	}
	if _, err := fmt.Sscanf(line, "ready on %s", &s.url); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return s
}

func (s *server) post(job, body string) map[string]any {
	s.Helper()
	res, err := http.Post(s.url+"/"+job, "application/json", strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	var a struct {
		Success  bool
		Metadata map[string]any
	}
	if err != nil || json.Unmarshal(raw, &a) != nil || res.StatusCode != 200 || !a.Success {
		s.Errorf("%s: %d %s, %v", job, res.StatusCode, raw, err)
	}
	return a.Metadata
}

// terminate asks the server to end, which it has to do with status 0.
func (s *server) terminate() {
	s.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.Skip(err) // Windows has no such signal
	}
	if err := s.end(); err != nil || s.stderr.Len() > 0 {
		s.Errorf("%v: %s", err, s.stderr.String())
	}
}

func appendOf(session string, n int) string {
	return fmt.Sprintf(`{"host":"kimi","scope_id":"default","session_id":%[1]q,"cwd":"/p","events":[
		{"event_id":"%[2]d:user","role":"user","content":"What does wombat%[2]d do?","created_at":%[3]q},
		{"event_id":"%[2]d:assistant","role":"assistant","content":"It digs burrow%[2]d.","created_at":%[3]q}]}`, session, n, today)
}

// files returns the files below a folder of the home's workspace, with their text.
func files(t *testing.T, home, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(home, ".reme", "workspace", filepath.FromSlash(dir)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[d.Name()] = string(text)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out
}

// Two servers on one memory, hooks and the command line beside them: all of them
// at once write the same and other turns, each is kept once, and everybody finds it.
func TestServeProcesses(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	servers := []*server{startServer(t, home), startServer(t, home)}
	const sessions, turns = 4, 5
	var group sync.WaitGroup
	for n := range sessions * turns {
		session := fmt.Sprint("s", n%sessions)
		for _, s := range servers { // both get the same
			group.Go(func() { s.post("agent_session_append", appendOf(session, n)) })
		}
		group.Go(func() { servers[n%2].post("agent_memory_recall", `{"query":"What does wombat3 do?"}`) })
	}
	for n := range 4 {
		group.Go(func() {
			for _, event := range [][2]string{{"user-prompt-submit", `"prompt":"Who digs?"`}, {"stop", `"last_assistant_message":"The numbat."`}} {
				c := program(home, "codex", event[0])
				c.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"h%d","turn_id":"t1",%s}`, n, event[1]))
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v %s", event[0], err, out)
				}
			}
		})
	}
	group.Wait()
	// What a hook could not deliver in its time is delivered now.
	if out, err := program(home, "spool", "replay").CombinedOutput(); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	for n := range sessions {
		session := fmt.Sprint("s", n)
		for _, s := range servers {
			group.Go(func() {
				s.post("agent_session_flush", fmt.Sprintf(`{"host":"kimi","scope_id":"default","session_id":%q,"reason":"session_end","wait":true}`, session))
			})
		}
	}
	group.Wait()
	count := func(session string) (n int) {
		for name, text := range files(t, home, "session") {
			if strings.Contains(name, "-default-"+session+"-") {
				n += strings.Count(text, "\n")
			}
		}
		return n
	}
	for n := range sessions {
		if got := count(fmt.Sprint("s", n)); got != 2*turns {
			t.Errorf("session s%d: %d rows", n, got)
		}
	}
	hooked := 0 // on a busy machine a hook may end before it has kept its half of a turn
	for n := range 4 {
		got := count(fmt.Sprint("h", n))
		if got > 2 {
			t.Errorf("session h%d: %d rows", n, got)
		}
		if got > 0 {
			hooked++
		}
	}
	for _, s := range servers {
		if m := s.post("agent_memory_recall", `{"query":"burrow7 wombat7"}`); len(m["items"].([]any)) != 1 {
			t.Errorf("recalled %+v", m)
		}
		st := s.post("status", `{}`)["status"].(map[string]any)
		if st["turns"] != float64(sessions*turns+hooked) || st["notes"] != float64(sessions) || st["index"] == "unavailable" {
			t.Errorf("%+v", st)
		}
	}
	if out, err := program(home, "recall", "numbat").CombinedOutput(); err != nil || !strings.Contains(string(out), "The numbat.") {
		t.Errorf("%s, %v", out, err)
	}
	for _, s := range servers {
		s.terminate()
	}
}

// What a killed server had queued is extracted by the next one, at the latest when
// that ends.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	s := startServer(t, home)
	s.post("agent_session_append", appendOf("s1", 1))
	if m := s.post("agent_session_flush", `{"host":"kimi","scope_id":"default","session_id":"s1","reason":"turn_end"}`); m["pending"] != float64(1) {
		t.Errorf("%+v", m)
	}
	s.cmd.Process.Kill()
	if err := s.end(); err == nil {
		t.Error("the server was not killed")
	}
	if notes := files(t, home, "daily"); len(notes) != 0 {
		t.Errorf("notes: %+v", notes)
	}
	s = startServer(t, home)
	if m := s.post("agent_memory_recall", `{"query":"wombat1 burrow1"}`); len(m["items"].([]any)) != 1 {
		t.Errorf("recalled %+v", m)
	}
	s.terminate()
	notes := 0
	for _, text := range files(t, home, "daily") {
		if strings.Contains(text, "session_id: kimi-default-s1-") {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("%d notes", notes)
	}
}

// A taken port is said to be, and by whom.
func TestServeTaken(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	address := strings.TrimPrefix(startServer(t, home).url, "http://")
	c := program(home, "serve", "--listen", address)
	out, err := c.CombinedOutput()
	want := "reme-hook: " + address + " is taken: reme-hook " + version + " serves there already\n"
	if err == nil || c.ProcessState.ExitCode() != exitFailed || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}

// The token of the configuration is asked for, and nothing that was said is in the
// log.
func TestServeToken(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	dir := filepath.Join(home, ".reme", "integrations")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("token = \"sesame-${NONE:open}\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, home)
	for _, test := range []struct {
		token string
		want  int
	}{{"", 401}, {"Bearer sesame", 401}, {"Bearer sesame-open", 200}} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/agent_memory_recall", strings.NewReader(`{"query":"kangaroo"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", test.token)
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != test.want {
			t.Errorf("%q: %v, %v", test.token, res, err)
		}
		res.Body.Close()
	}
	s.terminate()
	log, err := os.ReadFile(filepath.Join(dir, "log", "hook.jsonl"))
	if err != nil || strings.Count(string(log), `"route":"agent_memory_recall"`) != 3 || strings.Contains(string(log), "kangaroo") || strings.Contains(string(log), "sesame") {
		t.Errorf("%s, %v", log, err)
	}
}
