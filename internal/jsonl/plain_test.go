package jsonl

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"type":"a","payload":{"type":"b"}}`:                         "b",
		`{"payload":{"type":"b"},"type":"a"}`:                         "b",
		`{"payload":{"x":"}","y":[{"type":"c"},"]"],"type":"b"}}`:     "b",
		` { "payload" : { "z" : -1.5e3 , "n":null, "type" : "b" } } `: "b",
		`{"x":"\\\\","y":"\\\"","payload":{"type":"b"}}`:              "b",
		`{"x":"\"payload\":{\"type\":\"c\"}","payload":{"type":"b"}}`: "b",
		`{"payload":{"type":"b`:                                       "",
		`{"payload":{"type":"b"`:                                      "b", // what comes after is not looked at
		`{"payload":{"type":"\u0062"}}`:                               "",
		`{"payl\u006fad":{"type":"b"}}`:                               "",
		`{"payload":{"type":1}}`:                                      "",
		`{"payload":["type"]}`:                                        "",
		`{"payload":"type"}`:                                          "",
		`{"payload":{}}`:                                              "",
		`{}`:                                                          "",
		`{"x":1 "payload":{"type":"b"}}`:                              "",
		`["payload",{"type":"b"}]`:                                    "",
		``:                                                            "",
	} {
		if got := string(Plain([]byte(line), "payload", "type")); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// firstMembers decodes an object; of a key that stands in it twice, the first counts.
// It is nil if there is none.
func firstMembers(object []byte) map[string]json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return nil
		}
		if _, twice := members[key.(string)]; !twice {
			members[key.(string)] = value
		}
	}
	return members
}

// FuzzPlain: what is found without decoding is what decoding finds, unless a
// backslash keeps it from being found.
func FuzzPlain(f *testing.F) {
	for _, line := range []string{`{"a":{"b":"c"}}`, `{"x":["]",{"a":{"b":"d"}}],"a":{"y":"\\\"","b":"c"}}`, `{"a":{"b":"\n"}} `, `{"a": {"b":"\u00e9"}}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got := Plain(line, "a", "b")
		if !json.Valid(line) || got == nil && bytes.IndexByte(line, '\\') >= 0 {
			return
		}
		found := got != nil
		var want, text string
		is := json.Unmarshal(firstMembers(firstMembers(line)["a"])["b"], &want) == nil && firstMembers(firstMembers(line)["a"])["b"][0] == '"'
		if found {
			if err := json.Unmarshal([]byte(`"`+string(got)+`"`), &text); err != nil {
				t.Fatalf("%q: %v", got, err)
			}
		}
		if bytes.IndexByte(line, '\\') < 0 && (found != is || text != want) {
			t.Errorf("%q: got %q, %v, want %q, %v", line, text, found, want, is)
		}
	})
}
