package hooks

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadPayload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want map[string]string // members read as strings
		bad  bool
	}{
		"object":              {`{"a":"x","b":"y"}`, map[string]string{"a": "x", "b": "y"}, false},
		"newline after":       {"{\"a\":\"x\"}\n", map[string]string{"a": "x"}, false},
		"second value":        {`{"a":"x"}{"a":"y"}`, map[string]string{"a": "x"}, false},
		"garbage after":       {"{\"a\":\"x\"}\x00\x00", map[string]string{"a": "x"}, false},
		"BOM":                 {"\xef\xbb\xbf{\"a\":\"x\"}", map[string]string{"a": "x"}, false},
		"exact keys":          {`{"prompt":"real","PROMPT":"shadow"}`, map[string]string{"prompt": "real", "PROMPT": "shadow"}, false},
		"number":              {`{"a":12345678901234567890}`, map[string]string{"a": "12345678901234567890"}, false},
		"other types":         {`{"a":["x"],"b":{"c":1},"d":true,"e":null}`, map[string]string{"a": "", "b": "", "d": "", "e": ""}, false},
		"lone surrogate":      {`{"a":"x\ud800y"}`, map[string]string{"a": "x\uFFFDy"}, false},
		"invalid UTF-8":       {"{\"a\":\"x\xff\xfey\"}", map[string]string{"a": "x\uFFFD\uFFFDy"}, false},
		"cut":                 {`{"a":"x","b":"y`, map[string]string{"a": "x", "b": ""}, true},
		"cut between":         {`{"a":"x",`, map[string]string{"a": "x"}, true},
		"cut behind a key":    {`{"a":`, nil, true},
		"cut at once":         {`{`, nil, true},
		"empty":               {"", nil, true},
		"array":               {`[1]`, nil, true},
		"null":                {"null", nil, true},
		"text":                {"hello", nil, true},
		"binary":              {"\x00\x01\x02\xff", nil, true},
		"deep":                {`{"a":"x","b":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, map[string]string{"a": "x"}, true},
		"bad value":           {`{"a":"x","b":wrong}`, map[string]string{"a": "x"}, true},
		"key is not a string": {`{"a":"x",1:2}`, map[string]string{"a": "x"}, true},
	} {
		p, err := ReadPayload(strings.NewReader(c.in))
		if (err != nil) != c.bad {
			t.Errorf("%s: error %v", name, err)
		}
		for key, want := range c.want {
			if got := p.String(key); got != want {
				t.Errorf("%s: %s = %q, want %q", name, key, got, want)
			}
		}
		if errors.Is(err, io.EOF) != (c.in == "") {
			t.Errorf("%s: %v, as if there was nothing", name, err)
		}
		if c.want == nil && len(p) > 0 {
			t.Errorf("%s: read %v", name, p)
		}
	}
}

func TestReadPayloadIsBounded(t *testing.T) {
	t.Parallel()
	huge := io.MultiReader(strings.NewReader(`{"session_id":"s","prompt":"`), endless{})
	p, err := ReadPayload(huge)
	if err == nil || p.String("session_id") != "s" {
		t.Errorf("read %v, error %v", p.String("session_id"), err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestReadPayloadDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go w.Write([]byte(`{"session_id":"s"}`))
		start := time.Now()
		p, err := ReadPayload(r)
		if err != nil || p.String("session_id") != "s" || time.Since(start) != 0 {
			t.Errorf("with an open end: %v, %v after %v", p, err, time.Since(start))
		}
		w.Close()

		r, w = io.Pipe()
		go w.Write([]byte(`{"session_id":"s","prompt":`))
		start = time.Now()
		p, err = ReadPayload(r)
		if err == nil || p.String("session_id") != "s" || time.Since(start) != stdinIdle {
			t.Errorf("with nothing more: %v, %v after %v", p, err, time.Since(start))
		}
		w.CloseWithError(errors.New("end of test"))

		// What comes after that is too late, and is not taken for another payload.
		r, w = io.Pipe()
		start = time.Now()
		go func() {
			time.Sleep(stdinIdle + time.Millisecond)
			w.Write([]byte(`{"session_id":"s"}`))
			w.Close()
		}()
		p, err = ReadPayload(r)
		if err == nil || errors.Is(err, io.EOF) || len(p) > 0 || time.Since(start) != stdinIdle {
			t.Errorf("with nothing at all: %v, %v after %v", p, err, time.Since(start))
		}
		r.CloseWithError(errors.New("end of test"))
		time.Sleep(time.Second)
	})
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"plain"`: "plain",
		`[{"type":"text","text":"one"},{"type":"image","url":"x"},{"type":"text","text":"two"}]`: "one\n\ntwo",
		`[{"type":"image"}]`: "",
		`[{"type":"text"}]`:  "",
		`["one"]`:            "",
		`{"text":"x"}`:       "",
		`null`:               "",
		`7`:                  "7",
	} {
		if got := (Payload{"prompt": json.RawMessage(in)}).Text("prompt"); got != want {
			t.Errorf("Text of %s = %q, want %q", in, got, want)
		}
	}
}

func FuzzReadPayload(f *testing.F) {
	for _, host := range []string{"codex", "claude-code"} {
		files, err := filepath.Glob(filepath.Join("..", "testdata", "payloads", host, "*.json"))
		if err != nil || len(files) == 0 {
			f.Fatalf("no payloads of %s: %v", host, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadPayload(strings.NewReader(string(data)))
		for key := range p {
			p.String(key)
			p.Text(key)
			p.Object(key).String("path")
		}
		if err == nil && !strings.Contains(string(data), "{") {
			t.Errorf("an object was read from %q", data)
		}
	})
}
