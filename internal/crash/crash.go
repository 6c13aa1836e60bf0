// Package crash marks the places where a crash is worst, so that tests can kill
// their process there.
package crash

// Point is called with a name at each such place. It does nothing but in tests.
var Point = func(name string) {}
