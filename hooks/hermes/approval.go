package hermes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf16"

	"github.com/agentscope-ai/reme-hook/install"
)

// approvalsFile is where Hermes keeps which shell hooks the user has approved.
func approvalsFile(env install.Env) string {
	return filepath.Join(hermesHome(env), "shell-hooks-allowlist.json")
}

// approvals is the content of that file. Hermes writes it anew each time, so its
// form needs no care.
type approvals struct {
	all  map[string]any
	list []any
}

func parseApprovals(text []byte) (approvals, error) {
	a := approvals{all: map[string]any{}}
	if len(bytes.TrimSpace(text)) == 0 {
		return a, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&a.all); err != nil {
		return a, fmt.Errorf("the file cannot be read as JSON, and Hermes takes it for empty; remove it and run the command again: %w", err)
	}
	a.list, _ = a.all["approvals"].([]any)
	return a, nil
}

// bytes is the file as Hermes writes it: sorted, and in ASCII.
func (a approvals) bytes() ([]byte, error) {
	if a.all == nil {
		a.all = map[string]any{}
	}
	a.all["approvals"] = slices.Concat([]any{}, a.list)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(a.all); err != nil {
		return nil, err
	}
	var out []byte
	for _, r := range string(bytes.TrimRight(b.Bytes(), "\n")) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out, nil
}

// has tells whether a hook is approved.
func (a approvals) has(event, command string) bool {
	return slices.ContainsFunc(a.list, func(entry any) bool {
		m, _ := entry.(map[string]any)
		return m["event"] == event && m["command"] == command
	})
}

// withoutOurs leaves out all that was approved of ours.
func (a approvals) withoutOurs() approvals {
	a.list = slices.DeleteFunc(slices.Clone(a.list), func(entry any) bool {
		m, _ := entry.(map[string]any)
		command, _ := m["command"].(string)
		return install.Ours(command, Host)
	})
	return a
}

// approve adds hooks of ours, in the place of all that were approved before.
func (a approvals) approve(placed []placedHook, program string, now time.Time) approvals {
	a = a.withoutOurs()
	for _, h := range placed {
		entry := map[string]any{"event": h.event, "command": h.command, "approved_at": pythonTime(now), "script_mtime_at_approval": nil}
		if st, err := os.Stat(program); err == nil {
			entry["script_mtime_at_approval"] = pythonTime(st.ModTime())
		}
		a.list = append(a.list, entry)
	}
	return a
}

// pythonTime is a time as Hermes writes it, by way of a float.
func pythonTime(t time.Time) string {
	seconds, fraction := math.Modf(float64(t.Unix()) + 1e-9*float64(t.Nanosecond()))
	t = time.UnixMicro(int64(seconds)*1e6 + int64(math.RoundToEven(fraction*1e6))).UTC()
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05.000000Z")
}

// removeApprovals takes what was approved of ours out of the file.
func removeApprovals(now, original []byte, known bool) ([]byte, error) {
	a, err := parseApprovals(now)
	if err != nil {
		return now, nil // to Hermes, nothing is approved by it
	}
	rest := a.withoutOurs()
	switch {
	case len(rest.list) == len(a.list):
		return now, nil
	case known && original == nil && len(rest.list) == 0 && len(rest.all) == 1:
		return nil, nil
	}
	return rest.bytes()
}

// approveHooks records the user's approval of the shell hooks in a config.yaml.
func approveHooks(env install.Env, placed []placedHook, program string) error {
	path := approvalsFile(env)
	old, err := install.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	a, err := parseApprovals(old)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !slices.ContainsFunc(placed, func(h placedHook) bool { return !a.has(h.event, h.command) }) {
		return nil
	}
	text, err := a.approve(placed, program, time.Now()).bytes()
	if err != nil {
		return err
	}
	return install.Apply([]install.Change{{Path: path, Old: old, New: text}})
}
