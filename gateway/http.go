package gateway

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentscope-ai/reme-hook/client"
)

// Where what is no job is found.
const (
	mcpPath     = "/mcp"
	healthPath  = "/healthz"
	openAPIPath = "/openapi.json"
)

const (
	// MaxBody is the size of a request's body in bytes, at most.
	MaxBody = 16 << 20
	// maxNesting is how deep the JSON of a body goes, at most; that of our own
	// requests ends at 4.
	maxNesting = 100
	// retryAfter is what a client is told to wait if the error does not say.
	retryAfter = 2 * time.Second
)

// HandlerOptions are what the way in over HTTP takes from outside.
type HandlerOptions struct {
	// Token is what a request must bear. If it is empty, only requests to the
	// loopback by its own names are answered, which no page in a browser can make
	// by a name of its own.
	Token string
	Log   *slog.Logger // gets no text of a request or an answer
}

type handler struct {
	*Gateway
	token   string
	log     *slog.Logger
	tools   http.Handler
	origins *http.CrossOriginProtection
	limits  *limits
}

// Handler answers POST /<job> for each job with ReMe's envelope, MCP clients at
// /mcp with the tools, and GET /openapi.json and /healthz.
//
// What fails has the envelope too, whose metadata have the class of the error, and
// the field and the reason if one is to blame: 400 for a bad field, 401 without the
// token, 403 for requests of web pages, 404 (with the jobs that there are), 405,
// 413, 415, 422 for what is no JSON object of the job's fields, 500 if the user has
// to do something, and 503 with Retry-After for what may work later.
func (g *Gateway) Handler(o HandlerOptions) (http.Handler, error) {
	return g.handler(o, newLimits())
}

func (g *Gateway) handler(o HandlerOptions, l *limits) (http.Handler, error) {
	server, err := g.MCP(o.Log)
	if err != nil {
		return nil, err
	}
	// Without sessions, a client needs nothing of a server that has ended, and
	// leaves nothing in one that goes on.
	tools := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, // admit does it
	})
	return &handler{Gateway: g, token: o.Token, log: o.Log, tools: tools, origins: http.NewCrossOriginProtection(), limits: l}, nil
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	answered := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	h.bodyDeadline(w) // also for a request that is refused: package http reads on before it answers
	route, err := h.serve(answered, r)
	attrs := []any{"route", route, "took_ms", time.Since(start).Milliseconds()}
	if err != nil {
		h.fail(answered, err)
		attrs = append(attrs, "class", client.ClassOf(err).String())
	}
	if route != healthPath && (route != mcpPath || answered.status >= 400) { // the tools write their own lines
		h.log.Info("http", append(attrs, "status", answered.status)...)
	}
}

// serve answers a request, or returns why it is refused. The route is a name of
// ours, never text of the request.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) (route string, err error) {
	route = "none"
	methods := "POST"
	name := strings.TrimPrefix(r.URL.Path, "/")
	job := slices.IndexFunc(h.jobs, func(j Job) bool { return j.Name == name })
	switch {
	case r.URL.Path == mcpPath:
		route = mcpPath
	case r.URL.Path == healthPath, r.URL.Path == openAPIPath:
		route, methods = r.URL.Path, "GET, HEAD"
	case job >= 0:
		route = name
	}
	if err := h.admit(r, route); err != nil {
		return route, err
	}
	if route == "none" {
		_, err := h.Call(r.Context(), name, nil)
		return route, err
	}
	if !slices.Contains(strings.Split(methods, ", "), r.Method) {
		w.Header().Set("Allow", methods)
		return route, &httpError{http.StatusMethodNotAllowed, "method", "must be " + methods}
	}
	switch route {
	case healthPath:
		respond(w, http.StatusOK, answer("ok", nil))
		return route, nil
	case openAPIPath:
		return route, h.openAPI(r.Context(), w)
	}
	caller, err := callerOf(r.Header)
	if err != nil {
		return route, err
	}
	body, release, err := h.read(w, r)
	if err != nil {
		return route, err
	}
	defer release()
	if job < 0 || !h.jobs[job].lines {
		leave, err := h.limits.place(r.Context())
		if err != nil {
			return route, err
		}
		defer leave()
	}
	if route == mcpPath {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		h.tools.ServeHTTP(w, r)
		return route, nil
	}
	a, err := h.as(caller).Call(r.Context(), name, body)
	if err == nil {
		respond(w, http.StatusOK, a)
	}
	return route, err
}

// admit refuses what may not ask.
func (h *handler) admit(r *http.Request, route string) error {
	if h.token == "" && !isLoopback(r.Host) {
		return &httpError{http.StatusForbidden, "Host", "must be localhost or a loopback address"}
	}
	if h.origins.Check(r) != nil {
		return &httpError{http.StatusForbidden, "Origin", "must not be another site's"}
	}
	if h.token != "" && route != healthPath {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		want, got := sha256.Sum256([]byte(h.token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
		if subtle.ConstantTimeCompare(want[:], got[:]) == 0 || !strings.EqualFold(scheme, "Bearer") {
			return &httpError{http.StatusUnauthorized, "Authorization", "must be Bearer and the token of this service"}
		}
	}
	return nil
}

// isLoopback tells whether a host, with a port or without, is this machine by a
// name that nobody else can give to another. That is not true of names below localhost:
// where the browser does not keep them to itself, a network's name server can rebind
// them, and the page from there is of the same origin.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// read returns the body of a request for which there is room; release gives that to
// the next one.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.ContentLength != 0 &&
		media != "application/json" && (!strings.HasPrefix(media, "application/") || !strings.HasSuffix(media, "+json")) {
		return nil, nil, &httpError{http.StatusUnsupportedMediaType, "Content-Type", "must be application/json"}
	}
	tooLarge := &httpError{http.StatusRequestEntityTooLarge, "body", fmt.Sprintf("must be at most %d MiB", MaxBody>>20)}
	if r.ContentLength > MaxBody {
		return nil, nil, tooLarge
	}
	forget, err := h.limits.room(r.Context(), r.ContentLength)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			forget()
		}
	}()
	h.bodyDeadline(w) // the wait for room is not the client's
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, nil, tooLarge
	case err != nil:
		return nil, nil, &httpError{http.StatusRequestTimeout, "body", "did not come whole"}
	case isNested(body, maxNesting):
		return nil, nil, &httpError{http.StatusUnprocessableEntity, "body", fmt.Sprintf("must not be nested deeper than %d", maxNesting)}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return body, forget, nil
}

// bodyDeadline gives the client of a request time to send a body.
func (h *handler) bodyDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.limits.bodyTime)) // an error in tests without a connection
}

// isNested tells whether a JSON text goes deeper than max.
func isNested(text []byte, max int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > max {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// httpError is a refusal that only HTTP knows.
type httpError struct {
	status int
	field  string
	reason string
}

func (e *httpError) Error() string { return e.field + ": " + e.reason }

// As makes a [client.Error] of it.
func (e *httpError) As(target any) bool {
	to, ok := target.(**client.Error)
	if ok {
		*to = &client.Error{Class: client.Permanent, Field: e.field, Reason: e.reason}
		switch e.status {
		case http.StatusUnauthorized, http.StatusForbidden:
			(*to).Class = client.Configuration
		case http.StatusRequestTimeout:
			(*to).Class = client.Retryable
		}
	}
	return ok
}

// fail answers with an error.
func (h *handler) fail(w http.ResponseWriter, err error) {
	a := Failure(err)
	a.Metadata["class"] = client.ClassOf(err).String()
	status := statusOf(err)
	switch status {
	case http.StatusNotFound:
		a.Metadata["jobs"] = names(h.jobs)
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		wait := retryAfter
		if e := new(client.Error); errors.As(err, &e) && e.RetryAfter > 0 {
			wait = e.RetryAfter
		}
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	respond(w, status, a)
}

func statusOf(err error) int {
	var only *httpError
	var e *client.Error
	switch {
	case errors.As(err, &only):
		return only.status
	case !errors.As(err, &e):
		return http.StatusServiceUnavailable
	case e.Class == client.Configuration:
		return http.StatusInternalServerError
	case e.Class == client.Retryable:
		return http.StatusServiceUnavailable
	case e.Field == jobField, errors.Is(err, fs.ErrNotExist):
		return http.StatusNotFound
	case e.Field == argumentsField:
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadRequest
}

func respond(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		status = http.StatusInternalServerError
		b.Reset()
		_ = enc.Encode(Failure(fmt.Errorf("the answer cannot be written as JSON: %T", err)))
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that is gone needs no answer
}

// statusWriter remembers the status that was answered.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
