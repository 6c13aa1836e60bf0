package hooks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// What bounds a payload, in bytes.
const (
	maxPayload = 64 << 20 // as it comes
	maxHeld    = 6 << 20  // its long strings shortened; so a hook does with 40 MB
)

// stdinIdle is how long a payload may pause. On a machine that has nothing to spare a
// host may need more than a second to write it.
const stdinIdle = 2 * time.Second

// Payload is the JSON object that a host writes to a hook's stdin. Keys match
// exactly. Values of unexpected types read as absent, never as an error.
type Payload map[string]json.RawMessage

// ReadPayload reads one JSON object and does not wait for the end of the
// stream. It returns the members that arrived whole together with the error
// that ended the reading: a cut payload still names its session. The error is
// [io.EOF] only if there was nothing to read. It gives up when nothing arrives for
// two seconds. Long strings lack their middle.
func ReadPayload(r io.Reader) (Payload, error) { return readPayload(r, stdinIdle) }

func readPayload(r io.Reader, idle time.Duration) (Payload, error) {
	p := Payload{}
	dec := json.NewDecoder(io.LimitReader(newShortener(skipBOM(&patient{r: io.LimitReader(r, maxPayload), idle: idle})), maxHeld))
	tok, err := dec.Token()
	if err != nil {
		return p, fmt.Errorf("read payload: %w", err)
	}
	if tok != json.Delim('{') {
		return p, errors.New("read payload: not a JSON object")
	}
	if err = p.readMembers(dec); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return p, fmt.Errorf("read payload: %w", err)
	}
	return p, nil
}

// readMembers reads what is in an object, and its end.
func (p Payload) readMembers(dec *json.Decoder) error {
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return err
		}
		p[key.(string)] = v
	}
	_, err := dec.Token()
	return err
}

func skipBOM(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, 64<<10)
	if head, err := b.Peek(3); err == nil && bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		b.Discard(3)
	}
	return b
}

// patient fails a read that takes longer than idle. The reading goroutine is
// left behind then; the process is about to end.
type patient struct {
	r    io.Reader
	idle time.Duration
	own  []byte // what r reads into
	err  error  // it has given up
}

func (p *patient) Read(buf []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	if p.err != nil {
		return 0, p.err
	}
	done := make(chan result, 1)
	if len(p.own) < len(buf) {
		p.own = make([]byte, len(buf))
	}
	own := p.own[:len(buf)]
	go func() {
		n, err := p.r.Read(own)
		done <- result{n, err}
	}()
	timer := time.NewTimer(p.idle)
	defer timer.Stop()
	select {
	case res := <-done:
		return copy(buf, own[:res.n]), res.err
	case <-timer.C:
		p.err = errors.New("nothing arrived in time")
		return 0, p.err
	}
}

// String returns a string member. A number is returned as it is written.
func (p Payload) String(key string) (s string) {
	raw := bytes.TrimSpace(p[key])
	switch {
	case len(raw) == 0:
	case raw[0] == '"':
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		var n json.Number
		if json.Unmarshal(raw, &n) == nil {
			return n.String()
		}
	}
	return s
}

// Text returns the text of a member that is a string or a list of content
// parts, of which those of type text count.
func (p Payload) Text(key string) string {
	if s := p.String(key); s != "" {
		return s
	}
	var parts []Payload
	if json.Unmarshal(p[key], &parts) != nil {
		return ""
	}
	var texts []string
	for _, part := range parts {
		if t := part.String("text"); t != "" && part.String("type") == "text" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n")
}

// Content is a message as [Payload.Text] reads it.
type Content string

// UnmarshalJSON implements [json.Unmarshaler]. What is no text is "".
func (c *Content) UnmarshalJSON(raw []byte) error {
	*c = Content(Payload{"": raw}.Text(""))
	return nil
}

// Decode decodes a line of a log. Members that are of another type than in v are
// left as they are in it; it is false if the line is not whole.
func Decode(line []byte, v any) bool {
	err := json.Unmarshal(line, v)
	mismatch := new(json.UnmarshalTypeError)
	return err == nil || errors.As(err, &mismatch)
}

// Object returns a member that is an object, else an empty one.
func (p Payload) Object(key string) Payload {
	var o Payload
	if json.Unmarshal(p[key], &o) != nil {
		return Payload{}
	}
	return o
}
