package gateway

import (
	"net/http"
	"strings"
	"testing"
)

// Who asks is told over HTTP as it is, or not at all.
func TestCallerHeader(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ given, told Caller }{
		{Caller{}, Caller{}},
		{Caller{"codex", "/src/osprey"}, Caller{"codex", "/src/osprey"}},
		{Caller{"claude-code", `C:\Users\Zoë\a b%20c`}, Caller{"claude-code", `C:\Users\Zoë\a b%20c`}},
		{Caller{"../codex", "/src\r\nX: y"}, Caller{"", "/src\r\nX: y"}},
		{Caller{"codex", "/\xff"}, Caller{"codex", ""}},
		{Caller{"codex", strings.Repeat("x", maxCwd+1)}, Caller{"codex", ""}},
	} {
		h := test.given.Header()
		if strings.ContainsAny(h.Get(cwdHeader), "\r\n") {
			t.Errorf("%q", h)
		}
		if got, err := callerOf(h); err != nil || got != test.told {
			t.Errorf("%+v is told as %+v, %v", test.given, got, err)
		}
	}
	for name, h := range map[string]http.Header{
		"a long folder":    {cwdHeader: {strings.Repeat("x", maxCwd+1)}},
		"bytes of no text": {cwdHeader: {"%ff"}},
		"a long name":      {hostHeader: {strings.Repeat("x", 21)}},
	} {
		if got, err := callerOf(h); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := newWorld(t).as(Caller{Host: "kimi"}).caller; got != (Caller{"kimi", "/src/osprey"}) {
		t.Errorf("%+v", got)
	}
}
