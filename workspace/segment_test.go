package workspace

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

func terms(text string) []string {
	var out []string
	eachTerm(text, func(term string, _ termKind) { out = append(out, term) })
	return out
}

func TestSegment(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"the of and", ""},
		{"Release trains leave", "releas train leav"},
		{"CAFÉ Straße naïve cafe\u0301 łódź", "caf straße naiv caf lodz"},
		{"ＦＵＬＬ　ｗｉｄｔｈ１２", "full width12"},
		{"ﾃｽﾄ", "テス スト"},
		{"项目评审安排", "项目 目评 评审 审安 安排"},
		{"猫", "猫"},
		{"用Go写", "用 go 写"},
		{"レビューは木曜日", "レビ ビュ ュー ーは は木 木曜 曜日"},
		{"심사는 목요일 집", "심사 사는 심사는 목요 요일 목요일 집"},
		{"getHTTPServer", "get http server gethttpserver"},
		{"GetUserName get_user_name get-user-name", "get user nam getusernam get user nam getusernam get user nam getusernam"},
		{"--dry-run", "dry run dryrun"},
		{"error[E0382]: x", "error e0382 x"},
		{"ERR_CONN_RESET", "err conn reset errconnreset"},
		{"v1.2.3 and 10.0.0.1", "v1 2 3 v1.2.3 10 0 0 1 10.0.0.1"},
		{"src/auth/middleware.ts.", "src auth middlewar ts middleware.ts src/auth/middleware.ts"},
		{`C:\src\main.go`, "c src main go main.go c:/src/main.go"},
		{"Osprey's don't", "osprey"},
		{"2026-11-29", "2026 11 29 20261129"},
		{"a\x00b \u202eword\u202c", "b word"},
		{"🦀 👨‍👩‍👧", ""},
		{strings.Repeat("x", 200) + " y", "y"},
	} {
		if got := strings.Join(terms(test.text), " "); got != test.want {
			t.Errorf("%q\n got %q\nwant %q", test.text, got, test.want)
		}
	}
}

func TestStem(t *testing.T) {
	for _, same := range [][]string{
		{"release", "releases", "released", "releasing"},
		{"cache", "caches", "cached", "caching"},
		{"query", "queries"},
		{"run", "running"},
		{"deploy", "deploys", "deployed", "deploying"},
		{"setting", "settings", "set"},
		{"process", "processes", "processing", "processed"},
		{"class", "classes"},
		{"fix", "fixes", "fixed", "fixing"},
		{"embed", "embeds", "embedding", "embeddings"},
		{"make", "making"},
	} {
		for _, w := range same[1:] {
			if stem(w) != stem(same[0]) {
				t.Errorf("%s: %s, %s: %s", same[0], stem(same[0]), w, stem(w))
			}
		}
	}
	for _, apart := range [][2]string{{"status", "state"}, {"string", "str"}, {"thing", "the"}, {"need", "ned"}, {"speed", "spe"}, {"analysis", "analys"}, {"king", "k"}, {"bus", "bu"}} {
		if stem(apart[0]) == stem(apart[1]) {
			t.Errorf("%v meet in %s", apart, stem(apart[0]))
		}
	}
}

func TestSegmentIsBounded(t *testing.T) {
	text := strings.Repeat("word ", maxIndexed/5) + " beyond"
	if slices.Contains(terms(text), "beyond") {
		t.Error("text beyond the bound was segmented")
	}
}

func FuzzSegment(f *testing.F) {
	for _, s := range []string{"", "getHTTPServer", "项目评审", "심사는", "ﾃｽﾄ e\u0301", "a_b-c.d/e\\f:g@h'i", "\xff\xfe", "İstanbul ǅ ﬀ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		eachTerm(text, func(term string, kind termKind) {
			switch {
			case term == "", len(term) > maxTerm:
				t.Errorf("term %q of %q", term, text)
			case !utf8.ValidString(term):
				t.Errorf("term %q of %q is not UTF-8", term, text)
			case strings.ContainsFunc(term, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' }):
				t.Errorf("term %q of %q", term, text)
			}
		})
		// Terms of a term that stands alone are found by it again.
		whole := strings.Join(terms(text), " ")
		if strings.Join(terms(strings.ToValidUTF8(text, "\uFFFD")), " ") != whole {
			t.Errorf("%q differs from its valid form", text)
		}
	})
}

func FuzzSnippet(f *testing.F) {
	f.Add("The pangolin met. It was 项目评审安排在周四。 e\u0301 👨‍👩‍👧 end", "pangolin 评审", 20)
	f.Add(strings.Repeat("x", 300), "x", 10)
	f.Add("Use this. ```0", "0", 20) // no block begins within a line
	f.Add("Do this. ```go\nx := 1\n```\nAnd that.\n```\npangolin()\nmore()\n```\nDone.", "pangolin", 50)
	f.Fuzz(func(t *testing.T, text, query string, n int) {
		if n < 0 || n > 5000 || strings.Contains(text, "user: ") || strings.Contains(text, "assistant: ") { // fences could not tell who says it
			return
		}
		text = harmless.Text(strings.ToValidUTF8(text, ""))
		d := docText{parts: []docPart{{"user", text}, {"assistant", text}}}
		q := newQuery(query)
		for i := range q.asked {
			q.terms = append(q.terms, q.asked[i])
			q.terms[i].weight = 1
		}
		got, cut := snippet(d, q, n)
		if countChars(got) > n {
			t.Errorf("%d characters, want at most %d: %q", countChars(got), n, got)
		}
		if !utf8.ValidString(got) {
			t.Errorf("not UTF-8: %q", got)
		}
		if whole, _ := snippet(d, q, 1<<30); !cut && n > 0 && got != whole {
			t.Errorf("cut and not said so: %q", got)
		}
		if fences(text)%2 == 0 && fences(got)%2 != 0 {
			t.Errorf("a fence is missing: %q", got)
		}
	})
}

// fences counts the lines that begin or end a block of code.
func fences(text string) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if isCode(strings.TrimPrefix(strings.TrimPrefix(line, "user: "), "assistant: ")) {
			n++
		}
	}
	return n
}

func FuzzRow(f *testing.F) {
	for _, s := range []string{
		`{"name":"user","content":[{"type":"text","text":"hi"}],"role":"user","id":"1:user","metadata":{"host":"codex","turn_id":"1"},"created_at":"2026-11-29T10:01:00+00:00"}`,
		`{"role":"assistant","content":"x","metadata":7,"created_at":null,"id":{}}`, `{"role":"user","content":[1,null,{"type":"text"}]}`, `[]`, `null`, "\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, ok := parseRow(line, noon.Location())
		if id, ok2 := rowID(line); ok != ok2 || id != m.ID {
			t.Errorf("rowID says %q, %v; parseRow %q, %v", id, ok2, m.ID, ok)
		}
		if ok && !utf8.ValidString(m.Text) {
			t.Errorf("text %q", m.Text)
		}
	})
}

func FuzzFrontMatter(f *testing.F) {
	for _, s := range []string{"", "---\nname: a\ndescription: 'it''s'\ntags:\n- x\n---\n\nbody\n", "---\nname: \"x\n---", "---\r\nname: a\r\n---\r\nb", "---\n:\n ---\n---\n", "---\na: 'x\n  y'\n---\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, body := parseFrontMatter(text)
		if !strings.HasSuffix(text, body) {
			t.Errorf("the body %q is no end of %q", body, text)
		}
		// What is written is read back.
		want := harmless.Line(strings.ToValidUTF8(text, ""))
		keys, body := parseFrontMatter("---\ndescription: " + yamlScalar(want) + "\n---\nbody")
		if keys["description"] != want || body != "body" {
			t.Errorf("wrote %q, read %q, body %q", want, keys["description"], body)
		}
	})
}
