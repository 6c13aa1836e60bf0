package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// reason is an error whose text may be shown: it says what is wrong with a value
// without the value.
type reason string

func (r reason) Error() string { return string(r) }

// What is to blame if it is not a field of a request.
const (
	jobField       = "job"
	argumentsField = "arguments" // all of them together
)

// decode reads the arguments of a job into the struct at req. Names are matched
// exactly and null counts as absent. A field without omitempty or omitzero must be
// there; one that is not known is refused if strict.
func decode(arguments []byte, req any, strict bool) error {
	var given map[string]json.RawMessage
	if arguments = bytes.TrimSpace(arguments); len(arguments) > 0 {
		if arguments[0] != '{' && !bytes.Equal(arguments, []byte("null")) {
			return refuse(argumentsField, "must be an object")
		}
		if json.Unmarshal(arguments, &given) != nil {
			return refuse(argumentsField, "must be JSON")
		}
	}
	v := reflect.ValueOf(req).Elem()
	var known []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
		raw, ok := given[name]
		if !ok || bytes.Equal(raw, []byte("null")) {
			if !strings.Contains(options, "omit") {
				return refuse(name, "is required")
			}
			continue
		}
		if err := decodeField(name, raw, v.FieldByIndex(f.Index)); err != nil {
			return err
		}
	}
	if strict {
		for name := range given {
			if !slices.Contains(known, name) {
				if len(known) == 0 {
					return refuse(argumentsField, "must be empty")
				}
				return refuse(argumentsField, "must be only "+strings.Join(known, ", "))
			}
		}
	}
	return nil
}

func decodeField(name string, raw []byte, v reflect.Value) error {
	err := json.Unmarshal(raw, v.Addr().Interface())
	var mismatch *json.UnmarshalTypeError
	var told reason
	var badTime *time.ParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told):
		return refuse(name, string(told))
	case errors.As(err, &badTime):
		return refuse(name, "must have times as RFC 3339 writes them")
	case errors.As(err, &mismatch):
		if f := (float64)(0); v.CanInt() && json.Unmarshal(raw, &f) == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			v.SetInt(int64(f)) // to JSON, 5.0 is a whole number
			return nil
		}
		if mismatch.Field != "" {
			name += "." + mismatch.Field
		}
		return refuse(name, "must be "+kindName(mismatch.Type))
	}
	return refuse(name, "has a value that is not understood")
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
