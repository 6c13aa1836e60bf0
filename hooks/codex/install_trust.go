package codex

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/install"
)

// serverTime bounds a conversation with Codex's app server. It took 0.4 s here.
const serverTime = 30 * time.Second

// Trust implements [install.Target]: it does without a screen what Codex's
// /hooks screen does, for our hooks only. A hook that the user switched off
// stays off.
func (Target) Trust(ctx context.Context, env install.Env, o install.Options) error {
	file, err := hooksFile(env, o)
	if err != nil {
		return err
	}
	placed, err := configured.Placed(file)
	if err != nil {
		return err
	}
	if len(placed) == 0 {
		return fmt.Errorf("there are no hooks of ours in %s", file)
	}
	s, err := startServer(ctx, env, o)
	if err != nil {
		return err
	}
	defer s.close()
	listed, err := s.hooks(cwd(env, o))
	if err != nil {
		return err
	}
	listed = listed.in(file)
	state := map[string]any{}
	for _, h := range listed.Hooks {
		if h.TrustStatus == "untrusted" || h.TrustStatus == "modified" {
			state[h.Key] = map[string]string{"trusted_hash": h.CurrentHash}
		}
	}
	if len(listed.Hooks) < len(placed) {
		return fmt.Errorf("codex does not load all hooks in %s: %s", file, listed.why(o))
	}
	if len(state) == 0 {
		return nil
	}
	edit := map[string]any{"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
	if err := s.call("config/batchWrite", map[string]any{"edits": []any{edit}, "reloadUserConfig": true}, nil); err != nil {
		return err
	}
	listed, err = s.hooks(cwd(env, o))
	if err != nil {
		return err
	}
	for _, h := range listed.in(file).Hooks {
		if h.TrustStatus != "trusted" && h.TrustStatus != "managed" {
			return fmt.Errorf("codex still says %q of %s", h.TrustStatus, h.Key)
		}
	}
	return nil
}

// Trusted implements [install.Target]. It asks Codex itself, also about those of
// plugins; without it, config.toml is read as Codex 0.171.0 writes it.
func (Target) Trusted(ctx context.Context, env install.Env, o install.Options) (install.TrustState, error) {
	file, err := hooksFile(env, o)
	if err != nil {
		return install.TrustState{}, err
	}
	files := []string{file}
	for _, dir := range plugins(env) {
		files = append(files, filepath.Join(dir, "hooks", "hooks.json"))
	}
	t := install.TrustState{Needed: true}
	if askServer(ctx, env, o, files, &t) == nil {
		return t, nil
	}
	t = install.TrustState{Needed: true, Source: configFile(env)}
	t.Hooks, err = storedTrust(readConfig(env), file)
	return t, err
}

// askServer fills in what Codex's app server says of our hooks in files.
func askServer(ctx context.Context, env install.Env, o install.Options, files []string, t *install.TrustState) error {
	placed := map[string][]install.Placed{}
	for i, file := range files {
		list, err := configured.Placed(file)
		if err != nil && i == 0 {
			return err
		}
		if len(list) > 0 {
			placed[file] = list
		}
	}
	if len(placed) == 0 {
		return nil
	}
	s, err := startServer(ctx, env, o)
	if err != nil {
		return err
	}
	defer s.close()
	listed, err := s.hooks(cwd(env, o))
	if err != nil {
		return err
	}
	t.Source = "codex app-server"
	for _, w := range listed.Warnings {
		t.Problems = append(t.Problems, install.Problem{Code: install.HostSays, What: "Codex says: " + w, Do: "see " + files[0]})
	}
	for _, file := range files {
		listed.in(file).judge(file, placed[file], o, t)
	}
	return nil
}

// judge adds what a listing of a file says of our hooks in it.
func (l listing) judge(file string, placed []install.Placed, o install.Options, t *install.TrustState) {
	whole := true
	for _, p := range placed {
		h := install.HookTrust{Event: install.EventOf(p.Handler.Command, Host), File: file, State: install.TrustNo}
		found := false
		for _, hook := range l.Hooks {
			if !strings.HasSuffix(hook.Key, place(p.Event, p.GroupIndex, p.HandlerIndex)) {
				continue
			}
			found = true
			switch {
			case !hook.Enabled:
				h.State = install.TrustDisabled
			case hook.TrustStatus == "trusted", hook.TrustStatus == "managed":
				h.State = install.TrustYes
			case hook.TrustStatus == "modified":
				h.State = install.TrustModified
			}
		}
		whole = whole && found
		t.Hooks = append(t.Hooks, h)
	}
	if !whole {
		t.Problems = append(t.Problems, install.Problem{
			Code: install.NotLoaded, What: "Codex does not load all hooks in " + file, Do: l.why(o), Off: true,
		})
	}
}

// cwd is the folder for which hooks are listed.
func cwd(env install.Env, o install.Options) string {
	if o.Scope == install.ProjectScope {
		return o.ProjectDir
	}
	return env.Home
}

// listing is Codex's answer on the hooks of one folder.
type listing struct {
	Hooks []struct {
		Key         string `json:"key"`
		Command     string `json:"command"`
		SourcePath  string `json:"sourcePath"`
		Enabled     bool   `json:"enabled"`
		CurrentHash string `json:"currentHash"`
		TrustStatus string `json:"trustStatus"`
	} `json:"hooks"`
	Warnings []string `json:"warnings"`
}

// in are our hooks of a listing in a file.
func (l listing) in(file string) listing {
	out := listing{Warnings: l.Warnings}
	for _, h := range l.Hooks {
		if install.Ours(h.Command, Host) && install.SameFile(h.SourcePath, file) {
			out.Hooks = append(out.Hooks, h)
		}
	}
	return out
}

// why guesses why hooks are not in the listing.
func (l listing) why(o install.Options) string {
	switch {
	case len(l.Warnings) > 0:
		return strings.Join(l.Warnings, "; ")
	case o.Scope == install.ProjectScope:
		return "Codex loads a project's hooks only once it was told to trust the project: start codex there"
	}
	return "are hooks switched off under [features] in config.toml?"
}

// server is a running `codex app-server`, which speaks JSON-RPC by the line.
type server struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *bufio.Reader
	id     int
}

func startServer(ctx context.Context, env install.Env, o install.Options) (*server, error) {
	program, err := env.LookPath(o.Program("codex"))
	if err != nil {
		return nil, fmt.Errorf("the codex program is needed to approve its hooks: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	s := &server{cmd: exec.CommandContext(ctx, program, "app-server"), cancel: cancel}
	s.cmd.Env, s.cmd.Dir, s.cmd.WaitDelay = env.Environ, cwd(env, o), time.Second
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		cancel()
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	// A launcher that is killed may leave a child that holds the pipe.
	context.AfterFunc(ctx, func() { out.Close() })
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start codex app-server: %w", err)
	}
	client := map[string]string{"name": "reme-hook", "title": "reme-hook", "version": "0"}
	if err := s.call("initialize", map[string]any{"clientInfo": client}, nil); err != nil {
		s.close()
		return nil, err
	}
	return s, s.send(map[string]any{"method": "initialized"})
}

// close ends the server: it leaves when its stdin ends, or is killed.
func (s *server) close() {
	s.in.Close()
	defer s.cancel()
	timer := time.AfterFunc(5*time.Second, s.cancel)
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, s.out)
	_ = s.cmd.Wait() // its status says nothing that its answers did not
}

func (s *server) send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = s.in.Write(append(b, '\n'))
	return err
}

// call sends a request and waits for its answer.
func (s *server) call(method string, params, result any) error {
	s.id++
	if err := s.send(map[string]any{"id": s.id, "method": method, "params": params}); err != nil {
		return fmt.Errorf("codex app-server: %s: %w", method, err)
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("codex app-server went away during %s: %w", method, err)
		}
		var m struct {
			ID     *int            `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil || *m.ID != s.id || m.Method != "" {
			continue // a notification, or a question to us
		}
		if m.Error != nil {
			return fmt.Errorf("codex app-server: %s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("codex app-server: %s: %w", method, err)
		}
		return nil
	}
}

// hooks lists all hooks.
func (s *server) hooks(cwd string) (listing, error) {
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		cwd = real
	}
	var answer struct {
		Data []listing `json:"data"`
	}
	if err := s.call("hooks/list", map[string]any{"cwds": []string{cwd}}, &answer); err != nil {
		return listing{}, err
	}
	if len(answer.Data) != 1 {
		return listing{}, errors.New("codex app-server: hooks/list answered for other folders")
	}
	return answer.Data[0], nil
}
