package doctor

import (
	"context"
	"slices"

	"github.com/agentscope-ai/reme-hook/install"
)

// mend is what Fix can do about findings. One may be for several of them.
type mend struct {
	did string // what was done then, for people
	do  func(context.Context) error
}

// with says what Fix can do about f, if anything.
func (f Finding) with(m *mend) Finding {
	f.mend, f.Fix = m, m != nil
	return f
}

// Fixed is something that was done about findings, or failed.
type Fixed struct {
	Area string `json:"area"`
	Did  string `json:"did"`
	Err  string `json:"error,omitempty"`
}

// Fix does what is safe about findings: it mends what is ours, and never what is
// the user's choice. It returns what it did.
func (d Doctor) Fix(ctx context.Context, findings []Finding) []Fixed {
	out := []Fixed{}
	var done []*mend
	for _, f := range findings {
		if f.mend == nil || slices.Contains(done, f.mend) {
			continue
		}
		done = append(done, f.mend)
		fixed := Fixed{Area: f.Area, Did: f.mend.did}
		if err := f.mend.do(ctx); err != nil {
			fixed.Err = err.Error()
		}
		out = append(out, fixed)
	}
	return out
}

// again mends by a new install what an older one, or two, left at a host. It is
// nil where an install might bring back what the user took out, or put hooks
// where none are.
func (d Doctor) again(h Host, report install.Report) *mend {
	o := d.Options
	o.Scope = install.UserScope
	server := slices.ContainsFunc(report.Servers, func(s install.Registered) bool { return s.Ours() })
	switch {
	case len(report.Missing) > 0 || report.OnPath:
		return nil
	case len(report.Hooks) == 0 && !server:
		return nil
	case len(report.Hooks) == 0:
		o.Part = install.ServerPart
	case !server:
		o.Part = install.HooksPart
	}
	files, err := h.Target.Files(d.Env, o)
	if err != nil {
		return nil
	}
	for _, c := range report.Hooks {
		if !slices.ContainsFunc(files, func(f install.File) bool { return f.Holds(c.File) }) {
			return nil // of another scope, or a plugin's
		}
	}
	area := string(h.Adapter.Host)
	return &mend{"did " + command(area, report), func(ctx context.Context) error {
		if err := install.SelfCopy(d.Program, d.Env.CommandPath(o)); err != nil {
			return err
		}
		_, err := install.Install(ctx, h.Target, d.Env, o)
		return err
	}}
}

// Report is what doctor prints as JSON. fixed is nil if nothing was asked for.
func Report(findings []Finding, fixed []Fixed) any {
	return struct {
		Version  int       `json:"version"`
		Healthy  bool      `json:"healthy"`
		Fixed    []Fixed   `json:"fixed,omitempty"`
		Findings []Finding `json:"findings"`
	}{1, Healthy(findings), fixed, findings}
}
