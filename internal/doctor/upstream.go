package doctor

import (
	"context"
	"net"

	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/upstream"
)

// upstream looks for the real ReMe, and at what waits for it.
func (d Doctor) upstream(ctx context.Context) []Finding {
	if d.Upstream.URL == "" {
		return nil
	}
	k, err := d.Upstream.Probe(ctx)
	var st upstream.Status
	if err == nil {
		st, err = d.Upstream.Status()
	}
	if err != nil {
		return []Finding{problem("upstream-state", "what is known of ReMe cannot be read or kept: "+err.Error(), "make "+d.Upstream.Dir+" readable and writable")}
	}
	out := []Finding{d.server(k)}
	if k.Kind == reme.Released && !k.Idempotent() {
		out = append(out, note("upstream-old", "this ReMe does not know a request again: after a crash one may be extracted twice", "upgrade it to 0.4.2.0"))
	}
	if k.Host != "" && k.Host != "localhost" && !net.ParseIP(k.Host).IsLoopback() {
		out = append(out, problem("upstream-open", "ReMe listens on "+k.Host+" and asks nobody who he is", "start it with service.host=127.0.0.1"))
	}
	level := Note
	if st.NeedsUser() {
		level = Problem
	}
	for _, line := range st.Lines() {
		out = append(out, Finding{Area: serviceArea, Code: "upstream-work", Level: level, What: "forwarding to ReMe: " + line, Do: "reme-hook upstream"})
	}
	return out
}

// server says who answers. That nobody does is only wrong if the user named the
// address.
func (d Doctor) server(k upstream.Known) Finding {
	named := d.Upstream.Target != upstream.Auto
	f := Finding{Area: serviceArea, Code: "upstream", Level: Note, What: "no ReMe at " + d.Upstream.URL + ": " + k.Why}
	switch k.Kind {
	case reme.Released:
		f.Level, f.What = OK, "ReMe "+k.Version+" at "+d.Upstream.URL+" makes notes"
		return f
	case reme.Agent:
		f.Do = "name another address as `upstream`"
	case reme.Offline:
		f.Do = "notes are made without a model; to have ReMe make them, run `reme start`"
	default:
		f.Do = "start ReMe, or name its address as `upstream`"
	}
	if named {
		f.Level = Problem
	}
	return f
}
