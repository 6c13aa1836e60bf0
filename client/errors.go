package client

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Class says what a failed call asks of the caller.
type Class int

// The classes of errors. The zero value is the safe one: try again later.
const (
	Retryable     Class = iota // the same request may succeed later
	Configuration              // it will succeed once the user has changed something
	Permanent                  // it will never succeed
)

// String returns the word used in logs and by doctor.
func (c Class) String() string {
	switch c {
	case Configuration:
		return "configuration"
	case Permanent:
		return "permanent"
	}
	return "retryable"
}

// Error is a failed call to a service.
type Error struct {
	Class      Class
	Field      string        // the offending field, if one is to blame
	Reason     string        // free of any text of the user
	RetryAfter time.Duration // what the service asked for, or 0
	Err        error         // the cause, or nil
}

// Error implements error.
func (e *Error) Error() string {
	msg := e.Reason
	if e.Field != "" {
		msg = e.Field + ": " + msg
	}
	if e.Err != nil {
		msg = fmt.Sprintf("%s: %v", msg, e.Err)
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of an error; what is not an [*Error] is retryable.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Retryable
}

// The waits between automatic tries of what has failed.
const (
	firstWait         = 5 * time.Second
	configurationWait = 15 * time.Minute
	LongestWait       = 15 * time.Minute // without the quarter that chance may add
)

// RetryWait is how long what has failed so many times in a row, at last with err,
// is left alone before it is tried again of itself.
func RetryWait(err error, failures int) time.Duration {
	wait := LongestWait
	if shift := max(0, failures-1); shift < 8 { // the number may come from a damaged file
		wait = min(firstWait<<shift, LongestWait)
	}
	if ClassOf(err) == Configuration {
		wait = configurationWait
	}
	return wait + rand.N(wait/4)
}
