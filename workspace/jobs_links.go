package workspace

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

// Links is the graph of the wiki links between the files of a workspace. That a
// note tells its source conversation counts as a link. A note is read once, and
// again when it has changed.
type Links struct {
	w     *Workspace
	mu    sync.Mutex
	notes map[string]*linkedNote
}

// Links returns the graph. It reads nothing yet.
func (w *Workspace) Links() *Links { return &Links{w: w} }

type linkedNote struct {
	found
	name, description string
	links             []Edge
}

// Direction says which links are followed.
type Direction string

// The directions: from a file to what it names, to what names it, both.
const (
	Forward  Direction = "forward"
	Backward Direction = "backward"
	Both     Direction = "both"
)

// Graph is a stretch of the graph of wiki links, in ReMe's shape.
type Graph struct {
	Version   int       `json:"version"`
	Seeds     []string  `json:"seeds"`
	Depth     int       `json:"depth"`
	Direction Direction `json:"direction"`
	Nodes     []Node    `json:"nodes"`
	Edges     []Edge    `json:"edges"`
	Truncated bool      `json:"truncated,omitempty"` // there are more than MaxNodes
}

// Node is a file, or what a link names in vain.
type Node struct {
	ID          string `json:"id"`
	Path        string `json:"path"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Depth       int    `json:"depth"`
	Indexed     bool   `json:"indexed"` // it is there
}

// Edge is a link.
type Edge struct {
	Source string  `json:"source"`
	Target string  `json:"target"`
	Anchor *string `json:"target_anchor"`
	Depth  int     `json:"depth"`
}

// MaxNodes bounds a graph: the list of a day links to each note of it.
const MaxNodes = 200

// Traverse follows the links from the seeds, at most depth steps.
func (l *Links) Traverse(ctx context.Context, seeds []string, depth int, dir Direction) (Graph, error) {
	g := Graph{Version: 1, Seeds: []string{}, Depth: depth, Direction: dir, Nodes: []Node{}, Edges: []Edge{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(ctx); err != nil {
		return g, err
	}
	adjacent := l.adjacency(dir)
	seen := map[string]bool{}
	edges := map[[3]string]bool{}
	visit := func(path string, depth int) bool {
		if seen[path] {
			return true
		}
		if len(g.Nodes) == MaxNodes {
			g.Truncated = true
			return false
		}
		seen[path] = true
		g.Nodes = append(g.Nodes, l.node(path, depth))
		return true
	}
	for _, s := range seeds {
		file, _, _ := parseAddress(s)
		if file = path.Clean(file); !seen[file] && visit(file, 0) {
			g.Seeds = append(g.Seeds, file)
		}
	}
	// Nodes are visited in the order of their depth.
	for i := 0; i < len(g.Nodes) && g.Nodes[i].Depth < depth; i++ {
		from := g.Nodes[i]
		for _, e := range adjacent[from.Path] {
			to := e.Target
			if to == from.Path {
				to = e.Source
			}
			e.Depth = from.Depth + 1
			key := [3]string{e.Source, e.Target, anchorOf(e)}
			if visit(to, e.Depth) && !edges[key] {
				edges[key] = true
				g.Edges = append(g.Edges, e)
			}
		}
	}
	slices.SortFunc(g.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Path, b.Path))
	})
	slices.SortFunc(g.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target), cmp.Compare(anchorOf(a), anchorOf(b)))
	})
	return g, nil
}

func anchorOf(e Edge) string {
	if e.Anchor == nil {
		return ""
	}
	return *e.Anchor
}

// adjacency maps each file to the links that are followed from it, in a fixed
// order.
func (l *Links) adjacency(dir Direction) map[string][]Edge {
	m := map[string][]Edge{}
	paths := make([]string, 0, len(l.notes))
	for path := range l.notes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		for _, e := range l.notes[path].links {
			if dir != Backward {
				m[path] = append(m[path], e)
			}
			if dir != Forward && e.Target != path {
				m[e.Target] = append(m[e.Target], e)
			}
		}
	}
	return m
}

func (l *Links) node(path string, depth int) Node {
	n := Node{ID: path, Path: path, Depth: depth}
	if note := l.notes[path]; note != nil {
		n.Name, n.Description, n.Indexed = note.name, note.description, true
	} else if fs.ValidPath(path) && strings.HasPrefix(path, dialogDir+"/") {
		st, err := os.Lstat(l.w.abs(path))
		n.Indexed = err == nil && st.Mode().IsRegular()
	}
	return n
}

// refresh brings the notes up to date.
func (l *Links) refresh(ctx context.Context) error {
	notes := make(map[string]*linkedNote, len(l.notes))
	root := os.DirFS(l.w.dir)
	for _, dir := range []string{dailyDir, digestDir} {
		err := fs.WalkDir(root, dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(path, ".md") {
				return ctx.Err() // what cannot be read is none of ours
			}
			st, err := e.Info()
			if err != nil {
				return ctx.Err()
			}
			f := found{path, st.Size(), st.ModTime().UnixNano()}
			if known := l.notes[path]; known != nil && known.found == f {
				notes[path] = known
				return ctx.Err()
			}
			if text, err := l.w.readNote(path); err == nil {
				keys, _ := parseFrontMatter(text)
				notes[path] = &linkedNote{f, harmless.Line(keys["name"]), harmless.Line(keys["description"]), wikiLinks(path, text)}
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	l.notes = notes
	return nil
}

// wikiLinks finds [[target]], [[target#anchor]] and [[target|alias]] in a note,
// each once. Targets are taken as they are written, as ReMe does.
func wikiLinks(source, text string) []Edge {
	var links []Edge
	for {
		_, rest, ok := strings.Cut(text, "[[")
		if !ok {
			return links
		}
		text = strings.TrimLeft(rest, "[")
		i := strings.IndexAny(text, "[]\n")
		if i < 0 {
			return links
		}
		if !strings.HasPrefix(text[i:], "]]") {
			continue
		}
		target, _, _ := strings.Cut(text[:i], "|")
		target, anchor, _ := strings.Cut(target, "#")
		e := Edge{Source: source, Target: harmless.Line(target)}
		if anchor = harmless.Line(anchor); anchor != "" {
			e.Anchor = &anchor
		}
		if e.Target != "" && !slices.ContainsFunc(links, func(o Edge) bool { return o.Target == e.Target && anchorOf(o) == anchor }) {
			links = append(links, e)
		}
	}
}
