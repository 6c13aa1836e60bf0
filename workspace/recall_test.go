package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adrg/xdg"

	"github.com/agentscope-ai/reme-hook/client"
)

// said fills a workspace with one session for each exchange.
func said(t *testing.T, exchanges ...string) *Workspace {
	t.Helper()
	w := openAt(t, t.TempDir(), noon)
	for i, text := range exchanges {
		user, assistant, _ := strings.Cut(text, " | ")
		mustAppend(t, w, testSession(fmt.Sprint("s", i)), testTurn(i, user, assistant)...)
	}
	return w
}

func TestRecallRelevance(t *testing.T) {
	memory := []string{
		/* 0 */ "When does the release train of Project Osprey leave? | On 14 December; the code freeze begins on the 10th.",
		/* 1 */ "Please fix the failing test in the parser package. | Fixed: the lexer skipped a token; go test passes now.",
		/* 2 */ "How do we run the database migrations? | With `make migrate`; staging first, then production.",
		/* 3 */ "I get error[E0382]: borrow of moved value in src/auth/session.rs | Clone the token before it is moved.",
		/* 4 */ "What did we decide about logging? | We use slog with JSON output, never fmt.Println.",
		/* 5 */ "项目评审什么时候开？ | 项目评审安排在每周四下午三点，是的。",
		/* 6 */ "デプロイの手順を教えて | まずステージング環境にデプロイしてください。",
		/* 7 */ "배포는 언제 하나요? | 배포는 매주 금요일에 합니다.",
		/* 8 */ "Add a getUserName method to the profile service. | Added get_user_name to profile_service.py.",
		/* 9 */ "The build fails with ERR_CONN_RESET on npm install. | The proxy was down; retry with --registry set.",
		/* 10 */ "Which editor settings do I like? | Tabs of width four, dark theme, no minimap.",
		/* 11 */ "Remember that my sister is called Magdalena. | Noted.",
	}
	w := said(t, memory...)
	for _, test := range []struct {
		query string
		want  int // the first item, -1 for nothing at all
	}{
		{"when is the osprey release?", 0},
		{"When does the code freeze begin?", 0},
		{"freeze", 0},
		{"run the migration on staging", 2},
		{"E0382", 3},
		{"I see e0382 again while compiling the new crate with the nightly toolchain, any idea what this might come from?", 3},
		{"open session.rs", 3},
		{"which logger do we use for json logs", 4},
		{"评审是哪天", 5},
		{"项目评审时间", 5},
		{"デプロイ 手順", 6},
		{"ステージング環境はどこですか", 6},
		{"배포 언제", 7},
		{"getUserName", 8},
		{"get-user-name", 8},
		{"username of the profile", 8},
		{"err_conn_reset", 9},
		{"what tabs do i use", 10},
		{"What is my sister's name?", 11},
		{"magdalena", 11},

		{"Please add a test for the new function and run it.", -1},
		{"Can you explain how the garbage collector of the JVM works and what generations are?", -1},
		{"write a python script that downloads images from a website and resizes them to thumbnails", -1},
		{"good morning, what shall we do today?", -1},
		{"继续", -1},
		{"是的", -1},
		{"请帮我写一个排序算法", -1},
		{"continue", -1},
		{strings.Repeat("The quick brown fox jumps over the lazy dog near the river bank. ", 30) + "build", -1},
	} {
		items := mustPrompt(t, w, test.query)
		switch {
		case test.want < 0 && len(items) > 0:
			t.Errorf("%.60q: want nothing, got %.2f %q", test.query, items[0].Score, items[0].Snippet)
		case test.want >= 0 && (len(items) == 0 || items[0].SessionID != fmt.Sprint("s", test.want)):
			t.Errorf("%.60q: want %q, got %+v", test.query, memory[test.want], items)
		}
	}
}

func TestRecallRanks(t *testing.T) {
	ctx := context.Background()
	add := func(t *testing.T, w *Workspace, id, cwd, text string, at time.Time) {
		t.Helper()
		_, err := w.Append(ctx, client.AppendRequest{Session: testSession(id), Cwd: cwd, Events: []client.Event{
			{ID: "1:user", Role: client.User, Content: text, CreatedAt: at}, {ID: "1:assistant", Role: client.Assistant, Content: "Noted by " + id + ".", CreatedAt: at},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	order := func(t *testing.T, w *Workspace, req client.RecallRequest, want ...string) {
		t.Helper()
		res, err := w.Recall(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range res.Items {
			got = append(got, item.SessionID)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %v, want %v: %+v", got, want, res.Items)
		}
	}
	t.Run("the newer first", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		add(t, w, "new", "", "The pangolin is fed by Ada at nine.", noon.Add(-time.Hour))
		add(t, w, "old", "", "The pangolin sleeps in a burrow, says Bob.", noon.Add(-90*24*time.Hour))
		order(t, w, client.RecallRequest{Query: "pangolin"}, "new", "old")
	})
	t.Run("the short first", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		add(t, w, "long", "", "The pangolin was seen. "+strings.Repeat("Much else was said that day. ", 2000), noon.Add(-time.Hour))
		add(t, w, "short", "", "The pangolin sleeps in a burrow, says Bob.", noon.Add(-2*time.Hour))
		order(t, w, client.RecallRequest{Query: "pangolin"}, "short", "long")
	})
	t.Run("the same project first", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		repo := t.TempDir()
		for _, dir := range []string{".git", "sub/deep", "other"} {
			if err := os.MkdirAll(filepath.Join(repo, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		add(t, w, "elsewhere", "/elsewhere", "The pangolin is fed by Ada at nine with ants.", noon.Add(-time.Hour))
		add(t, w, "here", filepath.Join(repo, "other"), "The pangolin sleeps in a burrow, says Bob.", noon.Add(-48*time.Hour))
		order(t, w, client.RecallRequest{Query: "pangolin habits", Cwd: filepath.Join(repo, "sub/deep")}, "here", "elsewhere")
		order(t, w, client.RecallRequest{Query: "pangolin habits", Cwd: "/nowhere"}, "elsewhere", "here")
	})
	t.Run("a correction stands for what it corrects", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		add(t, w, "old", "/src/zoo", "The pangolin is fed by Ada at nine.", noon.Add(-48*time.Hour))
		add(t, w, "elsewhere", "/src/farm", "The pangolin is fed by Cleo at ten.", noon.Add(-47*time.Hour))
		add(t, w, "new", "/src/zoo", "The pangolin is fed by Bob at noon, no longer by Ada.", noon.Add(-24*time.Hour))
		order(t, w, client.RecallRequest{Query: "who feeds the pangolin", Cwd: "/src/zoo", Purpose: client.ForPrompt}, "new", "elsewhere")
		shown, err := w.Recall(ctx, client.RecallRequest{Query: "who feeds the pangolin", Cwd: "/src/zoo", Limit: 1, Purpose: client.ForPrompt})
		if err != nil || len(shown.Items) != 1 || shown.Items[0].Project != "zoo" {
			t.Fatalf("%+v, %v", shown, err)
		}
		// Nor does it come when the correction was shown before.
		order(t, w, client.RecallRequest{Query: "who feeds the pangolin", Cwd: "/src/zoo", Exclude: []string{shown.Items[0].ID}, Purpose: client.ForPrompt}, "elsewhere")
	})
	t.Run("what may be a correction stands before what it may correct", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		add(t, w, "old", "/src/zoo", "The pangolin keeper feeds termites with a wooden spoon.", noon.Add(-48*time.Hour))
		add(t, w, "new", "/src/zoo", "Pangolins get ants now, the keeper has no termites left.", noon.Add(-24*time.Hour))
		order(t, w, client.RecallRequest{Query: "which wooden spoon for termites and pangolins?", Cwd: "/src/zoo", Purpose: client.ForPrompt}, "new", "old")
	})
	t.Run("what the user spoke of first", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		say := func(id, user, assistant string, at time.Time) {
			mustAppend(t, w, testSession(id), client.Event{ID: "1:user", Role: client.User, Content: user, CreatedAt: at}, client.Event{ID: "1:assistant", Role: client.Assistant, Content: assistant, CreatedAt: at})
		}
		say("about", "What does the pangolin eat?", "Ants, most of all.", noon.Add(-2*time.Hour))
		say("beside", "Who was in the garden?", "The aardvark and the pangolin.", noon.Add(-time.Hour))
		order(t, w, client.RecallRequest{Query: "pangolin"}, "about", "beside")
	})
	t.Run("the same question answered again", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		for i, answer := range []string{"At nine, by Ada.", "At noon, by Bob."} {
			mustAppend(t, w, testSession(fmt.Sprint(i)), client.Event{ID: "1:user", Role: client.User, Content: "When is the pangolin fed?", CreatedAt: noon.Add(time.Duration(i) * time.Hour)},
				client.Event{ID: "1:assistant", Role: client.Assistant, Content: answer, CreatedAt: noon.Add(time.Duration(i) * time.Hour)})
		}
		order(t, w, client.RecallRequest{Query: "feeding time of the pangolin"}, "1")
	})
	t.Run("nothing twice in other words", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		text := "The pangolin of the zoo is fed with ants and termites by Ada every morning at nine, then weighed, washed and carried to its burrow behind the aviary"
		add(t, w, "a", "/a", text, noon.Add(-3*time.Hour))
		shown := mustRecall(t, w, "pangolin")
		add(t, w, "b", "/b", text, noon.Add(-2*time.Hour))
		order(t, w, client.RecallRequest{Query: "pangolin", Exclude: []string{shown[0].ID}})
	})
	t.Run("near copies are one", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		text := "The gateway listens on port 2334 and serves the web page, the jobs and the tools of the workspace on one address"
		add(t, w, "a", "", text+" today", noon.Add(-3*time.Hour))
		add(t, w, "b", "", text+" now", noon.Add(-2*time.Hour))
		add(t, w, "c", "", "The gateway was restarted because its port was taken by another program.", noon.Add(-time.Hour))
		order(t, w, client.RecallRequest{Query: "gateway port"}, "c", "b")
		add(t, w, "d", "/src/gateway", text+" here", noon.Add(-4*time.Hour))
		order(t, w, client.RecallRequest{Query: "gateway port", Cwd: "/src/gateway"}, "b", "c")
	})
	t.Run("rare terms are searched for before common ones", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		var common []string
		for n := range 2 * maxSearched {
			common = append(common, "ordinarily"+wordOf(uint64(n)))
		}
		var events []client.Event
		for n := range 80 {
			events = append(events, testTurn(n, strings.Join(common, " "), fmt.Sprint("talk ", n))...)
		}
		mustAppend(t, w, testSession("talk"), events...)
		add(t, w, "rare", "", "The vole and the lynx.", noon)
		for range 80 {
			events = append(events, testTurn(len(events), strings.Join(common, " "), fmt.Sprint("talk ", len(events)))...)
		}
		mustAppend(t, w, testSession("talk"), events...)
		order(t, w, client.RecallRequest{Query: strings.Join(common, " ") + " vole lynx", Host: "codex", ScopeID: "default", Session: "talk"}, "rare")
	})
	t.Run("a generated note yields to its turns", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		add(t, w, "a", "", "The pangolin is fed by Ada at nine.", noon.Add(-3*time.Hour))
		if _, err := w.Flush(ctx, client.FlushRequest{Session: testSession("a"), Reason: client.SessionEnd}); err != nil {
			t.Fatal(err)
		}
		order(t, w, client.RecallRequest{Query: "pangolin Ada"}, "a")
		running := testSession("a")
		order(t, w, client.RecallRequest{Query: "pangolin Ada", Host: running.Host, ScopeID: running.Scope, Session: running.ID})
		// The note is all that is left of a dialog that someone removed.
		os.Remove(w.abs(dialogPath(running)))
		order(t, w, client.RecallRequest{Query: "pangolin Ada"}, string(running.Key()))
	})
	t.Run("many turns of the running session hide nobody", func(t *testing.T) {
		w := openAt(t, t.TempDir(), noon)
		add(t, w, "a", "", "The pangolin is fed by Ada at nine.", noon.Add(-3*time.Hour))
		var events []client.Event
		for n := range 300 {
			events = append(events, testTurn(n, "pangolin Ada", fmt.Sprint("pangolin number ", n))...)
		}
		mustAppend(t, w, testSession("running"), events...)
		order(t, w, client.RecallRequest{Query: "pangolin Ada", Host: "codex", ScopeID: "default", Session: "running"}, "a")
	})
}

func TestRecallSpellings(t *testing.T) {
	w := said(t, "Does the pangolin need a terrarium? | No, and the webhook tells when it is asleep.", "What of the progress bar? | It is hidden.", "Where is the on-call list? | In the handbook.")
	for query, want := range map[string]string{
		"pangolni terrarium": "s0", "terarium": "s0", "web hooks": "s0", "progressbar": "s1", "oncall": "s2", "on call": "s2", "stand-up": "", "penguin": "", "pang": "",
	} {
		items := mustPrompt(t, w, query)
		got := ""
		if len(items) > 0 {
			got = items[0].SessionID
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

func TestRecallFollowsUp(t *testing.T) {
	w := said(t, "Why is the pangolin in its burrow at noon? | It hunts ants at night.")
	running := testSession("running")
	mustAppend(t, w, running, testTurn(0, "The pangolin lies in its burrow at noon.", "It breathes.")...)
	for prompt, want := range map[string]int{"why?": 1, "and is that normal?": 1, "make it so": 0, "why does the linker complain about duplicate symbols?": 0} {
		res, err := w.Recall(context.Background(), client.RecallRequest{Query: prompt, Purpose: client.ForPrompt, Host: running.Host, ScopeID: running.Scope, Session: running.ID})
		if err != nil || len(res.Items) != want {
			t.Errorf("%q: %+v, %v", prompt, res.Items, err)
		}
		res, err = w.Recall(context.Background(), client.RecallRequest{Query: prompt, Purpose: client.ForPrompt})
		if err != nil || len(res.Items) != 0 {
			t.Errorf("%q without a conversation: %+v, %v", prompt, res.Items, err)
		}
	}
}

func TestExplain(t *testing.T) {
	w := said(t, "Who feeds the pangolin at the gate? | Ada does.", "The gate of the pangolin squeaks. | It needs oil.")
	res, why, err := w.Explain(context.Background(), client.RecallRequest{Query: "pangolni gate", Purpose: client.ForPrompt, Limit: 1})
	if err != nil || len(res.Items) != 1 || len(why.Candidates) != 2 {
		t.Fatalf("%+v %+v %v", res, why, err)
	}
	if t0 := why.Terms[0]; t0.Docs != 2 || !slices.ContainsFunc(why.Terms, func(t ExplainedTerm) bool { return t.Text == "pangolin" && t.For == "pangolni" }) {
		t.Errorf("terms: %+v", why.Terms)
	}
	if a, b := why.Candidates[0].Verdict, why.Candidates[1].Verdict; a != "chosen" || b != "others are better" || why.Candidates[0].ID != res.Items[0].ID {
		t.Errorf("%q, %q", a, b)
	}
}

func TestEdits(t *testing.T) {
	list := edits("stage")
	for _, w := range []string{"tage", "stag", "stagey", "estage", "stale", "satge", "stgae"} {
		if !slices.Contains(list, w) {
			t.Errorf("%q is one edit away", w)
		}
	}
	for _, w := range []string{"stage", "stags2", "sgate"} {
		if slices.Contains(list, w) {
			t.Errorf("%q is none or two edits away", w)
		}
	}
}

func TestEverydayWordsAreStems(t *testing.T) {
	for _, w := range []string{"really", "today", "something", "rename", "summarize", "because"} {
		if priorOfWord(stem(w)) >= 1 {
			t.Errorf("%q is not known as %q", w, stem(w))
		}
	}
}

func TestRecallWithoutTime(t *testing.T) {
	t.Parallel()
	w := said(t, "The mascot is a pangolin. | Noted.")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if res, err := w.Recall(ctx, client.RecallRequest{Query: "pangolin"}); err != nil || len(res.Items) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if items := mustRecall(t, w, "pangolin"); len(items) != 1 {
		t.Errorf("after a cancelled recall: %+v", items)
	}
}

func TestItemIDsOutliveTheIndex(t *testing.T) {
	t.Parallel()
	w := said(t, "The mascot is a pangolin. | Noted.", "Another pangolin came by. | So it did.")
	before := mustRecall(t, w, "pangolin")
	w.Close()
	if err := os.RemoveAll(w.abs(privateDir)); err != nil {
		t.Fatal(err)
	}
	after := mustRecall(t, w, "pangolin")
	if len(before) != 2 || len(after) != 2 || before[0].ID != after[0].ID || before[1].ID != after[1].ID || before[0].ID == before[1].ID {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
}

func TestSnippet(t *testing.T) {
	q := newQuery("pangolin")
	for i := range q.asked {
		q.terms = append(q.terms, q.asked[i])
		q.terms[i].weight = 1
	}
	filler := "It rained all day in the north. "
	for _, test := range []struct {
		name            string
		user, assistant string
		n               int
		want            string
		cut             bool
	}{
		{"whole", "Who?", "A pangolin.", 100, "user: Who?\nassistant: A pangolin.", false},
		{"around the match", "Who?", strings.Repeat(filler, 10) + "Then a pangolin came. " + strings.Repeat(filler, 10), 100,
			"user: Who?\nassistant: …Then a pangolin came. It rained all day in the north.…", true},
		{"a long sentence", "Who?", strings.Repeat("and so on ", 30) + "until a pangolin appeared " + strings.Repeat("and went away ", 30), 90,
			"user: Who?\nassistant: …so on until a pangolin appeared and went away and went away and…", true},
		{"no word is cut", "Who?", strings.Repeat("x", 500), 90, "user: Who?", true},
		{"han", "谁？", strings.Repeat("今天下雨了。", 20) + "后来来了一只 pangolin 动物。" + strings.Repeat("今天下雨了。", 20), 62, "user: 谁？\nassistant: …今天下雨了。后来来了一只 pangolin 动物。今天下雨了。今天下雨了。…", true},
		{"nothing fits", "Who?", "A pangolin.", 3, "", true},
		{"a block of code is a sentence", "Who?", strings.Repeat(filler, 5) + "\n```go\nadopt(pangolin)\n```\n" + strings.Repeat(filler, 5), 60,
			"user: Who?\nassistant: …\n```go\nadopt(pangolin)\n```\n…", true},
		{"a long block keeps its fences", "Who?", "```go\n" + strings.Repeat("feed(lion)\n", 20) + "adopt(pangolin)\n" + strings.Repeat("feed(lion)\n", 20) + "```", 80,
			"user: Who?\nassistant: ```go\n…\nadopt(pangolin)\nfeed(lion)\nfeed(lion)\n…\n```", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, cut := snippet(docText{parts: []docPart{{"user", test.user}, {"assistant", test.assistant}}}, q, test.n)
			if got != test.want || cut != test.cut || countChars(got) > test.n {
				t.Errorf("got %d characters, cut %v: %q\nwant %q", countChars(got), cut, got, test.want)
			}
		})
	}
}

func TestProjectRoot(t *testing.T) {
	home := t.TempDir()
	t.Cleanup(xdg.Reload) // after the variable is what it was
	t.Setenv("HOME", home)
	xdg.Reload()
	for _, dir := range []string{".git", "plain/sub", "repo/.git", "repo/pkg/deep"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for cwd, want := range map[string]string{
		home:                                  "",
		filepath.Join(home, "plain/sub"):      filepath.Join(home, "plain/sub"),
		filepath.Join(home, "repo/pkg/deep"):  filepath.Join(home, "repo"),
		filepath.Join(home, "repo") + "/":     filepath.Join(home, "repo"),
		filepath.Join(home, "repo/gone/away"): filepath.Join(home, "repo"),
		"":                                    "",
		string(filepath.Separator):            "",
	} {
		if got := projectRoot(cwd); got != want {
			t.Errorf("root of %q: %q, want %q", cwd, got, want)
		}
	}
	if inProject("/src/osprey2", "/src/osprey") || !inProject("/src/osprey/x", "/src/osprey") || inProject("/src", "") {
		t.Error("inProject")
	}
}

// wordOf makes a pronounceable word of a number.
func wordOf(n uint64) string {
	var b strings.Builder
	for n += 30; n > 0; n /= 70 {
		b.WriteByte("bdfgklmnprstvz"[n%14])
		b.WriteByte("aeiou"[n/14%5])
	}
	return b.String()
}
