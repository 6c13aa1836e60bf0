// Package upstream lets a real ReMe make the notes of what was said, and search
// its own.
//
// It finds a released ReMe, remembers for all processes who answered, forwards the
// turns of the workspace to its auto_memory, and asks its search for recalls. It
// promises that no turn is forwarded twice under two names and none is lost: the
// words of a request are on the disk, byte for byte, before it is first sent, and
// a request is repeated until ReMe has answered what became of it. It never probes
// on an agent's time, never forwards what was captured before a ReMe was there
// unless it is told to, and deletes nothing that ReMe did not take.
//
// All it knows is in one folder of JSON files: server.json (who answered),
// since.json (from when on turns are forwarded), sessions/<key>.json (which
// messages of a session were taken), batches/<key>.json (the one request of a
// session that is under way), archive/<key>/<n>.json (requests that came to nothing),
// backoff.json and search.json (until when to leave it in peace). They do not
// depend on the index of the workspace. An OS lock, forward.lock, lets one process
// at a time forward.
package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// The values of the setting that are no address.
const (
	Auto = "auto" // the address in REME_URL, or ReMe's own default
	Off  = "off"
)

// defaultURL is where a ReMe listens that was started without options.
const defaultURL = "http://127.0.0.1:2333"

const (
	// knownFor is how long it counts who answered at an address; after that
	// somebody else may have taken the port.
	knownFor = time.Hour
	// askAgain is the time between two looks for a ReMe that was not there.
	askAgain = 5 * time.Minute
	// missingFor is how long a ReMe that nobody asked for by its address may be gone
	// before its notes are made here again.
	missingFor = 7 * 24 * time.Hour
)

// Upstream is a ReMe that may be there.
type Upstream struct {
	Dir       string // where its files are
	Target    string // Auto, Off, or an address
	URL       string // the address that Target means, "" for none
	Workspace string // our own folder
	Now       func() time.Time
}

// New is an upstream that is off; see [Upstream.Use].
func New(dir, workspace string, now func() time.Time) *Upstream {
	return &Upstream{Dir: dir, Target: Off, Workspace: workspace, Now: now}
}

// Use sets who is asked: Auto, Off, or an address.
func (u *Upstream) Use(target string, getenv func(string) string) {
	u.Target, u.URL = target, target
	switch target {
	case Off:
		u.URL = ""
	case Auto:
		u.URL = cmp.Or(getenv("REME_URL"), defaultURL)
	}
}

func (u *Upstream) client() reme.Client { return reme.New(u.URL) }

func (u *Upstream) file(name string) string { return filepath.Join(u.Dir, name) }

// rest is a time in which the server is left in peace, for one kind of call: the
// content of backoff.json and search.json.
type rest struct {
	Failures  int       `json:"failures"` // in a row
	Class     string    `json:"class"`    // of the last error
	Reason    string    `json:"reason"`
	NotBefore time.Time `json:"not_before"`
}

const (
	forwarding = "backoff.json"
	searching  = "search.json"
	// longestSearchRest is the longest one for a search: one in vain costs a prompt
	// less than a day without ReMe's notes.
	longestSearchRest = time.Minute
)

// rest reads a rest; one that cannot be read is none.
func (u *Upstream) rest(kind string) rest {
	var r rest
	if read(u.file(kind), &r) != nil {
		return rest{}
	}
	return r
}

// resting tells whether the server is to be left in peace. A rest that is longer
// than any comes from a clock that was changed.
func (u *Upstream) resting(kind string) bool {
	left := u.rest(kind).NotBefore.Sub(u.Now())
	return left > 0 && left <= 2*client.LongestWait
}

// note keeps how a call ended.
func (u *Upstream) note(kind string, err error) error {
	r := u.rest(kind)
	if err == nil {
		if r.Failures == 0 {
			return nil
		}
		return write(u.file(kind), rest{})
	}
	wait := client.RetryWait(err, r.Failures+1)
	if kind == searching {
		wait = min(wait, longestSearchRest)
	}
	return write(u.file(kind), rest{r.Failures + 1, client.ClassOf(err).String(), err.Error(), u.Now().Add(wait)})
}

// Known is what is known of the server.
type Known struct {
	URL string `json:"url"`
	reme.Server
	CheckedAt time.Time `json:"checked_at"`
	SeenAt    time.Time `json:"seen_at,omitzero"` // when a released ReMe last answered
}

// Known tells what the last probe has found; the zero value if there was none of
// this address.
func (u *Upstream) Known() Known {
	var k Known
	if read(u.file("server.json"), &k) != nil || k.URL != u.URL {
		return Known{}
	}
	return k
}

// trusted tells whether k still tells who answers: a clock that was changed makes
// it old.
func (k Known) trusted(now time.Time) bool {
	age := now.Sub(k.CheckedAt)
	return k.Kind == reme.Released && age >= 0 && age < knownFor
}

// Probe finds out who answers now, and remembers it. It is for commands and for
// the deliverer, never for a hook.
func (u *Upstream) Probe(ctx context.Context) (Known, error) {
	if u.URL == "" {
		return Known{}, nil
	}
	if err := u.tidy(); err != nil {
		return Known{}, err
	}
	k := Known{URL: u.URL, Server: u.client().Probe(ctx), CheckedAt: u.Now(), SeenAt: u.Known().SeenAt}
	if ctx.Err() != nil {
		return k, ctx.Err()
	}
	if k.Kind == reme.Released {
		k.SeenAt = k.CheckedAt
	}
	if err := write(u.file("server.json"), k); err != nil {
		return k, err
	}
	if k.Kind != reme.Released {
		return k, nil
	}
	if err := u.note(searching, nil); err != nil {
		return k, err
	}
	if _, is := u.since(); !is {
		return k, write(u.file("since.json"), period{k.CheckedAt})
	}
	return k, nil
}

// current probes if what is known is old.
func (u *Upstream) current(ctx context.Context) (Known, error) {
	k := u.Known()
	if u.probeDue(k) {
		return u.Probe(ctx)
	}
	return k, nil
}

func (u *Upstream) probeDue(k Known) bool {
	now := u.Now()
	age := now.Sub(k.CheckedAt)
	if k.Kind == reme.Released {
		return age < 0 || age >= knownFor || u.rest(searching).Failures > 0
	}
	return age < 0 || age >= askAgain
}

// Due tells whether a process off the agent's time has anything to do here: to
// look for a ReMe, or to forward what it is ready to take. It reads two small
// files.
func (u *Upstream) Due() bool {
	if u.URL == "" {
		return false
	}
	k := u.Known()
	return u.probeDue(k) || k.Kind == reme.Released && !u.resting(forwarding)
}

// period is the content of since.json.
type period struct {
	Since time.Time `json:"since"`
}

// since tells from when on turns are forwarded, and whether they are at all.
func (u *Upstream) since() (time.Time, bool) {
	var p period
	if u.URL == "" || read(u.file("since.json"), &p) != nil {
		return time.Time{}, false
	}
	if u.Target == Auto && u.Now().Sub(u.Known().SeenAt) > missingFor {
		return time.Time{}, false
	}
	return p.Since, true
}

// tidy ends a period of forwarding that is over, so that a later one does not send
// what was said in between.
func (u *Upstream) tidy() error {
	if _, is := u.since(); is {
		return nil
	}
	if err := os.Remove(u.file("since.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Extracts tells whether ReMe makes the notes of a session whose last turn was at
// a time: since it is there, and of what it has begun.
func (u *Upstream) Extracts(key client.SessionKey, last time.Time) bool {
	if since, is := u.since(); is && !last.Before(since) {
		return true
	}
	return len(u.Notes(key)) > 0
}

// Notes tells the paths of the notes that ReMe has made of a session.
func (u *Upstream) Notes(key client.SessionKey) []string {
	var s session
	if read(u.sessionFile(key), &s) != nil {
		return nil
	}
	return s.Notes
}

// sameWorkspace tells whether ReMe works on our own folder, where its notes are
// found without it.
func (u *Upstream) sameWorkspace(k Known) bool {
	if k.Workspace == "" || !reme.New(u.URL).Local() {
		return false
	}
	a, err := os.Stat(k.Workspace)
	if err != nil {
		return false
	}
	b, err := os.Stat(u.Workspace)
	return err == nil && os.SameFile(a, b)
}

// Searches tells whether there is a server that is known, has notes of its own, and
// was not slow or gone a moment ago.
func (u *Upstream) Searches() bool {
	k := u.Known()
	return k.trusted(u.Now()) && !u.sameWorkspace(k) && !u.resting(searching)
}

// Search finds passages of ReMe's notes, best first.
func (u *Upstream) Search(ctx context.Context, query string, limit int) []reme.Passage {
	if ctx.Err() != nil || !u.Searches() {
		return nil
	}
	found, err := u.client().Search(ctx, query, limit)
	_ = u.note(searching, err) // then it is asked once more than it should be
	return found
}

// Read returns lines of one of ReMe's notes; 0 means the first and the last.
func (u *Upstream) Read(ctx context.Context, note string, start, end int) (string, error) {
	k, err := u.current(ctx)
	if err != nil {
		return "", err
	}
	if k.Kind != reme.Released {
		return "", &client.Error{Reason: "no ReMe answers at " + u.URL}
	}
	return u.client().Read(ctx, note, start, end)
}

func read(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func write(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(file)); err != nil {
		return err
	}
	return durable.WriteFile(file, append(data, '\n'))
}

func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDir(filepath.Dir(file))
}
