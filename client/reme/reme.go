// Package reme is the client of a released ReMe 0.4: the few of its jobs that a
// memory of our own can use.
//
// Such a ReMe knows nothing of the agent contract. It answers every failure of a
// job, also a Python exception, with HTTP status 200 and a text; this package
// makes a [Failure] of each, which says whether the same request may succeed
// later and whether the server may have done the work all the same. No text of
// the user comes back in an error. A ReMe that is asked for what it does not
// have may answer with a web page; nothing of that is taken for an answer.
package reme

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// The bounds of answers, in bytes. A search for five chunks is answered in about
// 20 KiB; auto_memory lists all notes of the day.
const (
	maxAnswer = 16 << 20
	maxSearch = 4 << 20
)

// Client is a ReMe at an address.
type Client struct {
	service *client.HTTP
	err     error // what is wrong with the address
}

// New makes the client of a ReMe at an address, as [client.ParseURL] takes it. It
// uses the same connections as a service of the agent contract does. With a bad
// address, every call fails.
func New(url string) Client {
	service, err := client.NewHTTP(url, "", nil)
	if err != nil {
		err = &Failure{fault: fault{Class: client.Configuration, Reason: "the address cannot be used", Err: err}}
	}
	return Client{service, err}
}

// Local tells whether the ReMe is on this machine.
func (c Client) Local() bool {
	if c.err != nil {
		return false
	}
	address, err := url.Parse(c.service.URL())
	return err == nil && client.IsLocal(context.Background(), address.Hostname())
}

type fault = client.Error

// Failure is a call that did not do its work: the class and the reason, and what
// only a caller of ReMe asks.
type Failure struct {
	fault
	// Alone tells that the request itself is to blame: others may well succeed.
	Alone bool
	// Unknown tells that the server may have done the work, or may be at it.
	Unknown bool
}

// Unwrap returns the error's class and reason.
func (f *Failure) Unwrap() error { return &f.fault }

// envelope is the answer of every job.
type envelope struct {
	Success  *bool           `json:"success"`
	Answer   json.RawMessage `json:"answer"`
	Metadata json.RawMessage `json:"metadata"`
}

func (e envelope) text() string {
	var s string
	if json.Unmarshal(e.Answer, &s) != nil {
		return ""
	}
	return s
}

// post calls a job with a body that is sent byte for byte. An error is a *Failure.
func (c Client) post(ctx context.Context, job string, body []byte, limit int64) (envelope, error) {
	if c.err != nil {
		return envelope{}, c.err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.service.URL()+"/"+job, bytes.NewReader(body))
	if err != nil {
		return envelope{}, &Failure{fault: fault{Class: client.Configuration, Reason: "the address cannot be used", Err: err}}
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.service.Client().Do(req)
	if err != nil {
		return envelope{}, unreached(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return envelope{}, &Failure{fault: fault{Reason: "ReMe's answer broke off", Err: err}, Unknown: true}
	}
	if res.StatusCode != http.StatusOK {
		return envelope{}, refused(res)
	}
	return parse(res.Header.Get("Content-Type"), data, limit)
}

// parse reads the body of an answer with status 200. A job that failed is no
// error here.
func parse(contentType string, data []byte, limit int64) (envelope, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	var e envelope
	switch {
	case int64(len(data)) > limit:
		return envelope{}, &Failure{fault: fault{Reason: fmt.Sprintf("ReMe's answer is longer than %d bytes", limit)}, Unknown: true}
	case kind != "application/json" || json.Unmarshal(data, &e) != nil || e.Success == nil:
		return envelope{}, &Failure{fault: fault{Reason: notReMe}}
	}
	return e, nil
}

const notReMe = "what answers there is not ReMe"

// unreached says what it means that there was no answer.
func unreached(err error) *Failure {
	f := &Failure{fault: fault{Reason: "ReMe does not answer", Err: cause(err)}, Unknown: true}
	var dns *net.DNSError
	if errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dns) {
		f.Reason, f.Unknown = "ReMe cannot be reached", false
	}
	return f
}

// cause takes the address, which says nothing new, off an error.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return errors.Unwrap(err)
}

// refused says what a status other than 200 means.
func refused(res *http.Response) *Failure {
	f := &Failure{fault: fault{Reason: "ReMe answered with status " + strconv.Itoa(res.StatusCode)}}
	switch code := res.StatusCode; {
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		f.Class, f.Reason = client.Configuration, "this server has no such job; if it is ReMe, start it without service.backend"
	case code/100 == 3:
		f.Class, f.Reason = client.Configuration, f.Reason+": it sends on to another place; set the key upstream to that"
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		f.Class, f.Reason = client.Configuration, f.Reason+": a proxy before it wants to know who asks"
	case code == http.StatusUnprocessableEntity, code == http.StatusRequestEntityTooLarge, code == http.StatusBadRequest:
		f.Class, f.Alone = client.Permanent, true
	case code >= 500:
		f.Unknown = true
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		f.RetryAfter = min(time.Duration(s)*time.Second, time.Hour)
	}
	return f
}

// failed says what the text means that a failed job answers with. Of the text
// itself only the name of an exception is told: the rest may quote the request.
func failed(answer string) *Failure {
	name, _, _ := strings.Cut(answer, ":")
	if !isName(name) {
		name = ""
	}
	f := &Failure{fault: fault{Reason: "ReMe failed: " + cmp.Or(name, "it did not say why")}}
	switch {
	case strings.HasPrefix(answer, "OpenAIError: Missing credentials"):
		f.Class, f.Reason = client.Configuration, "ReMe has no key for its model: set LLM_API_KEY, in its environment or its .env, and start it again"
	case name == "AuthenticationError", name == "PermissionDeniedError":
		f.Class, f.Reason = client.Configuration, "the service of ReMe's model refuses its key: set LLM_API_KEY, in its environment or its .env, and start it again"
	case name == "NotFoundError":
		f.Class, f.Reason = client.Configuration, "ReMe's model is not known to its service: set LLM_MODEL_NAME or LLM_BASE_URL, and start it again"
	case name == "RateLimitError", name == "InternalServerError", name == "APIConnectionError", name == "APITimeoutError":
		f.Reason = "ReMe's model fails: " + name
	case strings.HasPrefix(answer, "Error: request_id was already used"):
		f.Class, f.Alone, f.Reason = client.Permanent, true, "ReMe has seen this request_id with other words"
	case strings.HasPrefix(answer, "Error: session_id"), strings.HasPrefix(answer, "Error: date must be"), strings.HasPrefix(answer, "Error: request_id must be"),
		name == "ValidationError", name == "OSError" && strings.Contains(answer, "File name too long"):
		f.Class, f.Alone, f.Reason = client.Permanent, true, "ReMe refuses the request: "+cmp.Or(name, "Error")
	default:
		f.Alone = true
	}
	return f
}

// isName tells whether s can be the name of an exception.
func isName(s string) bool {
	for _, r := range s {
		if r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// job calls a job with arguments and returns the envelope of its success.
func (c Client) job(ctx context.Context, name string, args any, limit int64) (envelope, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return envelope{}, err
	}
	e, err := c.post(ctx, name, body, limit)
	if err == nil && !*e.Success {
		err = failed(e.text())
	}
	return e, err
}

// Kind says who answers at an address.
type Kind string

// The kinds of what may answer.
const (
	Released Kind = "reme"    // a released ReMe
	Agent    Kind = "agent"   // a service that speaks the agent contract, such as our own serve
	Foreign  Kind = "foreign" // something else
	Offline  Kind = "offline" // nothing
)

// Server is what a ReMe says of itself.
type Server struct {
	Kind      Kind   `json:"kind"`
	Why       string `json:"why,omitempty"` // it is not Released
	Version   string `json:"version,omitempty"`
	Workspace string `json:"workspace,omitempty"` // its folder, "" if it does not tell
	Timezone  string `json:"timezone,omitempty"`  // IANA name, "" if it does not tell
	Host      string `json:"host,omitempty"`      // the address that it listens on, "" if it does not tell
}

// Idempotent tells whether the server knows a request_id: releases from 0.4.2.0 on.
func (s Server) Idempotent() bool {
	var n [4]int
	for i, part := range strings.SplitN(s.Version, ".", 4) {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n[i], _ = strconv.Atoi(digits)
		if digits != part {
			break
		}
	}
	switch {
	case n[0] != 0:
		return n[0] > 0
	case n[1] != 4:
		return n[1] > 4
	}
	return n[2] >= 2
}

// probeTime bounds a probe. An idle ReMe takes milliseconds, one that starts or is
// busy with its index on a busy machine took more than a second.
const probeTime = 5 * time.Second

// Probe finds out who answers, by up to three questions. Nothing of the user is
// sent.
func (c Client) Probe(ctx context.Context) Server {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	e, err := c.job(ctx, "version", struct{}{}, maxAnswer)
	var f *Failure
	if errors.As(err, &f) {
		kind := Foreign
		if f.Unknown || f.Err != nil {
			kind = Offline
		}
		return Server{Kind: kind, Why: f.Error()}
	}
	var version struct {
		Version string          `json:"version"`
		API     json.RawMessage `json:"integration_api_version"`
	}
	if err != nil || json.Unmarshal(e.Metadata, &version) != nil || version.Version == "" {
		return Server{Kind: Foreign, Why: notReMe}
	}
	s := Server{Kind: Released, Version: version.Version}
	if len(version.API) > 0 {
		return Server{Kind: Agent, Version: version.Version, Why: "it speaks the agent contract, which is more than a released ReMe does"}
	}
	e, err = c.job(ctx, "help", struct{}{}, maxAnswer)
	if err != nil || !strings.Contains(e.text(), "`auto_memory`") {
		return Server{Kind: Foreign, Why: notReMe}
	}
	if strings.Contains(e.text(), "`agent_session_append`") {
		s.Kind, s.Why = Agent, "it speaks the agent contract, which is more than a released ReMe does"
		return s
	}
	var config struct {
		Workspace string `json:"workspace_dir"`
		Timezone  string `json:"timezone"`
		Service   struct {
			Host string `json:"host"`
		} `json:"service"`
	}
	if e, err = c.job(ctx, "app_config", struct{}{}, maxAnswer); err == nil && json.Unmarshal(e.Answer, &config) == nil {
		s.Workspace, s.Timezone, s.Host = config.Workspace, config.Timezone, config.Service.Host
	}
	return s
}

// Extraction is what auto_memory answers with when it has done its work.
type Extraction struct {
	Answer  string // for people; it may quote the conversation
	Path    string // the note, relative to the server's workspace; "" if nothing was worth one
	Skipped bool   // there was nothing to look at
}

// AutoMemory has ReMe extract what is worth remembering of some messages. body is
// the request, which is sent byte for byte: a repeated one must be the same. An
// error is a *[Failure].
func (c Client) AutoMemory(ctx context.Context, body []byte) (Extraction, error) {
	e, err := c.post(ctx, "auto_memory", body, maxAnswer)
	if err != nil {
		return Extraction{}, err
	}
	return extraction(e)
}

func extraction(e envelope) (Extraction, error) {
	if !*e.Success {
		return Extraction{}, failed(e.text())
	}
	var meta struct {
		Path json.RawMessage `json:"path"`
	}
	x := Extraction{Answer: e.text()}
	if json.Unmarshal(e.Metadata, &meta) == nil && json.Unmarshal(meta.Path, &x.Path) == nil && !isNote(x.Path) {
		x.Path = ""
	}
	x.Skipped = x.Path == "" && x.Answer == "Skipped: no messages"
	return x, nil
}

// isNote tells whether a path names a note of a workspace.
func isNote(p string) bool { return fs.ValidPath(p) && path.Ext(p) == ".md" && path.Clean(p) == p }

// Passage is a stretch of a note that a search has found.
type Passage struct {
	Path       string // of the note, relative to the server's workspace, with slashes
	Start, End int    // lines, 1-based and inclusive
	Text       string // of any length, as the server has it
}

// Search finds passages, best first. What makes no sense is left out. An error is
// a *[Failure].
func (c Client) Search(ctx context.Context, query string, limit int) ([]Passage, error) {
	e, err := c.job(ctx, "search", map[string]any{"query": query, "limit": limit}, maxSearch)
	if err != nil {
		return nil, err
	}
	return passages(e.Metadata), nil
}

func passages(metadata json.RawMessage) []Passage {
	var meta struct {
		Results []json.RawMessage `json:"results"`
	}
	if json.Unmarshal(metadata, &meta) != nil {
		return nil
	}
	var out []Passage
	for _, raw := range meta.Results {
		var r struct {
			Path  string `json:"path"`
			Start int    `json:"start_line"`
			End   int    `json:"end_line"`
			Text  string `json:"text"`
		}
		if json.Unmarshal(raw, &r) != nil || !isNote(r.Path) {
			continue
		}
		r.Start = max(r.Start, 1)
		out = append(out, Passage{r.Path, r.Start, max(r.End, r.Start), r.Text})
	}
	return out
}

// Read returns lines start to end of a note; 0 means the first and the last.
func (c Client) Read(ctx context.Context, note string, start, end int) (string, error) {
	args := map[string]any{"path": note}
	if start > 0 {
		args["start_line"] = start
	}
	if end > 0 {
		args["end_line"] = end
	}
	e, err := c.job(ctx, "read", args, maxAnswer)
	if err != nil {
		return "", err
	}
	return e.text(), nil
}
