package workspace

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Whoever writes much lets those write who stand in the line, before it goes on.
func TestTurn(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	mustAppend(t, w, testSession("a"), testTurn(0, "q", "a")...)
	for n := range 3 { // of a transaction each
		mustAppendAll(t, w, client.AppendRequest{Session: testSession(fmt.Sprint("b", n)), Events: []client.Event{{ID: "1:user", Role: client.User, Content: strings.Repeat("xy ", indexBatch/3)}}})
	}
	other := openAt(t, w.dir, noon)
	unlock, err := durable.Lock(t.Context(), w.abs(turnLock))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		done <- w.use(ctx, func(x *index) error { return w.sync(ctx, x) })
	}()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for limit := time.After(time.Minute); indexed(t, other) < 2; {
		select {
		case <-look.C:
		case <-limit:
			t.Fatal("nothing is indexed")
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := other.Append(soon, client.AppendRequest{Session: testSession("a"), Events: testTurn(1, "q", "a")}); err != nil {
		t.Fatal(err)
	}
	if n := indexed(t, other); n != 2 {
		t.Errorf("%d files are indexed while others wait for their turn", n)
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := indexed(t, other); n != 4 {
		t.Errorf("%d files are indexed", n)
	}
}

// indexed is how many files the index has, without making it have more.
func indexed(t *testing.T, w *Workspace) (files int) {
	t.Helper()
	err := w.use(t.Context(), func(x *index) error {
		return x.db.QueryRowContext(t.Context(), "SELECT count(*) FROM files").Scan(&files)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
