package client

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

var safeKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*-[0-9a-f]{12}$`)

func TestSessionKey(t *testing.T) {
	t.Parallel()
	for want, s := range map[SessionKey]Session{
		"codex-default-01a22900-eb58-7bc0-8524-0907451b86ad-7c785996b073": {"codex", "default", "01a22900-eb58-7bc0-8524-0907451b86ad"},
		"codex-x-x-":           {"codex", "", ""},
		"claude-code-a-b-c-d-": {"claude-code", "a/b", `c\d`},
		"hermes-x-x-":          {"hermes", "项目", "会话"},
		"CON-NUL-x-":           {"CON", "NUL", "..."},
	} {
		if got := s.Key(); !strings.HasPrefix(string(got), string(want)) || !safeKey.MatchString(string(got)) {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
}

func FuzzSessionKey(f *testing.F) {
	f.Add("codex", "default", "a", "codex", "default", "A")
	f.Add("h", "a-b", "c", "h", "a", "b-c")
	f.Add("h", "a\x00b", "c", "h", "a", "b\x00c")
	f.Fuzz(func(t *testing.T, h1, s1, i1, h2, s2, i2 string) {
		a, b := Session{Host(h1), s1, i1}, Session{Host(h2), s2, i2}
		for _, s := range []Session{a, b} {
			if k := string(s.Key()); !safeKey.MatchString(k) || len(k) > 120 {
				t.Errorf("%+v: unsafe key %q", s, k)
			}
		}
		// NUL cannot be in an environment or an argument, and is refused by Validate.
		if strings.Contains(h1+s1+h2+s2, "\x00") {
			return
		}
		// Nor is there a difference of case alone, which some file systems do not see.
		if (a == b) != strings.EqualFold(string(a.Key()), string(b.Key())) {
			t.Errorf("%+v and %+v: %s and %s", a, b, a.Key(), b.Key())
		}
	})
}

func TestEventID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turn TurnID
		role Role
		n    int
		want EventID
	}{
		{"t", User, 1, "t:user"}, {"t", Assistant, 1, "t:assistant"}, {"t", User, 2, "t:user:2"}, {"a:b:user", Assistant, 10, "a:b:user:assistant:10"},
	} {
		id := NewEventID(c.turn, c.role, c.n)
		if id != c.want || id.Turn() != c.turn {
			t.Errorf("%s of turn %s, want %s of turn %s", id, id.Turn(), c.want, c.turn)
		}
	}
	for id, want := range map[EventID]TurnID{"foreign": "foreign", "msg:7": "msg:7", "x:user:0": "x:user:0", ":user": ""} {
		if got := id.Turn(); got != want {
			t.Errorf("turn of %s: %q, want %q", id, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := Session{"codex", "default", "s"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for field, s := range map[string]Session{
		"host": {"", "default", "s"}, "scope_id": {"codex", "", "s"}, "session_id": {"codex", "default", strings.Repeat("x", 1025)},
	} {
		var e *Error
		if err := s.Validate(); !errors.As(err, &e) || e.Field != field || ClassOf(err) != Permanent {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, bad := range []string{"a\xff", "a\x00b"} {
		if err := (Session{"codex", "default", bad}).Validate(); ClassOf(err) != Permanent {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The number of failures may come from a file that somebody damaged.
func TestRetryWait(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{math.MinInt, -1, 0, 1, 7, 100, math.MaxInt} {
		for _, err := range []error{errors.New("down"), &Error{Class: Configuration}} {
			if wait := RetryWait(err, failures); wait < firstWait || wait > LongestWait*5/4 {
				t.Errorf("%d failures: %v", failures, wait)
			}
		}
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want Class
	}{
		{errors.New("any"), Retryable}, {&Error{}, Retryable}, {&Error{Class: Configuration}, Configuration},
		{fmt.Errorf("while doing: %w", &Error{Class: Permanent, Reason: "no"}), Permanent}, {nil, Retryable},
	} {
		if got := ClassOf(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
