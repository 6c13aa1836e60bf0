package install

import (
	"strings"
	"testing"
)

var testPath = JSONPath{"a", "b", "c"}

func TestSet(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"":                             "{\n  \"a\": {\n    \"b\": {\n      \"c\": true\n    }\n  }\n}\n",
		"null":                         "{\n  \"a\": {\n    \"b\": {\n      \"c\": true\n    }\n  }\n}\n",
		"{}":                           "{\n  \"a\": {\n    \"b\": {\n      \"c\": true\n    }\n  }\n}",
		`{"a":{"b":{"c":false}}}`:      `{"a":{"b":{"c":false}}}`,
		`{"a":{"b":{}},"z":1}`:         `{"a":{"b":{"c":true}},"z":1}`,
		`{"a": {"x": 1}}`:              `{"a": {"x": 1, "b": {"c":true}}}`,
		"\ufeff{\r\n\t\"x\": 1\r\n}":   "\ufeff{\r\n\t\"x\": 1,\r\n\t\"a\": {\r\n\t\t\"b\": {\r\n\t\t\t\"c\": true\r\n\t\t}\r\n\t}\r\n}",
		"{\n  \"a\": {}, // mine\n}\n": "{\n  \"a\": {\n    \"b\": {\n      \"c\": true\n    }\n  }, // mine\n}\n",
	} {
		out, err := testPath.Set([]byte(src), true)
		if err != nil || string(out) != want {
			t.Errorf("%q: %v\n%q, want\n%q", src, err, out, want)
		}
		again, err := testPath.Set(out, true)
		if err != nil || string(again) != string(out) {
			t.Errorf("%q: not the same twice: %q, %v", src, again, err)
		}
		back, err := testPath.Unset(out, []byte(src))
		if strings.Contains(src, `"c"`) {
			continue
		}
		if err != nil || strings.Contains(string(back), `"c"`) || strings.Contains(string(back), `"b"`) != strings.Contains(src, `"b"`) ||
			strings.Contains(string(back), `"a"`) != strings.Contains(src, `"a"`) {
			t.Errorf("%q: taken out again %q, %v", src, back, err)
		}
	}
	for src, want := range map[string]string{
		`{"a":7}`:         `"a" is no object`,
		`{"a":{"b":[]}}`:  `"a.b" is no object`,
		`{"a":{},"a":{}}`: `"a" is there twice`,
		`[]`:              "does not hold a JSON object",
		`{a:1}`:           "cannot be read as JSON",
	} {
		if out, err := testPath.Set([]byte(src), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", src, out, err)
		}
	}
}

func TestUnset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, original, want string }{
		{`{"a":{"b":{"c":1}}}`, ``, `{}`},
		{`{"a":{"b":{"c":1,"d":2}}}`, ``, `{"a":{"b":{"d":2}}}`},
		{`{"a":{"b":{"c":1}},"z":[]}`, `{"a":{}}`, `{"a":{},"z":[]}`},
		{`{"a":{"b":{"c":1}}}`, `{"a":{"b":{}}}`, `{"a":{"b":{}}}`},
		{`{"a":{"b":{}}}`, ``, `{"a":{"b":{}}}`},
		{"{\"a\":{\"b\":{\"c\":1} /* mine */ }}", ``, "{\"a\":{ /* mine */ }}"},
		{``, ``, ``},
		{`{"a":7}`, ``, `{"a":7}`},
	} {
		if got, err := testPath.Unset([]byte(c.src), []byte(c.original)); err != nil || string(got) != c.want {
			t.Errorf("%s, was %s: %s, %v, want %s", c.src, c.original, got, err, c.want)
		}
	}
	if _, err := testPath.Unset([]byte(`{"a":{"b":{"c":1,"c":2}}}`), nil); err == nil {
		t.Error("of two with one name one was taken out")
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	path := JSONPath{"p", "allow"}
	for src, want := range map[string]string{
		``:                            ``,
		`{"p":{}}`:                    `{"p":{}}`,
		`{"p":{"allow":["x"]}}`:       `{"p":{"allow":["x","me"]}}`,
		`{"p":{"allow":["me", "x"]}}`: `{"p":{"allow":["me", "x"]}}`,
		"{\n  \"p\": {\n    \"allow\": [\n      \"x\"\n    ]\n  }\n}": "{\n  \"p\": {\n    \"allow\": [\n      \"x\",\n      \"me\"\n    ]\n  }\n}",
	} {
		out, err := path.Add([]byte(src), "me")
		if err != nil || string(out) != want {
			t.Errorf("%s: %s, %v, want %s", src, out, err, want)
		}
		back, err := path.Drop(out, "me")
		if err != nil || strings.Contains(string(back), "me") || !strings.Contains(src, "me") && string(back) != src {
			t.Errorf("%s: taken out again %s, %v", src, back, err)
		}
	}
	if _, err := path.Add([]byte(`{"p":{"allow":{}}}`), "me"); err == nil || !strings.Contains(err.Error(), `"p.allow" is no list`) {
		t.Error(err)
	}
}

func FuzzJSONPath(f *testing.F) {
	for _, src := range []string{"", `{"a":{"b":{"c":1}}}`, "\ufeff{\n  // x\n  \"a\": {\"b\": [\"s\",],},\n}", `{"a":{"b":["s"]}}`} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := testPath.Set(src, true)
		if err != nil {
			return
		}
		if again, err := testPath.Set(out, true); err != nil || string(again) != string(out) {
			t.Errorf("%q: then %q, %v", out, again, err)
		}
		back, err := testPath.Unset(out, src)
		if err != nil {
			t.Errorf("%q: %v", out, err)
		}
		if gone, err := testPath.Unset(back, src); err != nil || string(gone) != string(back) {
			t.Errorf("%q: then %q, %v", back, gone, err)
		}
		if listed, err := testPath[:2].Add(src, "s"); err == nil {
			if _, err := testPath[:2].Drop(listed, "s"); err != nil {
				t.Errorf("%q: %v", listed, err)
			}
		}
	})
}
