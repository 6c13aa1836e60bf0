// Package crash marks the places where a crash is worst, so that tests can kill
// their process there, and the steps that a disk may refuse, so that tests can have
// it do so.
package crash

// Point is called with a name at each such place. It does nothing but in tests.
var Point = func(name string) {}

// Fault is asked before each step of a durable write whether it fails, and with which
// error. None does but in tests.
var Fault = func(step string) error { return nil }
