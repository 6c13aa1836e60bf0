// Package servicetest is the conformance suite of [client.Ledger]: what every
// implementation must do, embedded or over HTTP. It says nothing about how good
// a recall is, only that what was told is found and that limits are kept.
package servicetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
)

// Run runs the suite. open returns a service with an empty memory of its own;
// it closes it through t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) client.Ledger) {
	for _, test := range []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"append counts and names what it did", (*suite).appendCounts},
		{"append is idempotent", (*suite).appendTwice},
		{"the first of two events with one id stays", (*suite).firstStays},
		{"sessions of one id in two scopes are two", (*suite).scopesApart},
		{"an append without events is an answer", (*suite).appendNothing},
		{"a bad request is refused for good and names the field", (*suite).badRequests},
		{"any text comes through", (*suite).anyText},
		{"one session takes concurrent appends", (*suite).concurrentOneSession},
		{"many sessions take concurrent appends", (*suite).concurrentManySessions},
		{"events are named, page by page", (*suite).sessionEvents},
		{"flush takes every reason", (*suite).flushReasons},
		{"recall finds what was appended", (*suite).recallFinds},
		{"recall answers nothing rather than noise", (*suite).recallNothing},
		{"recall leaves out the running session", (*suite).recallRunning},
		{"recall leaves out what is excluded", (*suite).recallExclude},
		{"recall keeps limit and max_chars", (*suite).recallLimits},
		{"recall prefers the newest of equals", (*suite).recallNewest},
		{"a note is written once and found", (*suite).remember},
		{"info names the contract", (*suite).info},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(&suite{service: open(t)}, t)
		})
	}
}

type suite struct{ service client.Ledger }

var (
	session = client.Session{Host: "codex", Scope: "default", ID: "019a-first"}
	other   = client.Session{Host: "claude-code", Scope: "default", ID: "b7e1-other"}
	start   = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
)

// turn makes the two events of a turn, a minute after the turn before it.
func turn(n int, user, assistant string) []client.Event {
	id := client.TurnID(fmt.Sprint(n))
	at := start.Add(time.Duration(n) * time.Minute)
	return []client.Event{
		{ID: client.NewEventID(id, client.User, 1), Role: client.User, Content: user, CreatedAt: at},
		{ID: client.NewEventID(id, client.Assistant, 1), Role: client.Assistant, Content: assistant, CreatedAt: at.Add(time.Second)},
	}
}

func (s *suite) append(t *testing.T, sess client.Session, events ...client.Event) client.AppendResult {
	t.Helper()
	res, err := s.service.Append(context.Background(), client.AppendRequest{Session: sess, Cwd: "/src/osprey", Events: events})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	for _, e := range events {
		if !slices.Contains(res.EventIDs, e.ID) {
			t.Fatalf("the answer does not name event %q", e.ID)
		}
	}
	return res
}

func (s *suite) recall(t *testing.T, req client.RecallRequest) client.RecallResult {
	t.Helper()
	res, err := s.service.Recall(context.Background(), req)
	if err != nil {
		t.Fatalf("recall: %v", err)
	}
	return res
}

func wantCounts(t *testing.T, res client.AppendResult, appended, duplicate, filtered, total int) {
	t.Helper()
	if res.Appended != appended || res.Duplicate != duplicate || res.Filtered != filtered || res.Total != total {
		t.Fatalf("got %d appended, %d duplicate, %d filtered, %d total; want %d, %d, %d, %d",
			res.Appended, res.Duplicate, res.Filtered, res.Total, appended, duplicate, filtered, total)
	}
}

func (s *suite) appendCounts(t *testing.T) {
	wantCounts(t, s.append(t, session, turn(1, "Where is the freeze written down?", "In the release plan.")...), 2, 0, 0, 2)
	events := append(turn(1, "Where is the freeze written down?", "In the release plan."), turn(2, " \n\t", "")...)
	events = append(events, turn(3, "Thank you, that is all.", "Good.")...)
	wantCounts(t, s.append(t, session, events...), 2, 2, 2, 4)
}

func (s *suite) appendTwice(t *testing.T) {
	events := turn(1, "continue", "Done.")
	s.append(t, session, events...)
	for range 3 {
		wantCounts(t, s.append(t, session, events...), 0, 2, 0, 2)
	}
	// The same words in another turn are another event.
	wantCounts(t, s.append(t, session, turn(2, "continue", "Done.")...), 2, 0, 0, 4)
	// An id that comes twice in one request is stored once.
	again := turn(3, "continue", "Done.")
	wantCounts(t, s.append(t, session, append(again, again...)...), 2, 2, 0, 6)
}

func (s *suite) firstStays(t *testing.T) {
	s.append(t, session, turn(1, "The mascot is a pangolin.", "Noted, a pangolin.")...)
	wantCounts(t, s.append(t, session, turn(1, "The mascot is an armadillo.", "Noted, an armadillo.")...), 0, 2, 0, 2)
	if res := s.recall(t, client.RecallRequest{Query: "armadillo"}); len(res.Items) != 0 {
		t.Errorf("the second content was stored: %+v", res.Items)
	}
	if res := s.recall(t, client.RecallRequest{Query: "pangolin"}); len(res.Items) != 1 {
		t.Errorf("the first content is gone")
	}
}

func (s *suite) scopesApart(t *testing.T) {
	events := turn(1, "Which port does it use?", "2334.")
	s.append(t, session, events...)
	apart := session
	apart.Scope = "work"
	wantCounts(t, s.append(t, apart, events...), 2, 0, 0, 2)
	apart = session
	apart.Host = "kimi"
	wantCounts(t, s.append(t, apart, events...), 2, 0, 0, 2)
}

func (s *suite) appendNothing(t *testing.T) {
	wantCounts(t, s.append(t, session), 0, 0, 0, 0)
	s.append(t, session, turn(1, "One question.", "One answer.")...)
	wantCounts(t, s.append(t, session), 0, 0, 0, 2)
}

func (s *suite) sessionEvents(t *testing.T) {
	page := func(sess client.Session, offset, limit int, total int, want ...client.EventID) {
		t.Helper()
		res, err := s.service.SessionEvents(context.Background(), client.SessionEventsRequest{Session: sess, Offset: offset, Limit: limit})
		var ids []client.EventID
		for _, e := range res.Events {
			ids = append(ids, e.ID)
		}
		if err != nil || res.Total != total || !slices.Equal(ids, want) {
			t.Errorf("%d after %d: %+v, %v; want %v of %d", limit, offset, res, err, want, total)
		}
	}
	page(session, 0, 0, 0)
	var ids []client.EventID
	for i := range 4 {
		events := turn(i+1, fmt.Sprint("question ", i), fmt.Sprint("answer ", i))
		s.append(t, session, events...)
		ids = append(ids, events[0].ID, events[1].ID)
	}
	s.append(t, session, turn(1, "question 0", "answer 0")...) // once more
	blank := turn(9, "A word.", " ")
	s.append(t, session, blank...)
	ids = append(ids, blank[0].ID)
	page(session, 0, 0, 9, ids...)
	page(session, 0, 4, 9, ids[:4]...)
	page(session, 4, 4, 9, ids[4:8]...)
	page(session, 8, 4, 9, ids[8])
	page(session, 9, client.MaxEvents, 9)
	page(session, 1<<40, 1, 9)
	page(other, 0, 0, 0)
	for field, req := range map[string]client.SessionEventsRequest{
		"offset": {Session: session, Offset: -1}, "limit": {Session: session, Limit: client.MaxEvents + 1}, "host": {},
	} {
		_, err := s.service.SessionEvents(context.Background(), req)
		wantRefused(t, err, field)
	}
	bad := session
	bad.Host = "../codex"
	_, err := s.service.SessionEvents(context.Background(), client.SessionEventsRequest{Session: bad})
	wantRefused(t, err, "host")
}

func (s *suite) badRequests(t *testing.T) {
	ctx := context.Background()
	good := turn(1, "question", "answer")
	edit := func(change func(*client.AppendRequest)) client.AppendRequest {
		req := client.AppendRequest{Session: session, Events: slices.Clone(good)}
		change(&req)
		return req
	}
	for _, test := range []struct {
		field string
		req   client.AppendRequest
	}{
		{"host", edit(func(r *client.AppendRequest) { r.Host = "" })},
		{"host", edit(func(r *client.AppendRequest) { r.Host = "../codex" })},
		{"host", edit(func(r *client.AppendRequest) { r.Host = `a\b` })},
		{"host", edit(func(r *client.AppendRequest) { r.Host = "." })},
		{"scope_id", edit(func(r *client.AppendRequest) { r.Scope = "" })},
		{"session_id", edit(func(r *client.AppendRequest) { r.Session.ID = "" })},
		{"session_id", edit(func(r *client.AppendRequest) { r.Session.ID = strings.Repeat("x", 2000) })},
		{"event_id", edit(func(r *client.AppendRequest) { r.Events[1].ID = "" })},
		{"role", edit(func(r *client.AppendRequest) { r.Events[1].Role = "tool" })},
		{"role", edit(func(r *client.AppendRequest) { r.Events[0].Role = "" })},
	} {
		_, err := s.service.Append(ctx, test.req)
		wantRefused(t, err, test.field)
	}
	_, err := s.service.Flush(ctx, client.FlushRequest{Session: session, Reason: "whenever"})
	wantRefused(t, err, "reason")
	_, err = s.service.Flush(ctx, client.FlushRequest{Reason: client.TurnEnd})
	wantRefused(t, err, "")
	// Nothing of a refused request was stored.
	wantCounts(t, s.append(t, session, good...), 2, 0, 0, 2)
}

func wantRefused(t *testing.T, err error, field string) {
	t.Helper()
	e, ok := err.(*client.Error)
	if !ok || e.Class != client.Permanent || !strings.Contains(e.Field, field) || e.Field == "" {
		t.Errorf("got error %v, want a permanent one that blames %s", err, field)
	}
}

func (s *suite) anyText(t *testing.T) {
	for i, text := range []string{
		"项目评审安排在周四，冻结从十二月十日开始。",
		"レビューは木曜日です。",
		"심사는 목요일에 있습니다.",
		"family 👨‍👩‍👧‍👦, flags 🇩🇪🇯🇵, skin 👍🏽, combining e\u0301",
		"controls \x00\x01\x1b[31mred\x1b[0m \u202eright\u202c and <b>&amp;</b> \u2028 line",
		"broken \xff\xfe UTF-8",
		`"quotes" \backslashes\ and {"json":[1,2]}` + "\r\nwith\r\nCRLF\r\n",
		strings.Repeat("A long tale of a big text. ", 40_000), // 1 MiB
	} {
		events := turn(i, text, text)
		wantCounts(t, s.append(t, session, events...), 2, 0, 0, 2*i+2)
		wantCounts(t, s.append(t, session, events...), 0, 2, 0, 2*i+2)
	}
	for query, want := range map[string]string{"项目评审": "周四", "レビュー 木曜日": "レビュー", "심사 목요일": "목요일", "red controls": "red"} {
		res := s.recall(t, client.RecallRequest{Query: query})
		if len(res.Items) == 0 || !strings.Contains(res.Items[0].Snippet, want) {
			t.Errorf("recall of %q: %+v", query, res.Items)
		}
		for _, item := range res.Items {
			if strings.ContainsAny(item.Snippet, "\x00\x01\x1b\r\u202e\u202c") || !utf8.ValidString(item.Snippet) {
				t.Errorf("recall of %q: the snippet %q has harmful characters", query, item.Snippet)
			}
		}
	}
}

func (s *suite) concurrentOneSession(t *testing.T) {
	const writers, turns = 8, 10
	var wg sync.WaitGroup
	errs := make(chan error, writers*turns)
	for w := range writers {
		wg.Go(func() {
			for n := range turns {
				// Two writers send each turn.
				events := turn(w/2*turns+n, "What about step "+fmt.Sprint(n)+"?", "It is done.")
				if _, err := s.service.Append(context.Background(), client.AppendRequest{Session: session, Events: events}); err != nil {
					errs <- err
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	wantCounts(t, s.append(t, session), 0, 0, 0, writers/2*turns*2)
}

func (s *suite) concurrentManySessions(t *testing.T) {
	const sessions = 20
	var wg sync.WaitGroup
	errs := make(chan error, sessions)
	for n := range sessions {
		wg.Go(func() {
			sess := client.Session{Host: "codex", Scope: "default", ID: fmt.Sprint("many-", n)}
			res, err := s.service.Append(context.Background(), client.AppendRequest{Session: sess, Events: turn(n, "Who am I?", "Number "+fmt.Sprint(n))})
			if err == nil && (res.Appended != 2 || res.Total != 2) {
				err = fmt.Errorf("session %d: %+v", n, res)
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

func (s *suite) flushReasons(t *testing.T) {
	s.append(t, session, turn(1, "What is left to do?", "Only the notes.")...)
	for _, reason := range []client.FlushReason{client.TurnEnd, client.PreCompact, client.SessionEnd, client.Shutdown, client.SessionEnd} {
		res, err := s.service.Flush(context.Background(), client.FlushRequest{Session: session, Reason: reason})
		if err != nil || !res.Queued || res.Pending < 0 {
			t.Errorf("flush for %s: %+v, %v", reason, res, err)
		}
	}
	if _, err := s.service.Flush(context.Background(), client.FlushRequest{Session: session, Reason: client.SessionEnd, Wait: true}); err != nil {
		t.Error(err)
	}
	if res, err := s.service.Flush(context.Background(), client.FlushRequest{Session: other, Reason: client.SessionEnd}); err != nil {
		t.Errorf("flush of a session without turns: %+v, %v", res, err)
	}
}

func (s *suite) recallFinds(t *testing.T) {
	s.append(t, session, turn(1, "When does the release train of Project Osprey leave?", "On 14 December; the freeze starts on the 10th.")...)
	s.append(t, other, turn(2, "How do I cook rice?", "Rinse it, then simmer it with twice its volume of water.")...)
	res := s.recall(t, client.RecallRequest{Query: "osprey release freeze", Purpose: client.ForPrompt, Cwd: "/src/osprey"})
	if len(res.Items) != 1 {
		t.Fatalf("got %d items, want 1: %+v", len(res.Items), res.Items)
	}
	item := res.Items[0]
	if !strings.Contains(item.Snippet, "14 December") || item.Host != session.Host || item.SessionID != session.ID || item.ID == "" || item.Path == "" ||
		item.StartLine < 1 || item.EndLine < item.StartLine || item.Score <= 0 || item.Score > 1 || strings.HasPrefix(item.Path, "/") {
		t.Errorf("item: %+v", item)
	}
	if _, err := time.Parse(time.DateOnly, item.Date); err != nil {
		t.Errorf("date: %v", err)
	}
}

func (s *suite) recallNothing(t *testing.T) {
	if res := s.recall(t, client.RecallRequest{Query: "anything"}); res.Items == nil || len(res.Items) != 0 {
		t.Errorf("an empty memory answers %#v", res.Items)
	}
	s.append(t, session, turn(1, "When does the release train of Project Osprey leave?", "On 14 December.")...)
	for _, query := range []string{"", " \n ", "the of and", "的了吗", "kubernetes ingress certificates", "\x00", "🦀", `") OR ("`, "NEAR AND NOT *"} {
		if res := s.recall(t, client.RecallRequest{Query: query}); len(res.Items) != 0 {
			t.Errorf("recall of %q: %+v", query, res.Items)
		}
	}
}

func (s *suite) recallRunning(t *testing.T) {
	s.append(t, session, turn(1, "The mascot is a pangolin.", "Noted.")...)
	req := client.RecallRequest{Query: "pangolin mascot", Host: session.Host, ScopeID: session.Scope, Session: session.ID, Purpose: client.ForPrompt}
	if res := s.recall(t, req); len(res.Items) != 0 {
		t.Errorf("the running session was recalled: %+v", res.Items)
	}
	req.Purpose = client.ForCompact
	if res := s.recall(t, req); len(res.Items) != 1 {
		t.Errorf("for a compaction: %+v, want the running session", res.Items)
	}
	req.Purpose, req.Session = client.ForPrompt, "another"
	if res := s.recall(t, req); len(res.Items) != 1 {
		t.Errorf("for another session: %+v, want one item", res.Items)
	}
}

func (s *suite) recallExclude(t *testing.T) {
	s.append(t, session, turn(1, "The mascot is a pangolin.", "Noted.")...)
	req := client.RecallRequest{Query: "pangolin mascot"}
	res := s.recall(t, req)
	if len(res.Items) != 1 {
		t.Fatalf("items: %+v", res.Items)
	}
	req.Exclude = []string{res.Items[0].ID}
	if res := s.recall(t, req); len(res.Items) != 0 {
		t.Errorf("excluded, and yet: %+v", res.Items)
	}
}

func (s *suite) recallLimits(t *testing.T) {
	for i, beast := range []string{"aardvark", "badger", "capybara", "dormouse", "echidna", "ferret", "gazelle", "hedgehog"} {
		text := strings.Repeat(fmt.Sprintf("The pangolin met the %s in week %d. ", beast, i), 40)
		s.append(t, session, turn(i, "What did the pangolin do with the "+beast+"?", text)...)
	}
	for _, test := range []struct{ limit, maxChars, wantItems int }{{0, 0, 5}, {1, 0, 1}, {8, 0, 8}, {3, 700, 3}, {5, 90, 1}} {
		res := s.recall(t, client.RecallRequest{Query: "pangolin", Limit: test.limit, MaxChars: test.maxChars})
		if len(res.Items) != test.wantItems {
			t.Errorf("limit %d, max_chars %d: %d items, want %d", test.limit, test.maxChars, len(res.Items), test.wantItems)
		}
		chars := 0
		for _, item := range res.Items {
			chars += utf8.RuneCountInString(item.Snippet)
		}
		if most := max(test.maxChars, 0); most > 0 && chars > most || chars > 4000 {
			t.Errorf("limit %d, max_chars %d: %d characters", test.limit, test.maxChars, chars)
		}
		if !res.Truncated {
			t.Errorf("limit %d, max_chars %d: not said to be truncated", test.limit, test.maxChars)
		}
		if (res.Omitted > 0) != (test.wantItems < 8) {
			t.Errorf("limit %d, max_chars %d: %d omitted", test.limit, test.maxChars, res.Omitted)
		}
	}
}

func (s *suite) recallNewest(t *testing.T) {
	s.append(t, session, turn(1, "Which port does the gateway use?", "The gateway uses port 2334 on this machine.")...)
	s.append(t, other, turn(90, "Which port does the gateway use?", "The gateway uses port 2334 on this machine.")...)
	res := s.recall(t, client.RecallRequest{Query: "gateway port"})
	if len(res.Items) != 1 || res.Items[0].Host != other.Host {
		t.Errorf("got %+v, want only the newer of two equals", res.Items)
	}
}

func (s *suite) remember(t *testing.T) {
	ctx := t.Context()
	req := client.RememberRequest{Title: "Staging", Content: "The staging quokka listens on port 6543.", CreatedAt: start}
	first, err := s.service.Remember(ctx, req)
	if err != nil || !first.Created || first.Path == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := s.service.Remember(ctx, req); err != nil || again.Created || again.Path != first.Path {
		t.Errorf("the same once more: %+v, %v", again, err)
	}
	if res := s.recall(t, client.RecallRequest{Query: "staging quokka port"}); len(res.Items) != 1 || res.Items[0].Path != first.Path {
		t.Errorf("recalled %+v", res.Items)
	}
	_, err = s.service.Remember(ctx, client.RememberRequest{Content: " \n"})
	wantRefused(t, err, "content")
}

func (s *suite) info(t *testing.T) {
	info, err := s.service.Info(context.Background())
	if err != nil || info.Name == "" || info.Version == "" || info.APIVersion != client.APIVersion {
		t.Errorf("info: %+v, %v", info, err)
	}
}
