package spool

import (
	"encoding/json"
	"os"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Backoff is what all processes on this machine know of the last failed
// deliveries. The zero value means that the last one went well.
type Backoff struct {
	Failures  int       `json:"failures"` // in a row
	Class     string    `json:"class"`    // of the last error
	Reason    string    `json:"reason"`   // of the last error, free of any text of the user
	At        time.Time `json:"at"`
	NotBefore time.Time `json:"not_before"`
}

// BackoffFile keeps a Backoff in a file.
type BackoffFile string

// Load returns what is known; an unreadable file counts as no failure.
func (f BackoffFile) Load() Backoff {
	var b Backoff
	if data, err := os.ReadFile(string(f)); err != nil || json.Unmarshal(data, &b) != nil {
		return Backoff{}
	}
	return b
}

// Waiting tells whether automatic delivery should wait. A wait that is longer
// than any that is ever set comes from a clock that was changed, and is ignored.
func (b Backoff) Waiting(now time.Time) bool {
	wait := b.NotBefore.Sub(now)
	return wait > 0 && wait <= 2*client.LongestWait
}

// Record notes how a delivery ended.
func (f BackoffFile) Record(err error, now time.Time) error {
	b := f.Load()
	if err == nil {
		if b.Failures == 0 {
			return nil
		}
		return f.save(Backoff{})
	}
	b.Failures++
	b.At = now
	b.Class = client.ClassOf(err).String()
	b.Reason = err.Error()
	b.NotBefore = now.Add(client.RetryWait(err, b.Failures))
	return f.save(b)
}

func (f BackoffFile) save(b Backoff) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return durable.WriteFile(string(f), append(data, '\n'))
}
