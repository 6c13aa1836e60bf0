package workspace

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

func TestLatestOfAProject(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := openAt(t, t.TempDir(), noon)
	for i, cwd := range []string{"/src/app", "/src/app/sub", "/src/apple", "/src/other"} {
		req := client.AppendRequest{Session: testSession(cwd), Cwd: cwd}
		req.Events = []client.Event{{ID: "t:user", Role: client.User, Content: "said in " + cwd, CreatedAt: noon.Add(time.Duration(i) * time.Minute)}}
		if _, err := w.Append(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	recall := func(req client.RecallRequest) string {
		req.Purpose = client.ForSessionStart
		res, err := w.Recall(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, it := range res.Items {
			got = append(got, strings.TrimPrefix(it.Snippet, "user: said in "))
		}
		return strings.Join(got, " ")
	}
	if got := recall(client.RecallRequest{Cwd: "/src/app"}); got != "/src/app/sub /src/app" {
		t.Errorf("newest first: %q", got)
	}
	running := testSession("/src/app")
	if got := recall(client.RecallRequest{Cwd: "/src/app", Host: running.Host, ScopeID: running.Scope, Session: running.ID}); got != "/src/app/sub" {
		t.Errorf("without the running session: %q", got)
	}
	if got := recall(client.RecallRequest{Cwd: "/src/app", Limit: 1}); got != "/src/app/sub" {
		t.Errorf("limited: %q", got)
	}
	if got := recall(client.RecallRequest{}); got != "" {
		t.Errorf("of no project: %q", got)
	}
	for i, cwd := range []string{"/src/app", "/src/other", "/src/app"} {
		req := client.RememberRequest{Content: fmt.Sprintf("decided %d", i), Cwd: cwd, CreatedAt: noon.Add(time.Duration(-i) * time.Hour)}
		if _, err := w.Remember(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	if got := recall(client.RecallRequest{Cwd: "/src/app", Limit: 2}); !strings.HasPrefix(got, "decided ") || !strings.HasSuffix(got, " /src/app/sub") {
		t.Errorf("a note and a turn: %q", got)
	}
	mustAppend(t, w, running, append(testTurn(1, "The pangolin is fed at nine.", "Noted."), testTurn(2, "thanks", "You're welcome.")...)...)
	mustAppend(t, w, running, testTurn(3, "Who feeds the pangolin on Sundays?", "")[:1]...)
	res, err := w.Recall(ctx, client.RecallRequest{Purpose: client.ForCompact, Host: running.Host, ScopeID: running.Scope, Session: running.ID, Cwd: "/src/other"})
	if err != nil || len(res.Items) != 1 || res.Items[0].Snippet != "user: The pangolin is fed at nine.\nassistant: Noted." || res.Omitted != 0 {
		t.Errorf("the running session without small talk and what has no answer yet: %+v, %v", res, err)
	}
}

func TestSummaryYieldsToItsTurns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("a")
	mustAppend(t, w, s, testTurn(1, "The pangolin is fed at nine.", "Noted.")...)
	n, err := w.Remember(ctx, client.RememberRequest{Title: "Summary", Content: "The pangolin is fed at nine by Ada.", Session: &s})
	if err != nil {
		t.Fatal(err)
	}
	paths := func() (out []string) {
		res, err := w.Recall(ctx, client.RecallRequest{Query: "pangolin fed"})
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range res.Items {
			out = append(out, it.Path)
		}
		return out
	}
	if got := paths(); len(got) != 1 || got[0] != dialogPath(s) {
		t.Errorf("recalled %v", got)
	}
	if text, err := w.Read(ctx, n.Path, 0, 0); err != nil || !strings.Contains(text, "fed at nine by Ada") || !strings.Contains(text, "[["+dialogPath(s)+"]]") {
		t.Errorf("the note: %q, %v", text, err)
	}
	again, err := w.Remember(ctx, client.RememberRequest{Title: "Summary", Content: "The pangolin is fed at nine by Ada.", Session: &s})
	if err != nil || again.Created {
		t.Errorf("written twice: %+v, %v", again, err)
	}
}
