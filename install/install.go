// Package install edits the configuration files of other people's programs.
//
// What is to be done is computed once, as []Change, and is then applied,
// printed as a diff, or only counted. Text is spliced: comments, order,
// indentation and line ends of the user's files stay as they are. The bytes
// from before the first install are kept in a receipt, so that uninstall gives
// them back exactly if nobody else touched the file, and else takes out only
// what is ours. A file that cannot be understood is refused and left alone.
//
// [Install] and [Uninstall] do the work for any [Target]; what a host's files
// look like is known to the packages hooks/<host> only.
package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Target is a host whose configuration can be made to call us.
type Target interface {
	// Host is the name of the host on our command line.
	Host() client.Host
	// Title is the name of the host for people.
	Title() string
	// Find tells whether the host is on this machine. It may run the host's
	// program to ask for its version.
	Find(context.Context, Env, Options) Found
	// Files lists the files that an install edits: those of the hooks and those
	// that name our MCP server, as o asks for. A host to which our plugin gives the
	// tools has no server beside it.
	Files(Env, Options) ([]File, error)
	// Check reads what is configured now. It changes and runs nothing.
	Check(Env, Options) Report
	// Trust records the user's approval of the installed hooks. Hosts that ask
	// for none return nil.
	Trust(context.Context, Env, Options) error
	// Trusted tells whether the host will run the installed hooks.
	Trusted(context.Context, Env, Options) (TrustState, error)
}

// Validator is a [Target] whose host can tell whether it accepts its
// configuration.
type Validator interface {
	// Validate asks the host about what an install has just written. An error takes
	// the install back.
	Validate(context.Context, Env, Options) error
}

// ShellHooker is a [Target] that heeds Options.ShellHooks: it is connected by a
// plugin of ours, or by the host's shell hooks.
type ShellHooker interface {
	Target
	ShellHooks()
}

// Scope says for whom hooks are installed.
type Scope string

// The scopes of an install.
const (
	UserScope    Scope = "user"    // every project of this user; the default
	ProjectScope Scope = "project" // one project, for everyone who has it
)

// UnknownScope is the error for a scope that a host does not have.
func UnknownScope(s Scope) error { return fmt.Errorf("scope %q is not known here", string(s)) }

// Options say what to install.
type Options struct {
	Scope      Scope  // "" means UserScope
	ProjectDir string // absolute; needed for ProjectScope, and makes Check look there too
	Command    string // absolute path of our installed binary; "" means Env.BinaryPath
	Trust      bool   // also record the user's approval, see Target.Trust
	Part       Part   // "" means all
	ShellHooks bool   // by the host's shell hooks instead of a plugin of ours, see ShellHooker
	HostBinary string // the host's program for Find, Trust and Trusted; "" means the one on the PATH
}

// Part is a part of what an install puts into a host's configuration.
type Part string

// The parts. What is there of the other part stays as it is.
const (
	HooksPart  Part = "hooks"
	ServerPart Part = "server" // our MCP server, by which a model has the memory as tools
)

// Hooks tells whether hooks are asked for.
func (o Options) Hooks() bool { return o.Part != ServerPart }

// Server tells whether our MCP server is asked for. It is one for all projects.
func (o Options) Server() bool { return o.Part != HooksPart && o.Scope != ProjectScope }

// In is the file for the scope: user, or project, which is relative, below the project's
// folder.
func (o Options) In(user, project string) (string, error) {
	switch o.Scope {
	case "", UserScope:
		return user, nil
	case ProjectScope:
		if !filepath.IsAbs(o.ProjectDir) {
			return "", errors.New("the project scope needs the project's folder")
		}
		return filepath.Join(o.ProjectDir, project), nil
	}
	return "", UnknownScope(o.Scope)
}

// Program is the host's program as it is looked for: o.HostBinary, or else name.
func (o Options) Program(name string) string {
	if o.HostBinary != "" {
		return o.HostBinary
	}
	return name
}

// Found tells what is known of a host on this machine.
type Found struct {
	Present   bool
	Binary    string // absolute path of the host's program; "" if only its folder is there
	Version   string // as the program says it, "" if it did not
	ConfigDir string
}

// File is one file that an install edits.
type File struct {
	Path string
	// Upsert puts our entries into the content of the file (nil: absent). It
	// returns old itself if nothing is to be done.
	Upsert func(old []byte) ([]byte, error)
	// Remove takes our entries out. original is the content before the first
	// install as the receipt has it; known is false without a receipt. It
	// returns nil if the file should not be there any more.
	Remove func(now []byte, original []byte, known bool) ([]byte, error)
}

// Trust is the state of the user's approval of one hook.
type Trust string

// The states of approval.
const (
	TrustYes      Trust = "trusted"
	TrustNo       Trust = "untrusted"
	TrustModified Trust = "modified" // the hook is another one than was approved
	TrustDisabled Trust = "disabled" // switched off by the user
)

// HookTrust is the approval of one hook of ours.
type HookTrust struct {
	Event string // as on our command line
	File  string
	State Trust
}

// TrustState tells whether a host runs our hooks.
type TrustState struct {
	Needed   bool // false: the host asks for no approval
	Hooks    []HookTrust
	Problems []Problem
	Source   string // who said so
}

// OK tells whether nothing is left for the user to approve.
func (t TrustState) OK() bool {
	for _, h := range t.Hooks {
		if h.State != TrustYes {
			return false
		}
	}
	return true
}

// ErrChanged is returned when a file changed between reading and writing it.
var ErrChanged = errors.New("the file changed in the meantime; run the command again")

// PlanInstall computes what an install would change; nothing if all is in place.
func PlanInstall(t Target, env Env, o Options) ([]Change, error) {
	plan, err := planInstall(t, env, o)
	return plan.changes(), err
}

// PlanUninstall computes what an uninstall would change.
func PlanUninstall(t Target, env Env, o Options) ([]Change, error) {
	plan, err := planUninstall(t, env, o)
	return plan.changes(), err
}

// Install puts our hooks into the configuration of a host, and has them
// approved if o.Trust says so. It returns what it changed. With an error from
// the approval the hooks are installed all the same.
func Install(ctx context.Context, t Target, env Env, o Options) (changed []Change, err error) {
	defer func() { err = advised(err) }()
	unlock, err := lock(ctx, env)
	if err != nil {
		return nil, err
	}
	defer unlock()
	plan, err := planInstall(t, env, o)
	if err != nil {
		return nil, err
	}
	if err := plan.applyInstall(); err != nil {
		return nil, err
	}
	if v, ok := t.(Validator); ok && len(plan.changes()) > 0 {
		if err := v.Validate(ctx, env, o); err != nil {
			if failed := plan.undoInstall(); failed != nil {
				return plan.changes(), errors.Join(err, failed)
			}
			return nil, fmt.Errorf("%w; everything is as it was before", err)
		}
	}
	if !o.Trust {
		return plan.changes(), nil
	}
	more, err := trust(ctx, t, env, o)
	return append(plan.changes(), more...), err
}

// Uninstall takes our hooks out again. It returns what it changed.
func Uninstall(ctx context.Context, t Target, env Env, o Options) (changed []Change, err error) {
	defer func() { err = advised(err) }()
	unlock, err := lock(ctx, env)
	if err != nil {
		return nil, err
	}
	defer unlock()
	plan, err := planUninstall(t, env, o)
	if err != nil {
		return nil, err
	}
	return plan.changes(), plan.applyUninstall()
}

// advised says what to do about what the file system refused.
func advised(err error) error {
	for _, a := range []struct {
		refusal error
		do      string
	}{
		{fs.ErrPermission, "let your user read and write it and its folder"},
		{syscall.EROFS, "have its disk mounted writable"},
		{syscall.ENOSPC, "make room on its disk"},
		{syscall.ENOTDIR, "put a folder in the place of what is none"},
		{syscall.ELOOP, "mend the link that leads to itself"},
		{syscall.EISDIR, "put a file in the place of the folder"},
	} {
		if errors.Is(err, a.refusal) {
			return fmt.Errorf("%w; %s, and run the command again", err, a.do)
		}
	}
	return err
}

// lock keeps two installs from running at once.
func lock(ctx context.Context, env Env) (func(), error) {
	unlock, err := durable.Lock(ctx, filepath.Join(env.receiptDir(), ".lock"))
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("another install is running: %w", err)
		}
		return nil, err
	}
	return unlock, nil
}

// Holds tells whether something that was found in a place is in f: the place is
// the file, or the folder that it is in.
func (f File) Holds(place string) bool { return f.Path == place || filepath.Dir(f.Path) == place }

// Installed tells whether an install at a host was not taken back, and whether
// it was one of hooks.
func Installed(t Target, env Env, o Options) (any, hooks bool) {
	r, err := readReceipt(env, t.Host())
	if err != nil || len(r.Files) == 0 {
		return false, false
	}
	o.Part = HooksPart
	files, err := t.Files(env, o)
	o.Part = ServerPart
	servers, serverErr := t.Files(env, o)
	if err != nil || serverErr != nil {
		return true, false
	}
	return true, slices.ContainsFunc(files, func(f File) bool {
		_, known := r.Files[f.Path]
		return known && !slices.ContainsFunc(servers, func(s File) bool { return s.Path == f.Path })
	})
}
