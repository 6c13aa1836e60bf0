package link

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

var (
	errDown  = &client.Error{Reason: "x", Err: client.ErrUnreachable}
	errBusy  = &client.Error{Reason: "busy"}
	errToken = &client.Error{Class: client.Configuration, Reason: "token"}
	good     = client.Info{Name: "reme", Version: "1", APIVersion: client.APIVersion}
	newer    = client.Info{Name: "reme", Version: "9", APIVersion: "9.0"}
)

func newFile(t *testing.T) File {
	t.Helper()
	f := File{Path: filepath.Join(t.TempDir(), "sub", "service.json"), URL: "http://localhost:2334"}
	must(t, f.Probed(good, start))
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	var last time.Duration
	for range 12 {
		must(t, f.Delivered(errors.New("down"), start))
		l := f.Load()
		wait := l.Delivery.NotBefore.Sub(start)
		if wait < 5*time.Second || wait > client.LongestWait*5/4 || wait < last*4/5 {
			t.Errorf("wait of %v after %v", wait, last)
		}
		last = wait
		if l.Delivers(start) || !l.Delivers(start.Add(wait)) || !l.Delivers(start.Add(-365*24*time.Hour)) {
			t.Errorf("delivers at the wrong times, %+v", l)
		}
	}
	must(t, f.Delivered(nil, start))
	if b := f.Load().Delivery; b != (Backoff{}) {
		t.Errorf("after a success: %+v", b)
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delivered, recalled error
		least               time.Duration // of the wait
		delivers, recalls   bool          // before that is over
	}{
		"all is well":           {nil, nil, 0, true, true},
		"down at a delivery":    {errDown, nil, 5 * time.Second, false, false},
		"down at a recall":      {nil, errDown, 5 * time.Second, true, false},
		"busy at a delivery":    {errBusy, nil, 5 * time.Second, false, true},
		"token at a delivery":   {errToken, nil, client.LongestWait, false, true},
		"token at a recall":     {nil, errToken, longestRecallWait, true, false},
		"refused at a recall":   {nil, &client.Error{Class: client.Permanent}, 0, true, true},
		"asked to wait":         {&client.Error{RetryAfter: 20 * time.Minute}, nil, 20 * time.Minute, false, true},
		"asked to wait forever": {&client.Error{RetryAfter: 1e9 * time.Second}, nil, longestAsked, false, true},
	} {
		f := newFile(t)
		must(t, f.Delivered(c.delivered, start))
		must(t, f.Recalled(c.recalled, start))
		soon, late := start.Add(max(c.least-1, 0)), start.Add(c.least*5/4)
		if l := f.Load(); l.Delivers(soon) != c.delivers || l.Recalls(soon) != c.recalls || !l.Delivers(late) || !l.Recalls(late) {
			t.Errorf("%s: %+v", name, l)
		}
		// A success of the one is none of the other.
		must(t, f.Recalled(nil, start))
		if l := f.Load(); l.Delivers(soon) != c.delivers {
			t.Errorf("%s: a recall ended the wait of the deliveries", name)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	f := File{Path: filepath.Join(t.TempDir(), "service.json"), URL: "http://localhost:2334"}
	if l := f.Load(); l.Known() || !l.Due(start) || l.Recalls(start) {
		t.Errorf("a service that nobody has met: %+v", l)
	}
	must(t, f.Probed(newer, start))
	if l := f.Load(); l.Known() || !l.Due(start) || l.Recalls(start) {
		t.Errorf("another major version: %+v", l)
	}
	must(t, f.Delivered(newer.Compatible(), start))
	must(t, f.Probed(good, start))
	if l := f.Load(); !l.Known() || l.Due(start) || !l.Due(start.Add(2*probeLife)) || !l.Due(start.Add(-2*probeLife)) || !l.Recalls(start) || !l.Delivers(start) {
		t.Errorf("after the upgrade: %+v", l)
	}
	must(t, f.Delivered(errDown, start))
	must(t, f.Probed(good, start))
	if l := f.Load(); l.Delivers(start) {
		t.Error("a probe ended the wait after a failure that may come again")
	}
	// Nothing of it is held against another service.
	for _, other := range []string{"", "http://localhost:2335"} {
		l := File{f.Path, other}.Load()
		if !l.Delivers(start) || l.Probe != nil || l.Known() != (other == "") {
			t.Errorf("%q: %+v", other, l)
		}
	}
	// The embedded workspace keeps nobody waiting.
	embedded := File{Path: f.Path}
	must(t, embedded.Recalled(errDown, start))
	if l := embedded.Load(); !l.Recalls(start) || l.Due(start) {
		t.Errorf("embedded: %+v", l)
	}
}

func TestDamagedFile(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	for _, data := range []string{"", "{", "[]", `{"version":2,"url":"http://localhost:2334"}`, "\x00"} {
		must(t, os.WriteFile(f.Path, []byte(data), 0o600))
		if l := f.Load(); !l.Delivers(start) || l.Known() {
			t.Errorf("%q: %+v", data, l)
		}
	}
	must(t, f.Delivered(errDown, start))
	if f.Load().Delivers(start) {
		t.Error("not noted")
	}
	// A place that cannot be written to is told and changes nothing.
	blocked := File{Path: filepath.Join(f.Path, "service.json")}
	if err := blocked.Delivered(errDown, start); err == nil || !blocked.Load().Delivers(start) {
		t.Errorf("%v", err)
	}
}

// What several processes note at once is all there.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	var n sync.WaitGroup
	for i := range 5 {
		n.Go(func() { f.Delivered(fmt.Errorf("%d", i), start) })
		n.Go(func() { f.Recalled(errDown, start) })
	}
	n.Wait()
	if l := f.Load(); l.Delivery.Failures != 5 || l.Recall.Failures != 5 || l.Probe == nil {
		t.Errorf("%+v", l)
	}
}

// FuzzFile: whatever is in the file, hooks go on.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"delivery":{"failures":3,"class":"retryable","not_before":"2026-11-30T09:00:00Z"},"probe":{"name":"x","version":"1","integration_api_version":"1.0","checked_at":"2026-11-30T09:00:00Z"}}`))
	f.Add([]byte(`{"version":1,"delivery":{"failures":-9223372036854775808,"not_before":"9999-12-31T23:59:59Z"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := File{Path: filepath.Join(t.TempDir(), "service.json")}
		if err := os.WriteFile(file.Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
		l := file.Load()
		l.Due(now)
		l.Recalls(now)
		for range 2 {
			if err := file.Delivered(errors.New("down"), now); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Delivered(nil, now); err != nil {
			t.Fatal(err)
		}
		if l := file.Load(); !l.Delivers(now) || l.Delivery.Failures != 0 {
			t.Errorf("after a success: %+v", l)
		}
	})
}
