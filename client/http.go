package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

const (
	// maxAnswer is the size of an answer in bytes, at most.
	maxAnswer = 20 << 20
	// callLimit bounds a call whose context has no earlier end.
	callLimit = 30 * time.Second
	// maxName bounds an id or a path in an answer, in bytes.
	maxName = 4 << 10
)

// ErrUnreachable is the cause of errors of calls that got no answer, or none
// that is whole: nothing listens, it hangs, or the connection broke. Whether the
// service did what it was asked is not known.
var ErrUnreachable = errors.New("no answer")

// HTTP is the [Service] at a URL: POST <url>/<job> with JSON, answered with
// ReMe's envelope. All its errors are an [*Error]. It never sends a request for
// this machine through a proxy and never follows a redirect to another one. It
// is safe for concurrent use.
type HTTP struct {
	url    string
	client *http.Client
}

// NewHTTP makes the service at a URL as [ParseURL] takes it. The token, if there
// is one, and the headers go with each request to it, and nowhere else.
func NewHTTP(rawURL, token string, header http.Header) (*HTTP, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return &HTTP{u, &http.Client{Transport: bearer{newTransport(), token, header}, CheckRedirect: checkRedirect}}, nil
}

// ParseURL checks the URL of a service and returns it as it is used: without a
// slash at its end, and with localhost for every name that this machine has for
// itself. The error does not tell the URL, which may have a secret in it.
func ParseURL(raw string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("not an http:// or https:// URL")
	case u.User != nil:
		return "", errors.New("a URL must not have a password in it; there is a key for the token")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("a URL must end with its path")
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return "", errors.New("a port must be 1 to 65535")
	}
	if isLocalhost(host) {
		u.Host = strings.TrimSuffix(localhost+":"+port, ":")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u.String(), nil
}

// URL is where the service is.
func (h *HTTP) URL() string { return h.url }

// Client makes the requests to the service's own URL, with the token.
func (h *HTTP) Client() *http.Client { return h.client }

// Answer is ReMe's envelope, as it came.
type Answer struct {
	Answer   json.RawMessage `json:"answer"`
	Success  bool            `json:"success"`
	Metadata json.RawMessage `json:"metadata"`
}

// Text is the answer if it is a text, else its JSON.
func (a Answer) Text() string {
	var s string
	if json.Unmarshal(a.Answer, &s) != nil {
		return string(a.Answer)
	}
	return s
}

// Job asks the service for a job; the request is what its JSON is made of. An
// answer that says success=false is no error.
func (h *HTTP) Job(ctx context.Context, name string, request any) (Answer, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return Answer{}, &Error{Class: Permanent, Field: "arguments", Reason: "cannot be written as JSON", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/"+url.PathEscape(name), bytes.NewReader(body))
	if err != nil {
		return Answer{}, &Error{Class: Configuration, Reason: "cannot ask " + h.url, Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	res, err := h.client.Do(req)
	if err != nil {
		return Answer{}, h.unreachable(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return Answer{}, h.unreachable(err)
	}
	if res.StatusCode != http.StatusOK {
		return Answer{}, h.refused(name, res, text, body)
	}
	if len(text) > maxAnswer {
		return Answer{}, &Error{Reason: fmt.Sprintf("the answer of %s is longer than %d MiB", h.url, maxAnswer>>20)}
	}
	var a struct {
		Answer
		Success *bool `json:"success"`
	}
	if json.Unmarshal(text, &a) != nil || a.Success == nil {
		return Answer{}, h.foreign(name)
	}
	a.Answer.Success = *a.Success
	return a.Answer, nil
}

func (h *HTTP) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the URL once more
	}
	return &Error{Reason: h.url, Err: fmt.Errorf("%w: %w", ErrUnreachable, err)}
}

// foreign is the error of an answer that no service of the contract gives.
func (h *HTTP) foreign(name string) error {
	return &Error{Class: Configuration, Reason: fmt.Sprintf("what answers %s at %s is no service of the agent contract; check the key service", name, h.url)}
}

// refused makes an error of an answer with another status than 200. Of the
// answer, only what the contract says is free of text of the user goes into it, and not
// even that if it has words of the request in it.
func (h *HTTP) refused(name string, res *http.Response, text, request []byte) error {
	e := &Error{Reason: fmt.Sprintf("%s answers with status %d", h.url, res.StatusCode), RetryAfter: retryAfter(res.Header, time.Now())}
	var told struct {
		Metadata struct {
			Field, Reason string
			Jobs          []string
		}
	}
	_ = json.Unmarshal(text, &told) // what is no envelope tells nothing
	switch s := res.StatusCode; {
	case s == http.StatusForbidden && told.Metadata.Field == "Host":
		e.Class = Configuration
		e.Reason += ": without a token it answers only to localhost and loopback addresses; name it so in the key service"
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusProxyAuthRequired:
		e.Class = Configuration
		e.Reason += ": it wants another token; set the key token"
	case s/100 == 3:
		e.Class = Configuration
		e.Reason += ": it sends on to another place; set the key service to that"
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge, s == http.StatusUnprocessableEntity:
		e.Class = Permanent
		if !quotes(told.Metadata.Field+"\n"+told.Metadata.Reason, request) {
			e.Field = bounded(told.Metadata.Field)
			e.Reason = cmp.Or(bounded(told.Metadata.Reason), e.Reason)
		}
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests, s/100 == 5:
	case s == http.StatusNotFound && told.Metadata.Jobs != nil:
		e.Class = Configuration
		e.Reason = fmt.Sprintf("the service at %s does not know %s: it is older than this program; upgrade it", h.url, name)
	default: // 404 and 405 above all
		return h.foreign(name)
	}
	return e
}

// quotes tells whether a service repeats something of a request, a word of it or more.
func quotes(said string, request []byte) bool {
	const enough = 12 // bytes; the contract's own names and reasons are no part of what is asked
	for i := 0; i+enough <= len(said); i++ {
		if bytes.Contains(request, []byte(said[i:i+enough])) {
			return true
		}
	}
	return false
}

// bounded makes of a service's word what can stand in a line of a log.
func bounded(s string) string {
	s = harmless.Line(s[:min(len(s), 200)])
	return strings.ToValidUTF8(s, "")
}

// retryAfter reads seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return max(0, time.Duration(n)*time.Second)
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// ask makes a call of which only the metadata count.
func (h *HTTP) ask(ctx context.Context, name string, request, metadata any) error {
	a, err := h.Job(ctx, name, request)
	if err != nil {
		return err
	}
	if !a.Success {
		return &Error{Reason: fmt.Sprintf("%s at %s reports a failure", name, h.url)}
	}
	if json.Unmarshal(a.Metadata, metadata) != nil {
		return h.foreign(name)
	}
	return nil
}

// Append implements [Service].
func (h *HTTP) Append(ctx context.Context, req AppendRequest) (res AppendResult, err error) {
	if req.Events == nil {
		req.Events = []Event{} // null would be no list
	}
	err = h.ask(ctx, "agent_session_append", req, &res)
	return res, err
}

// SessionEvents implements [Ledger].
func (h *HTTP) SessionEvents(ctx context.Context, req SessionEventsRequest) (res SessionEventsResult, err error) {
	err = h.ask(ctx, "agent_session_events", req, &res)
	return res, err
}

// Flush implements [Service].
func (h *HTTP) Flush(ctx context.Context, req FlushRequest) (res FlushResult, err error) {
	err = h.ask(ctx, "agent_session_flush", req, &res)
	return res, err
}

// Remember implements [Service].
func (h *HTTP) Remember(ctx context.Context, req RememberRequest) (note Note, err error) {
	err = h.ask(ctx, "agent_memory_remember", req, &note)
	note.Path, note.Name, note.Description, note.Date = harmless.Line(note.Path), harmless.Line(note.Name), harmless.Line(note.Description), harmless.Line(note.Date)
	return note, err
}

// Info implements [Service].
func (h *HTTP) Info(ctx context.Context) (info Info, err error) {
	err = h.ask(ctx, "version", struct{}{}, &info)
	info.Name, info.Version, info.APIVersion = bounded(info.Name), bounded(info.Version), bounded(info.APIVersion)
	if err == nil && info.Version == "" {
		err = h.foreign("version")
	}
	return info, err
}

// Recall implements [Service]. Whatever the service answers, the limits of the
// request hold and the texts are harmless. An item that is none is left out; if there
// is no other, that is an error.
func (h *HTTP) Recall(ctx context.Context, req RecallRequest) (RecallResult, error) {
	var told struct {
		RecallResult
		Items []json.RawMessage `json:"items"`
	}
	if err := h.ask(ctx, "agent_memory_recall", req, &told); err != nil {
		return RecallResult{}, err
	}
	res, left, bad := told.RecallResult, cmp.Or(max(req.MaxChars, 0), 4000), 0
	res.Items = []Item{}
	for i, raw := range told.Items {
		if len(res.Items) == cmp.Or(max(req.Limit, 0), 5) || left <= 0 {
			res.Omitted += len(told.Items) - i
			break
		}
		var it Item
		if json.Unmarshal(raw, &it) != nil {
			bad++
			continue
		}
		longest := max(len(it.ID), len(it.Path), len(it.Date), len(it.Host), len(it.Project), len(it.SessionID))
		for _, name := range []*string{&it.Path, &it.Date, (*string)(&it.Host), &it.Project, &it.SessionID} {
			*name = harmless.Line(*name)
		}
		if it.Path == "" || it.ID == "" || longest > maxName {
			continue
		}
		it.StartLine = max(it.StartLine, 1)
		it.EndLine = max(it.EndLine, it.StartLine)
		it.Score = math.Max(0, math.Min(it.Score, 1))
		if cut, ok := cutRunes(harmless.Text(it.Snippet), left); ok {
			it.Snippet, res.Truncated = cut, true
		} else {
			it.Snippet = cut
		}
		left -= len([]rune(it.Snippet))
		res.Items = append(res.Items, it)
	}
	if bad > 0 && bad == len(told.Items) {
		return RecallResult{}, h.foreign("agent_memory_recall")
	}
	return res, nil
}

// cutRunes returns at most n runes of a text and tells whether that is less.
func cutRunes(s string, n int) (string, bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}
