package gateway

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agentscope-ai/reme-hook/client"
)

const (
	// maxBodies is the memory for all bodies together, in bytes.
	maxBodies = 8 * MaxBody
	// maxWorking is how many jobs are done at once. Each may hold a thread that
	// waits for a lock.
	maxWorking = 32
	// patience is how long a request waits for room or a place.
	patience = 30 * time.Second
	bodyTime = 30 * time.Second
)

// limits keep many or large requests from taking all memory and threads: those
// that are too many wait, for some time.
type limits struct {
	bodies, working *semaphore.Weighted
	patience        time.Duration
	bodyTime        time.Duration // that a client has to send a body
}

func newLimits() *limits {
	return &limits{semaphore.NewWeighted(maxBodies), semaphore.NewWeighted(maxWorking), patience, bodyTime}
}

// room waits for memory for a body of n bytes, -1 if that is not known.
func (l *limits) room(ctx context.Context, n int64) (release func(), err error) {
	if n < 0 {
		n = MaxBody
	}
	return l.acquire(ctx, l.bodies, n)
}

// place waits for leave to work.
func (l *limits) place(ctx context.Context) (release func(), err error) {
	return l.acquire(ctx, l.working, 1)
}

func (l *limits) acquire(ctx context.Context, s *semaphore.Weighted, n int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	if err := s.Acquire(ctx, n); err != nil {
		return nil, &client.Error{Class: client.Retryable, Reason: "too many requests"}
	}
	return func() { s.Release(n) }, nil
}
