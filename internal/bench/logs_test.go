package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"
	_ "modernc.org/sqlite" // the driver
)

// frame compresses a text.
var frame = func() func(text []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	check(err)
	return func(text []byte) []byte { return w.EncodeAll(text, nil) }
}()

// kimiLog writes a wire as Kimi Code does.
func kimiLog(home string, n int, w *writer) {
	root := filepath.Join(home, ".kimi-code")
	session := "session_" + uuid('4', n, 0)
	dir := filepath.Join(root, "sessions", "wd_project"+strconv.Itoa(n%50)+"_0123456789ab", session)
	check(os.MkdirAll(filepath.Join(dir, "agents", "main"), 0o700))
	index, err := os.OpenFile(filepath.Join(root, "session_index.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	defer index.Close()
	w.line(index, object{"sessionId": session, "sessionDir": dir, "workDir": project(n)})
	f, err := os.Create(filepath.Join(dir, "agents", "main", "wire.jsonl"))
	check(err)
	defer f.Close()
	ms := begins(n).UnixMilli()
	line := func(kind string, more object) {
		ms += 1000
		more["time"] = ms
		_, err := fmt.Fprintf(f, "{\"type\":%q,%s\n", kind, w.json(more)[1:])
		check(err)
	}
	line("metadata", object{"protocol_version": "1.5"})
	for i := range turns {
		line("turn.prompt", object{"turnId": i, "promptId": "msg_" + uuid('4', n, i+1), "input": []object{{"type": "text", "text": w.text(30)}}, "origin": object{"kind": "user"}})
		line("context.append_message", object{"message": object{"role": "user", "content": w.text(400)}})
		event := func(kind string, more object) {
			more["type"], more["turnId"] = kind, strconv.Itoa(i)
			line("context.append_loop_event", object{"event": more})
		}
		for range 3 {
			event("step.begin", object{})
			event("tool.call", object{"input": w.text(15)})
			event("tool.result", object{"output": w.text(100)})
			event("step.end", object{"finishReason": "tool_use"})
			line("agent.message.appended", object{"kind": "event", "text": w.text(140)})
		}
		event("step.begin", object{})
		event("content.part", object{"part": object{"type": "text", "text": w.text(100)}})
		event("step.end", object{"finishReason": "end_turn"})
		line("turn.ended", object{"turnId": i, "reason": "completed"})
	}
}

// dshLog writes a session's file as DSH does, a frame for some lines. What counts as written is their text.
func dshLog(home string, n int, w *writer) {
	session := "session-" + uuid('4', n, 0)
	dir := filepath.Join(home, ".dsh", "sessions", "--src-project"+strconv.Itoa(n%50)+"--", session)
	check(os.MkdirAll(dir, 0o700))
	f, err := os.Create(filepath.Join(dir, "session.jsonl.zstd"))
	check(err)
	defer f.Close()
	ms, seq := begins(n).UnixMilli(), 0
	var batch bytes.Buffer
	flush := func() {
		_, err := f.Write(frame(batch.Bytes()))
		check(err)
		batch.Reset()
	}
	line := func(kind string, data any) {
		raw := w.json(data)
		_, err := fmt.Fprintf(&batch, "{\"type\":%q,\"seq\":%d,\"time\":%d,\"data\":%s}\n", kind, seq, ms+int64(seq)*1000, raw)
		check(err)
		seq++
	}
	w.line(&batch, object{"type": "session", "version": 0, "id": session, "createdAt": ms, "cwd": project(n)})
	flush()
	parts := func(text string) []object { return []object{{"type": "text", "text": text}} }
	for i := range turns {
		line("turn/start", object{"turn": i + 1})
		line("user/message", object{"role": "user", "content": parts(w.text(30)), "source": object{"kind": "user"}})
		line("user/message", object{"content": parts(w.text(200)), "source": object{"kind": "plugin"}})
		flush()
		for range 3 {
			line("text-chunks", object{"chunks": w.text(140)})
			line("tool/call", object{"turn": i + 1, "arguments": w.text(15)})
			line("tool/result", object{"turn": i + 1, "content": w.text(100)})
			flush()
		}
		line("assistant/message", object{"turn": i + 1, "message": object{"role": "assistant", "content": parts(w.text(100))}})
		line("turn/end", object{"turn": i + 1, "reason": object{"kind": "completed"}})
		flush()
	}
}

// database makes one of a host with its schema, and writes to it in one transaction.
func database(file, schema string, write func(*sql.Tx)) {
	check(os.MkdirAll(filepath.Dir(file), 0o700))
	text, err := os.ReadFile(schema)
	check(err)
	db, err := sql.Open("sqlite", file)
	check(err)
	_, err = db.Exec(string(text))
	check(err)
	tx, err := db.Begin()
	check(err)
	write(tx)
	check(tx.Commit())
	check(db.Close())
}

// hermesLogs writes a database as Hermes does. A half of the sessions come from a messenger: they do not say where they
// work.
func hermesLogs(home string, sessions int, w *writer) {
	database(filepath.Join(home, ".hermes", "state.db"), "../../hooks/hermes/testdata/schema.sql", func(tx *sql.Tx) {
		session, err := tx.Prepare("INSERT INTO sessions (id, source, model_config, started_at, ended_at, end_reason, cwd) VALUES (?, ?, '{}', ?, ?, 'new_session', ?)")
		check(err)
		message, err := tx.Prepare("INSERT INTO messages (session_id, role, content, timestamp, finish_reason, api_content) VALUES (?, ?, ?, ?, ?, ?)")
		check(err)
		for n := range sessions {
			id, at := begins(n).Format("20060102_150405_")+fmt.Sprintf("%06x", n), float64(begins(n).Unix())
			source, cwd := "cli", any(project(n))
			if n%2 == 1 {
				source, cwd = "telegram", nil
			}
			_, err := session.Exec(id, source, at, at+1000, cwd)
			check(err)
			add := func(role, text, finish, more string) {
				at += 10.5
				_, err := message.Exec(id, role, text, at, finish, more)
				check(err)
				w.written += int64(len(text) + len(more))
			}
			for range turns {
				asked := w.text(30)
				add("user", asked, "", asked+w.text(200))
				for range 3 {
					add("assistant", "", "tool_calls", w.text(15))
					add("tool", w.text(350), "", "")
				}
				add("assistant", w.text(100), "stop", "")
			}
		}
	})
}

// openclawLogs writes a database as OpenClaw does.
func openclawLogs(home string, sessions int, w *writer) {
	database(filepath.Join(home, ".openclaw", "agents", "main", "agent", "openclaw-agent.sqlite"), "../../hooks/openclaw/testdata/schema.sql", func(tx *sql.Tx) {
		window, err := tx.Prepare("INSERT INTO session_windows VALUES (?, ?)")
		check(err)
		event, err := tx.Prepare("INSERT INTO transcript_events (session_id, seq, event_json, created_at, event_zstd, event_utf8_bytes) VALUES (?, ?, ?, ?, ?, ?)")
		check(err)
		for n := range sessions {
			id, seq := uuid('4', n, 0), 0
			_, err := window.Exec(id, "agent:main:explicit:"+id)
			check(err)
			line := func(v object) {
				at := begins(n).UnixMilli() + int64(seq)*1000
				v["timestamp"], v["id"] = time.UnixMilli(at).UTC(), uuid('4', n, seq)
				raw := w.json(v)
				var packed []byte
				text := any(string(raw))
				if len(raw) > 8<<10 {
					packed, text = frame(raw), nil
				}
				_, err := event.Exec(id, seq, text, at, packed, len(raw))
				check(err)
				seq++
			}
			line(object{"type": "session", "version": 4, "cwd": project(n)})
			for i := range turns {
				run := uuid('4', n, i+1)
				message := func(role string, more object) {
					more["role"] = role
					line(object{"type": "message", "message": more})
				}
				answer := func(why string, content ...object) {
					message("assistant", object{"content": content, "stopReason": why, "usage": object{"detail": w.text(30)}, "__openclaw": object{"runId": run}})
				}
				message("user", object{"content": w.text(30), "idempotencyKey": run + ":user"})
				for k := range 3 {
					answer("toolUse", object{"type": "toolCall", "arguments": w.text(15)})
					words := 100
					if k == 2 {
						words = 2000 // is compressed
					}
					message("toolResult", object{"content": w.text(words)})
				}
				answer("stop", object{"type": "text", "text": w.text(100)})
			}
		}
	})
}
