package hooks

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// shortened is what is left of a payload when nearly all is used up that its strings
// may have.
func shortened(t testing.TB, in string) string {
	t.Helper()
	s := newShortener(strings.NewReader(in))
	s.kept = maxStrings - 8*minString
	out, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestShorten(t *testing.T) {
	t.Parallel()
	short := `{"a":"x \" y","b":[1,"\u00e9\\"]}`
	if got := shortened(t, short); got != short {
		t.Errorf("a short payload became %s", got)
	}
	for name, words := range map[string]string{
		"words":          "lorem ",
		"no words":       "x",
		"escapes":        `\"`,
		"backslashes":    `\\`,
		"hex escapes":    `\u6f22`,
		"pairs":          `\ud83d\ude00`,
		"runes":          "漢",
		"four-byte":      "😀",
		"odd beginnings": `\\\"\u00e9é `,
	} {
		long := strings.Repeat(words, (16*minString)/len(words))
		in := `{"first":"` + long + `","n":1,"second":"` + long + `","last":"BEGIN ` + long + ` END"}`
		got := shortened(t, in)
		if len(got) > 8*minString {
			t.Errorf("%s: %d bytes are left", name, len(got))
		}
		var v struct {
			First, Second, Last string
			N                   int
		}
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v.N != 1 || !strings.HasPrefix(v.Last, "BEGIN ") || !strings.HasSuffix(v.Last, " END") || strings.Count(v.First, "[… cut …]") != 1 {
			t.Errorf("%s: cut in the wrong place", name)
		}
		if strings.ContainsRune(v.First, utf8.RuneError) && name != "pairs" {
			t.Errorf("%s: cut within a rune", name)
		}
	}
}

// What is cut is not cut within a word: half a secret is not known for one.
func TestShortenKeepsWordsWhole(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("s3cret", 50)
	got := shortened(t, `"`+strings.Repeat(word+" ", (16*minString)/len(word))+`"`)
	for _, w := range strings.Fields(strings.ReplaceAll(strings.Trim(got, `"`), cutMark, " ")) {
		if w != word {
			t.Fatalf("a piece of %d bytes is left", len(w))
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add([]byte(`{"a":"b\"c"}`), 3)
	f.Add([]byte(`["\\","\ud83d\ude00",{"x":1e9}]`), 1)
	f.Fuzz(func(t *testing.T, data []byte, copies int) {
		// Strings are short in a fuzzer's inputs; one of them is made long.
		text := bytes.ReplaceAll(data, []byte(`"`), []byte(`"`+strings.Repeat("漢\\u00e9 ", max(0, min(copies, 2000)))))
		for _, in := range [][]byte{data, text} {
			s := newShortener(iotest.OneByteReader(bytes.NewReader(in)))
			s.kept = maxStrings // the least that a string may have
			out, err := io.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			if len(in) < minString/2 && !bytes.Equal(out, in) && json.Valid(in) {
				t.Errorf("%q became %q", in, out)
			}
			if json.Valid(in) && !json.Valid(out) {
				t.Errorf("%q is no JSON any more: %q", in, out)
			}
		}
	})
}
