package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// receiptVersion is the version of the receipts' format.
const receiptVersion = 1

// receipt is what an install at one host remembers for its uninstall.
type receipt struct {
	Version int              `json:"version"`
	Files   map[string]entry `json:"files"` // by path, links not followed
}

// entry is what is remembered of one file.
type entry struct {
	Existed  bool     `json:"existed"`
	Original []byte   `json:"original,omitempty"` // before the first install
	Written  string   `json:"written_sha256"`     // of the last content that we left there
	Made     []string `json:"made_folders,omitempty"`
}

// before is the content that the file had before the first install.
func (e entry) before() []byte {
	if e.Existed {
		return append([]byte{}, e.Original...)
	}
	return nil
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func receiptPath(env Env, host client.Host) string {
	return filepath.Join(env.receiptDir(), string(host)+".json")
}

// readReceipt reads the receipt of a host. One that is damaged counts as lost:
// uninstall then looks for our entries instead.
func readReceipt(env Env, host client.Host) (receipt, error) {
	b, err := os.ReadFile(receiptPath(env, host))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return receipt{}, fmt.Errorf("read the receipt of the install: %w", err)
	}
	var r receipt
	if json.Unmarshal(b, &r) != nil {
		r = receipt{}
	}
	if r.Version > receiptVersion {
		return receipt{}, fmt.Errorf("%s was written by a newer reme-hook; use that one", receiptPath(env, host))
	}
	if r.Files == nil {
		r.Files = map[string]entry{}
	}
	return r, nil
}

func (r receipt) write(env Env, host client.Host) error {
	path := receiptPath(env, host)
	if len(r.Files) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the receipt of the install: %w", err)
		}
		return nil
	}
	r.Version = receiptVersion
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(durable.MkdirAll(filepath.Dir(path)), durable.Sweep(filepath.Dir(path))); err != nil {
		return err
	}
	return durable.WriteFile(path, append(b, '\n'))
}

// note remembers that f changes from old to written.
func (r receipt) note(f File, old, written []byte) error {
	e, known := r.Files[f.Path]
	made := append(e.Made, missingFolders(f.Path)...)
	if !known || sum(old) != e.Written || old == nil {
		// Someone else had the file in between: what uninstall gives back must be
		// theirs without what is ours.
		before, err := f.removed(old, e, known)
		if err != nil {
			return err
		}
		e = entry{Existed: before != nil, Original: before}
	}
	e.Written, e.Made = sum(written), made
	r.Files[f.Path] = e
	return nil
}

// removed is the content of f without our entries.
func (f File) removed(now []byte, e entry, known bool) ([]byte, error) {
	if now == nil {
		return nil, nil
	}
	return f.Remove(now, e.before(), known)
}

// missingFolders lists the folders that a write to path has to make, outermost
// first.
func missingFolders(path string) []string {
	path, err := resolve(path)
	if err != nil {
		return nil
	}
	var out []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return out
		}
		out = append([]string{dir}, out...)
	}
}

// plan is a computed install or uninstall.
type plan struct {
	env     Env
	host    client.Host
	receipt receipt
	before  receipt // as it was when applyInstall began
	steps   []step
}

type step struct {
	file   File
	change Change
}

func newPlan(t Target, env Env, o Options) (*plan, []File, error) {
	files, err := t.Files(env, o)
	if err != nil {
		return nil, nil, err
	}
	r, err := readReceipt(env, t.Host())
	return &plan{env: env, host: t.Host(), receipt: r}, files, err
}

func planInstall(t Target, env Env, o Options) (*plan, error) {
	if _, ok := t.(ShellHooker); o.ShellHooks && !ok {
		return nil, fmt.Errorf("%s is always connected in the same way; leave out --shell-hooks", t.Title())
	}
	p, files, err := newPlan(t, env, o)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		old, err := read(f.Path)
		if err != nil {
			return nil, err
		}
		updated, err := f.Upsert(old)
		if errors.Is(err, ErrForeignServer) && o.Hooks() {
			updated, err = old, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; nothing was changed", f.Path, err)
		}
		p.add(f, old, updated)
	}
	return p, nil
}

func planUninstall(t Target, env Env, o Options) (*plan, error) {
	o.Part = "" // whatever was installed
	p, files, err := newPlan(t, env, o)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		now, err := read(f.Path)
		if err != nil {
			return nil, err
		}
		e, known := p.receipt.Files[f.Path]
		cleaned := e.before()
		if !known || sum(now) != e.Written {
			if cleaned, err = f.removed(now, e, known); err != nil {
				return nil, fmt.Errorf("%s: %w; nothing was changed", f.Path, err)
			}
		}
		if now == nil {
			cleaned = nil // someone removed the file: it does not come back
		}
		p.add(f, now, cleaned)
	}
	return p, nil
}

// add makes a step even where nothing changes, as uninstall must forget such
// files too.
func (p *plan) add(f File, old, updated []byte) {
	p.steps = append(p.steps, step{f, Change{f.Path, old, updated}})
}

func (p *plan) changes() []Change {
	if p == nil {
		return nil
	}
	var out []Change
	for _, s := range p.steps {
		if !same(s.change.Old, s.change.New) {
			out = append(out, s.change)
		}
	}
	return out
}

// applyInstall writes the receipt first: one that speaks of a write that never
// came about is harmless, a write without a receipt loses the original.
func (p *plan) applyInstall() error {
	changes := p.changes()
	if len(changes) == 0 {
		return nil
	}
	for _, s := range p.steps {
		if same(s.change.Old, s.change.New) {
			continue
		}
		if err := p.receipt.note(s.file, s.change.Old, s.change.New); err != nil {
			return err
		}
	}
	var err error
	if p.before, err = readReceipt(p.env, p.host); err != nil {
		return err
	}
	if err := p.receipt.write(p.env, p.host); err != nil {
		return err
	}
	crash.Point("install.noted")
	if err := Apply(changes); err != nil {
		return errors.Join(err, p.before.write(p.env, p.host))
	}
	return nil
}

// undoInstall takes back what applyInstall did.
func (p *plan) undoInstall() error {
	var back []Change
	for _, c := range slices.Backward(p.changes()) {
		back = append(back, Change{c.Path, c.New, c.Old})
	}
	if err := Apply(back); err != nil {
		return err
	}
	for _, s := range p.steps {
		p.receipt.removeFolders(s.file.Path)
	}
	return p.before.write(p.env, p.host)
}

// removeFolders removes those that were made for a file.
func (r receipt) removeFolders(path string) {
	for _, dir := range slices.Backward(r.Files[path].Made) {
		os.Remove(dir) // refused by the system if it is not empty, as it should be
	}
}

func (p *plan) applyUninstall() error {
	if err := Apply(p.changes()); err != nil {
		return err
	}
	crash.Point("uninstall.changed")
	for _, s := range p.steps {
		p.receipt.removeFolders(s.file.Path)
		delete(p.receipt.Files, s.file.Path)
	}
	return p.receipt.write(p.env, p.host)
}

// trust has the hooks approved and remembers which files the host changed for
// that.
func trust(ctx context.Context, t Target, env Env, o Options) ([]Change, error) {
	p, files, err := newPlan(t, env, o)
	if err != nil {
		return nil, err
	}
	before := make([][]byte, len(files))
	for i, f := range files {
		if before[i], err = read(f.Path); err != nil {
			return nil, err
		}
	}
	failed := t.Trust(ctx, env, o)
	for i, f := range files {
		now, err := read(f.Path)
		if err != nil {
			return nil, errors.Join(failed, err)
		}
		p.add(f, before[i], now)
		if same(before[i], now) {
			continue
		}
		if err := p.receipt.note(f, before[i], now); err != nil {
			return nil, errors.Join(failed, err)
		}
	}
	if changes := p.changes(); len(changes) > 0 {
		return changes, errors.Join(failed, p.receipt.write(env, t.Host()))
	}
	return nil, failed
}
