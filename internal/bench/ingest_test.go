package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// sessions is how many of a host are made up; REME_BENCH_SESSIONS is another number. A session has 50 KB, so 20000 of
// them 1 GB.
func sessions(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("REME_BENCH_SESSIONS"))
	if err != nil {
		return 100
	}
	return n
}

// BenchmarkIngest runs the program, with one processor, on the logs of many sessions: it surveys them, brings them in, and
// looks again. It tells MB of logs per second, the largest memory, and the time that nothing new takes.
func BenchmarkIngest(b *testing.B) {
	hook := filepath.Join(b.TempDir(), "reme-hook")
	build(hook, "github.com/agentscope-ai/reme-hook")
	for name, write := range map[string]func(home string, sessions int, words *writer){
		"codex": each(codexLog), "claude-code": each(claudeLog), "kimi": each(kimiLog), "dsh": each(dshLog), "hermes": hermesLogs, "openclaw": openclawLogs,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				home := b.TempDir()
				for _, lock := range []string{"deliver.lock", "extract.lock"} { // nobody makes notes meanwhile, nor while home is removed
					unlock, err := durable.Lock(b.Context(), filepath.Join(home, ".reme", "integrations", lock))
					check(err)
					b.Cleanup(func() { runtime.KeepAlive(unlock) })
				}
				words := &writer{Rand: rand.New(rand.NewPCG(1, 2))}
				write(home, sessions(b), words)
				run := func(args ...string) (seconds, cpu float64, peak int64) {
					c := exec.CommandContext(b.Context(), hook, append([]string{"ingest"}, args...)...)
					c.Env = []string{"HOME=" + home, "USERPROFILE=" + home, "PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1", "TMPDIR=" + os.TempDir()}
					c.Stderr = os.Stderr
					begin := time.Now()
					out, err := c.Output()
					if err != nil {
						b.Fatalf("%v: %v\n%s", args, err, out)
					}
					p := c.ProcessState
					return time.Since(begin).Seconds(), (p.UserTime() + p.SystemTime()).Seconds(), peakMemory(p)
				}
				mb := float64(words.written) / 1e6
				s, cpu, peak := run("list-sources", name)
				b.ReportMetric(mb/s, "survey-MB/s")
				b.ReportMetric(mb/cpu, "survey-MB/cpu-s")
				b.ReportMetric(float64(peak)/1e6, "survey-MB")
				s, cpu, peak = run("backfill", name, "--yes")
				b.ReportMetric(mb/s, "backfill-MB/s")
				b.ReportMetric(mb/cpu, "backfill-MB/cpu-s")
				b.ReportMetric(float64(peak)/1e6, "backfill-MB")
				s, cpu, peak = run("backfill", name, "--yes")
				b.ReportMetric(s, "again-s")
				b.ReportMetric(cpu, "again-cpu-s")
				b.ReportMetric(float64(peak)/1e6, "again-MB")
				b.ReportMetric(mb, "logs-MB")
			}
		})
	}
}

// each writes one log after the other.
func each(write func(home string, n int, w *writer)) func(string, int, *writer) {
	return func(home string, sessions int, w *writer) {
		for i := range sessions {
			write(home, i, w)
		}
	}
}

// writer makes up text.
type writer struct {
	*rand.Rand
	written int64
}

const vocabulary = 20_000

// text is of some words, few of which are frequent.
func (w *writer) text(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(" .\n"[min(2, w.IntN(40)/38)])
		}
		n := int(float64(vocabulary) * w.Float64() * w.Float64() * w.Float64())
		for n += 7; n > 0; n /= 20 {
			b.WriteString([]string{"ba", "ke", "di", "mo", "tu", "ra", "le", "si", "no", "pu", "sta", "rem", "ing", "ter", "on", "es", "al", "ic", "ver", "ion"}[n%20])
		}
	}
	return b.String()
}

// turns is how many a session has.
const turns = 5

// line writes v as a line of a log.
func (w *writer) line(f io.Writer, v any) {
	_, err := f.Write(append(w.json(v), '\n'))
	check(err)
}

// json is v, which is written.
func (w *writer) json(v any) []byte {
	raw, err := json.Marshal(v)
	check(err)
	w.written += int64(len(raw))
	return raw
}

type object = map[string]any

// begins is when a session begins.
func begins(n int) time.Time {
	return time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(n) * 20 * time.Minute)
}

func project(n int) string { return "/src/project" + strconv.Itoa(n%50) }

func uuid(kind byte, n, m int) string {
	return fmt.Sprintf("%08x-%04x-%c000-8000-%012x", 0x01a22900+n/65536, n%65536, kind, m)
}

// codexLog writes a rollout as Codex does: what is said stands in it twice, among tool calls and what Codex tells itself.
func codexLog(home string, n int, w *writer) {
	day := begins(n)
	dir := filepath.Join(home, ".codex", "sessions", day.Format("2006"), day.Format("01"), day.Format("02"))
	check(os.MkdirAll(dir, 0o700))
	thread := uuid('7', n, 0)
	f, err := os.Create(filepath.Join(dir, "rollout-"+day.Format("2006-01-02T15-04-05")+"-"+thread+".jsonl"))
	check(err)
	defer f.Close()
	ordinal := 0
	line := func(kind string, payload object) {
		w.line(f, struct {
			Timestamp time.Time `json:"timestamp"`
			Ordinal   int       `json:"ordinal"`
			Type      string    `json:"type"`
			Payload   object    `json:"payload"`
		}{day.Add(time.Duration(ordinal) * time.Second), ordinal, kind, payload})
		ordinal++
	}
	line("session_meta", object{"id": thread, "cwd": project(n), "source": "cli", "base_instructions": w.text(800)})
	for i := range turns {
		turn := uuid('7', n, i+1)
		item := func(kind, part, text string) {
			line("event_msg", object{"type": "item_completed", "thread_id": thread, "turn_id": turn, "item": object{"type": kind, "id": "i", "content": []object{{"type": part, "text": text}}}})
		}
		message := func(role, text string) {
			line("response_item", object{"type": "message", "role": role, "content": []object{{"type": "text", "text": text}}})
		}
		line("event_msg", object{"type": "task_started", "turn_id": turn})
		line("turn_context", object{"turn_id": turn, "cwd": project(n)})
		asked, answered := w.text(30), w.text(100)
		message("user", asked)
		item("UserMessage", "text", asked)
		for range 3 {
			line("response_item", object{"type": "function_call", "name": "exec_command", "arguments": w.text(15)})
			out := w.text(100)
			line("event_msg", object{"type": "item_completed", "turn_id": turn, "item": object{"type": "CommandExecution", "output": out}})
			line("response_item", object{"type": "function_call_output", "output": out})
			line("event_msg", object{"type": "token_count", "info": object{"total": w.text(40)}})
		}
		message("assistant", answered)
		item("AgentMessage", "Text", answered)
		line("event_msg", object{"type": "task_complete", "turn_id": turn, "last_agent_message": answered})
	}
}

// claudeLog writes a transcript as Claude Code does.
func claudeLog(home string, n int, w *writer) {
	begin := begins(n)
	dir := filepath.Join(home, ".claude", "projects", "-src-project"+strconv.Itoa(n%50))
	check(os.MkdirAll(dir, 0o700))
	session := uuid('4', n, 0)
	f, err := os.Create(filepath.Join(dir, session+".jsonl"))
	check(err)
	defer f.Close()
	second := 0
	line := func(kind string, more object) {
		more["type"], more["sessionId"], more["uuid"], more["parentUuid"] = kind, session, uuid('4', n, 1000+second), uuid('4', n, 999+second)
		more["timestamp"], more["cwd"], more["isSidechain"] = begin.Add(time.Duration(second)*time.Second), project(n), false
		w.line(f, more)
		second++
	}
	line("attachment", object{"attachment": object{"content": w.text(800)}})
	for i := range turns {
		prompt := uuid('4', n, i+1)
		answer := func(stop, kind string, block object) {
			block["type"] = kind
			line("assistant", object{"message": object{"id": fmt.Sprintf("msg_%d_%d", i, second), "role": "assistant", "model": "m", "content": []object{block}, "stop_reason": stop, "usage": object{"detail": w.text(30)}}})
		}
		line("user", object{"promptId": prompt, "message": object{"role": "user", "content": w.text(30)}})
		for range 3 {
			answer("tool_use", "tool_use", object{"id": "x", "name": "Bash", "input": object{"command": w.text(15)}})
			out := w.text(120)
			line("user", object{"promptId": prompt, "toolUseResult": object{"stdout": out}, "message": object{"role": "user", "content": []object{{"type": "tool_result", "content": out}}}})
			line("attachment", object{"attachment": object{"content": w.text(40)}})
		}
		answer("end_turn", "text", object{"text": w.text(100)})
	}
}
