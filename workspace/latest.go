package workspace

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/agentscope-ai/reme-hook/client"
)

const (
	latestFiles = 20  // files of a project, the newest ones, that a profile is made of
	latestDocs  = 100 // docs of them
	threadTurns = 10  // turns of a session, the newest ones, that its thread is made of
	littleSaid  = 1   // priors of all terms of a prompt; those of less, like "thanks", are small talk
)

// profile finds what there is to know of a project before anything is asked: its
// newest notes, which tell what was decided, and what was last said in it, which
// tells what is open. Notes leave one place to that.
func (r *recall) profile(ctx context.Context, x *index) error {
	r.hits, r.more = nil, 0
	root := projectRoot(r.req.Cwd)
	if root == "" {
		return nil
	}
	of := func(k kind) ([]*hit, error) {
		hits, err := r.newest(ctx, x, `SELECT d.id FROM docs d WHERE d.file IN
			(SELECT id FROM files WHERE kind = ?1 AND (cwd = ?2 OR cwd > ?3 AND cwd < ?4) ORDER BY last DESC LIMIT ?5) ORDER BY d.at DESC, d.id DESC LIMIT ?6`,
			k, root, root+string(filepath.Separator), root+string(filepath.Separator+1), latestFiles, latestDocs)
		return slices.DeleteFunc(hits, func(h *hit) bool { return !r.wanted(h) || !inProject(h.cwd, root) }), err
	}
	notes, err := of(note)
	if err != nil {
		return err
	}
	turns, err := of(dialog)
	if err != nil {
		return err
	}
	notes, turns = r.unseen(ctx, notes), r.unseen(ctx, turns)
	most := cmp.Or(r.req.Limit, defaultLimit) - 1
	r.choose(append(notes[:min(len(notes), most)], turns...))
	return nil
}

// thread finds what was last said in the running session.
func (r *recall) thread(ctx context.Context, x *index) error {
	r.hits, r.more = nil, 0
	hits, err := r.newest(ctx, x, "SELECT d.id FROM docs d JOIN files f ON f.id = d.file WHERE f.path = ? ORDER BY d.at DESC, d.id DESC LIMIT ?",
		dialogPath(client.Session{Host: r.req.Host, Scope: r.req.ScopeID, ID: r.req.Session}), threadTurns)
	if err != nil {
		return err
	}
	// The turn that goes on has no answer yet, and the host keeps its prompt.
	r.choose(slices.DeleteFunc(r.unseen(ctx, hits), func(h *hit) bool { return len(h.doc.parts) < 2 }))
	r.more = 0
	return nil
}

// newest describes the docs that a query finds.
func (r *recall) newest(ctx context.Context, x *index, query string, args ...any) ([]*hit, error) {
	var hits []*hit
	err := x.reading(ctx, func(index *reader) error {
		rows, err := index.query(query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			h := &hit{score: 1}
			if err := rows.Scan(&h.id); err != nil {
				return err
			}
			hits = append(hits, h)
		}
		rows.Close()
		return errors.Join(rows.Err(), index.describe(hits))
	})
	return hits, err
}

// unseen leaves out what the session was shown, and small talk.
func (r *recall) unseen(ctx context.Context, hits []*hit) []*hit {
	hits = r.readTexts(ctx, hits)
	r.leaveOutShown(hits)
	return slices.DeleteFunc(hits, func(h *hit) bool {
		return h.verdict != "" || h.kind == dialog && newQuery(h.doc.parts[0].text).priors() < littleSaid
	})
}
