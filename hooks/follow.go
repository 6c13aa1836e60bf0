package hooks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/jsonl"
)

// Log is a session as its host keeps it on disk.
type Log struct {
	Session  client.Session
	Cwd      string // where the session began, "" if the log does not tell
	Path     string // the file, or the database that holds it
	Size     int64  // bytes that were written of it so far, or any number that grows with it
	Modified time.Time

	describe func(*Log) (ok bool, err error) // nil if it is complete
}

// Complete fills in what only reading the log can tell: Session and Cwd. It is not
// ok if it is no log of a user's session.
func (l *Log) Complete() (ok bool, err error) {
	if l.describe == nil {
		return true, nil
	}
	ok, err = l.describe(l)
	l.describe = nil
	return ok, err
}

// quiet is how long a session is silent before its host counts as gone.
const quiet = time.Hour

// Settled tells whether nothing more is expected of a turn that the log leaves
// open.
func (l Log) Settled(now time.Time) bool { return now.Sub(l.Modified) > quiet }

// LogTurn is a turn as a host's log has it.
type LogTurn struct {
	ID       client.TurnID
	Messages []LogMessage // what the user and the main agent said, in order
	Ended    bool
	// Unnamed says that the log may lack the name that live capture gave to the turn.
	// The ID is made of what it has; the turn is known by its order and its text.
	Unnamed bool
	// Delegated says that a subagent is at work for the turn: a stop that comes now
	// is most likely the subagent's.
	Delegated bool
	Cwd       string // if it is not the session's
}

// LogMessage is a message of a LogTurn.
type LogMessage struct {
	Role client.Role
	Text string
	At   time.Time
}

// LogPage is what was read of a log at once.
type LogPage struct {
	Turns   []LogTurn
	Next    string // the cursor to go on from: at the first turn that may grow
	Damaged int    // records that could not be read and were left out
	More    bool   // there is more to read now
}

// Logs are the sessions that a host keeps on disk.
type Logs interface {
	// Places are the folders or files where they would be, whether they exist or
	// not.
	Places() []string
	// List finds the sessions of users; those of subagents are left out, here or by
	// [Log.Complete]. An error with a path in the Log concerns that one only.
	List(context.Context) iter.Seq2[Log, error]
	// Read reads a session from a cursor on, "" for the beginning. It does not wait.
	Read(l Log, cursor string) (LogPage, error)
}

// VersionError says that a log is of a format that is not known.
type VersionError struct {
	Found, Known string
}

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("its format has version %q, this reme-hook knows %s; is there a newer one?", e.Found, e.Known)
}

// Fold makes turns of the lines of a session's file.
type Fold interface {
	// Take reads the next line, which begins at an offset. It tells whether the line
	// could be read. An error says that the file is not of a version that is known.
	// A line that was passed over comes as nil.
	Take(line []byte, at int64) (ok bool, err error)
	// Turns are those of the lines that were taken, in order.
	Turns() []LogTurn
	// Open is where the last turn begins, if lines to come can belong to it.
	Open() (at int64, open bool)
}

// enough is the text, in bytes, after which a page ends before the next turn.
const enough = 16 << 20

// LineReader calls take with every whole line of a file from an offset on, and
// with the offset to read it from again: its own, or that of what holds several
// lines. It ends when take returns false. Next is the offset to go on from, damaged
// how many parts could not be read.
type LineReader func(f io.ReaderAt, from int64, take func(line []byte, at int64) bool) (next int64, damaged int, err error)

// Follower reads a session's file while the host writes it. It remembers the file
// that it read last, as a hook that waits for the end of a turn looks many times.
type Follower struct {
	New  func() Fold
	Each LineReader

	mu      sync.Mutex
	fold    Fold
	path    string
	cursor  string      // where the reading began
	stat    os.FileInfo // of the last look
	next    int64       // offset of the first line that was not taken
	damaged int
	read    int64 // bytes in all
}

// Lines is the LineReader of text files.
func Lines(f io.ReaderAt, from int64, take func(line []byte, at int64) bool) (next int64, damaged int, err error) {
	next, err = jsonl.Each(f, from, take)
	return next, 0, err
}

// BytesRead is how much was read in all.
func (r *Follower) BytesRead() int64 { return r.read }

// Page reads the file from a cursor on, "" for the beginning: all of it, or as
// much as is read at once. It does not wait.
func (r *Follower) Page(path, cursor string) (LogPage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return LogPage{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return LogPage{}, err
	}
	if r.fold == nil || r.path != path || r.cursor != cursor || !os.SameFile(r.stat, st) || r.next > st.Size() {
		r.fold, r.path, r.cursor, r.damaged = r.New(), path, cursor, 0
		r.next = jsonl.Offset(f, st.Size(), cursor)
	}
	r.stat = st
	begin, full := r.next, false
	text, mark, last := 0, int64(-1), int64(-1)
	var bad error
	next, damaged, err := r.Each(f, begin, func(line []byte, at int64) bool {
		if at != last { // lines of one frame are taken together
			if text >= enough && mark < 0 {
				mark = at
			}
			if full = mark >= 0 && position(r.fold, at) >= mark; full {
				return false
			}
			last = at
		}
		if text += len(line); line == nil {
			text += jsonl.MaxLine
		}
		ok, err := r.fold.Take(line, at)
		if err != nil {
			bad = err
			return false
		}
		if !ok {
			r.damaged++
		}
		return true
	})
	r.damaged += damaged
	r.read += next - begin
	r.next = next
	if err == nil {
		err = bad
	}
	return LogPage{Turns: r.fold.Turns(), Next: jsonl.Cursor(f, position(r.fold, next)), Damaged: r.damaged, More: full}, err
}

// position is where to go on from when all before an offset was taken.
func position(f Fold, at int64) int64 {
	if begin, open := f.Open(); open {
		return begin
	}
	return at
}

// OfType tells whether a line is an object of a type that begins with one of some
// words, as far as that can be told without decoding it: a tool's output can be
// long.
func OfType(line []byte, types ...string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`))
	return !ok || slices.ContainsFunc(types, func(t string) bool { return bytes.HasPrefix(rest, []byte(t)) })
}
