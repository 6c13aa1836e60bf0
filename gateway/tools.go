package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/workspace"
)

type searchRequest struct {
	Query     string   `json:"query" jsonschema:"what to look for: the words and names that matter, in any language"`
	Limit     int      `json:"limit,omitempty" jsonschema:"results at most, 1 to 50 (default 5)"`
	MinScore  float64  `json:"min_score,omitempty" jsonschema:"leave out results with a lower score, 0 to 1 (default 0: none)"`
	Tags      []string `json:"tags,omitempty" jsonschema:"only notes that have one of these tags"`
	StartDate string   `json:"start_date,omitempty" jsonschema:"only what is of this day or later, YYYY-MM-DD"`
	EndDate   string   `json:"end_date,omitempty" jsonschema:"only what is of this day or earlier, YYYY-MM-DD"`
}

const (
	maxLimit = 50
	maxNear  = 5 // links of a result that are shown, in each direction
	nothing  = "No relevant information was found for the given query."
)

// result is an item in ReMe's shape.
type result struct {
	ID        string             `json:"id"`
	Text      string             `json:"text"`
	Metadata  map[string]any     `json:"metadata"`
	Path      string             `json:"path"`
	StartLine int                `json:"start_line"`
	EndLine   int                `json:"end_line"`
	Scores    map[string]float64 `json:"scores"`
}

func search(ctx context.Context, g *Gateway, req searchRequest) (Answer, error) {
	switch {
	case strings.TrimSpace(req.Query) == "":
		return Answer{}, refuse("query", "must not be empty")
	case req.Limit < 0 || req.Limit > maxLimit:
		return Answer{}, refuse("limit", fmt.Sprintf("must be 1 to %d", maxLimit))
	case req.MinScore < 0 || req.MinScore > 1:
		return Answer{}, refuse("min_score", "must be 0 to 1")
	}
	if err := errors.Join(checkDate("start_date", req.StartDate), checkDate("end_date", req.EndDate)); err != nil {
		return Answer{}, err
	}
	res, err := g.ws.Search(ctx, workspace.SearchRequest{
		Query: req.Query, Limit: req.Limit, MinScore: req.MinScore, Tags: req.Tags, From: req.StartDate, To: req.EndDate, Cwd: g.caller.Cwd,
	})
	if err != nil {
		return Answer{}, err
	}
	near, err := g.neighbours(ctx, res.Items)
	if err != nil {
		return Answer{}, err
	}
	results := []result{}
	var texts []string
	for _, it := range res.Items {
		r := result{
			ID: it.ID, Text: hooks.Defuse(it.Snippet), Path: it.Path, StartLine: it.StartLine, EndLine: it.EndLine,
			Scores:   map[string]float64{"keyword": it.Score, "score": it.Score},
			Metadata: map[string]any{"date": it.Date},
		}
		if it.Host != "" {
			r.Metadata["host"] = it.Host
		}
		if it.SessionID != "" {
			r.Metadata["session_id"] = it.SessionID
		}
		results = append(results, r)
		// A line that looks like the head of a result is none.
		body := strings.ReplaceAll("\n"+r.Text, "\n==========", "\n ==========")
		texts = append(texts, fmt.Sprintf("========== %s [score=%.3f] [%s] ==========%s%s",
			hooks.URI(it), it.Score, strings.TrimSpace(it.Date+" "+string(it.Host)), body, near[it.Path].render()))
	}
	links, err := defuseAll(near)
	if err != nil {
		return Answer{}, err
	}
	metadata := map[string]any{
		"results": results, "link_expansion": links, "truncated": res.Truncated,
		"counts": map[string]any{"vector": 0, "keyword": res.Found, "returned": len(results), "hybrid": false},
	}
	if len(results) == 0 {
		metadata["empty_result"] = map[string]string{"reason": "no_results", "message": nothing}
	}
	return answer(strings.Join(texts, "\n"), metadata), nil
}

// neighbours are the files that a file has links to and from.
type neighbours struct {
	Out []neighbour `json:"outlinks"`
	In  []neighbour `json:"inlinks"`
}

type neighbour struct {
	Path    string            `json:"path"`
	Meta    map[string]string `json:"meta"`
	Anchors []string          `json:"anchors"`
}

// neighbours finds those of each item's file.
func (g *Gateway) neighbours(ctx context.Context, items []client.Item) (map[string]neighbours, error) {
	near := map[string]neighbours{}
	var seeds []string
	for _, it := range items {
		if _, ok := near[it.Path]; !ok {
			near[it.Path] = neighbours{[]neighbour{}, []neighbour{}}
			seeds = append(seeds, it.Path)
		}
	}
	graph, err := g.links.Traverse(ctx, seeds, 1, workspace.Both)
	if err != nil {
		return nil, err
	}
	nodes := map[string]workspace.Node{}
	for _, n := range graph.Nodes {
		nodes[n.Path] = n
	}
	for _, e := range graph.Edges {
		if n, ok := near[e.Source]; ok {
			n.Out = withNeighbour(n.Out, nodes[e.Target], e.Anchor)
			near[e.Source] = n
		}
		if n, ok := near[e.Target]; ok && e.Source != e.Target {
			n.In = withNeighbour(n.In, nodes[e.Source], e.Anchor)
			near[e.Target] = n
		}
	}
	return near, nil
}

func withNeighbour(list []neighbour, node workspace.Node, anchor *string) []neighbour {
	i := slices.IndexFunc(list, func(o neighbour) bool { return o.Path == node.Path })
	if i < 0 {
		if len(list) == maxNear {
			return list
		}
		i = len(list)
		n := neighbour{Path: node.Path, Meta: map[string]string{}, Anchors: []string{}}
		for key, value := range map[string]string{"name": node.Name, "description": node.Description} {
			if value != "" {
				n.Meta[key] = hooks.Defuse(value)
			}
		}
		list = append(list, n)
	}
	if anchor != nil {
		list[i].Anchors = append(list[i].Anchors, *anchor)
	}
	return list
}

// render makes the lines that ReMe shows below a result.
func (n neighbours) render() string {
	var b strings.Builder
	list := func(label, arrow string, near []neighbour) {
		if len(near) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n  %s (%d):", label, len(near))
		for _, o := range near {
			fmt.Fprintf(&b, "\n    %s %s", arrow, hooks.Defuse(o.Path))
			for _, key := range slices.Backward(slices.Sorted(maps.Keys(o.Meta))) {
				fmt.Fprintf(&b, "  %s=%q", key, o.Meta[key])
			}
			for _, anchor := range o.Anchors {
				fmt.Fprintf(&b, "\n        via anchor=#%s", hooks.Defuse(anchor))
			}
		}
	}
	list("outlinks", "→", n.Out)
	list("inlinks", "←", n.In)
	return b.String()
}

func checkDate(field, date string) error {
	if date == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return refuse(field, "must be a day as YYYY-MM-DD")
	}
	return nil
}

type readRequest struct {
	Path      string `json:"path" jsonschema:"reme:// address or path in the memory, as other tools show it"`
	StartLine int    `json:"start_line,omitempty" jsonschema:"first line, from 1"`
	EndLine   int    `json:"end_line,omitempty" jsonschema:"last line, inclusive"`
}

// maxPage is how many bytes read returns, as in ReMe.
const maxPage = 50 << 10

func read(ctx context.Context, g *Gateway, req readRequest) (Answer, error) {
	switch {
	case strings.TrimSpace(req.Path) == "":
		return Answer{}, refuse("path", "must not be empty")
	case req.StartLine < 0:
		return Answer{}, refuse("start_line", "must be 1 or more")
	case req.EndLine < 0:
		return Answer{}, refuse("end_line", "must be 1 or more")
	case req.EndLine > 0 && req.StartLine > req.EndLine:
		return Answer{}, refuse("end_line", "must not be before start_line")
	}
	p, err := g.ws.ReadPage(ctx, strings.TrimSpace(req.Path), req.StartLine, req.EndLine, maxPage)
	if errors.Is(err, fs.ErrNotExist) {
		path := hooks.Defuse(req.Path)
		return Answer{Answer: fmt.Sprintf("Error: file %s does not exist in the memory", path), Metadata: map[string]any{"path": path}}, nil
	}
	if err != nil {
		return Answer{}, err
	}
	if req.StartLine > p.Lines {
		return Answer{}, refuse("start_line", fmt.Sprintf("must be within the file, which has %d lines", p.Lines))
	}
	text, metadata := hooks.Defuse(p.Text), map[string]any{"path": p.Path}
	if p.Next > 0 {
		text += fmt.Sprintf("\n\n[There is more: call read again with path %s and start_line %d.]", p.Path, p.Next)
		metadata["next_line"] = p.Next
	}
	return answer(text, metadata), nil
}

// paths is one path or several.
type paths []string

// UnmarshalJSON implements json.Unmarshaler.
func (p *paths) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*p = paths{one}
		return nil
	}
	if json.Unmarshal(raw, (*[]string)(p)) != nil {
		return reason("must be a path or a list of paths")
	}
	return nil
}

type traverseRequest struct {
	Path      paths               `json:"path" jsonschema:"reme:// address or path in the memory, or several, to start from"`
	Depth     *int                `json:"depth,omitempty" jsonschema:"links to follow one after another, 0 to 5 (default 1)"`
	Direction workspace.Direction `json:"direction,omitempty" jsonschema:"forward: to what a file names; backward: to what names it; both (default)"`
}

const (
	maxDepth = 5
	maxSeeds = 20
)

func traverse(ctx context.Context, g *Gateway, req traverseRequest) (Answer, error) {
	depth := 1
	if req.Depth != nil {
		depth = *req.Depth
	}
	dir := cmp.Or(req.Direction, workspace.Both)
	switch dir { // ReMe takes these names too
	case "out":
		dir = workspace.Forward
	case "in":
		dir = workspace.Backward
	}
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	switch {
	case len(req.Path) == 0 || slices.ContainsFunc(req.Path, blank):
		return Answer{}, refuse("path", "must not be empty")
	case len(req.Path) > maxSeeds:
		return Answer{}, refuse("path", fmt.Sprintf("must be at most %d paths", maxSeeds))
	case depth < 0 || depth > maxDepth:
		return Answer{}, refuse("depth", fmt.Sprintf("must be 0 to %d", maxDepth))
	case !slices.Contains([]workspace.Direction{workspace.Forward, workspace.Backward, workspace.Both}, dir):
		return Answer{}, refuse("direction", "must be forward, backward or both")
	}
	graph, err := g.links.Traverse(ctx, req.Path, depth, dir)
	if err != nil {
		return Answer{}, err
	}
	a, err := defuseAll(graph)
	return answer(a, nil), err
}

type dailyListRequest struct {
	Date string `json:"date,omitempty" jsonschema:"the day as YYYY-MM-DD (default today)"`
}

func dailyList(ctx context.Context, g *Gateway, req dailyListRequest) (Answer, error) {
	if err := checkDate("date", req.Date); err != nil {
		return Answer{}, err
	}
	day, notes, err := g.ws.DailyList(ctx, req.Date)
	if err != nil {
		return Answer{}, err
	}
	text := "No notes found for " + day
	if len(notes) > 0 {
		var lines []string
		for _, n := range notes {
			lines = append(lines, noteLine(n))
		}
		text = hooks.Defuse(bounded(strings.Join(lines, "\n")))
	}
	list, err := defuseAll(notes)
	return answer(text, map[string]any{"date": day, "count": len(notes), "notes": list}), err
}

// noteLine tells a note as ReMe does: the keys that all have first.
func noteLine(n workspace.DailyNote) string {
	first := []string{"path", "name", "description", "session_id", "source_conversation"}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(n)), func(k string) bool { return slices.Contains(first, k) })
	line := "-"
	for _, k := range append(first, keys...) {
		if v := n[k]; v != nil && v != "" {
			line += fmt.Sprintf(" %s: %v", k, v)
		}
	}
	return line
}

// bounded keeps whole lines of a text, at most maxPage bytes, and says so.
func bounded(text string) string {
	if len(text) <= maxPage {
		return text
	}
	kept := text[:strings.LastIndexByte(text[:maxPage+1], '\n')+1]
	return fmt.Sprintf("%s[%d more lines left out]", kept, 1+strings.Count(text[len(kept):], "\n"))
}

type rememberRequest struct {
	Content string `json:"content" jsonschema:"what to remember, as Markdown: one matter, with the names and the reasons that make it clear on its own"`
	Title   string `json:"title,omitempty" jsonschema:"title of the note (default: its first words)"`
}

const maxTitle = 200 // characters

func remember(ctx context.Context, g *Gateway, req rememberRequest) (string, client.Note, error) {
	if utf8.RuneCountInString(req.Title) > maxTitle {
		return "", client.Note{}, refuse("title", fmt.Sprintf("must be at most %d characters", maxTitle))
	}
	_, note, err := memoryRemember(ctx, g, client.RememberRequest{
		Content: req.Content, Title: req.Title, Cwd: g.caller.Cwd, Host: g.caller.Host,
	})
	text := "Remembered in reme://" + note.Path
	if !note.Created {
		text = "This was remembered already, in reme://" + note.Path
	}
	return text + ". It lasts and every agent will find it.", note, err
}

// defuseAll makes of a value what JSON says of it, with no frame's tag in any
// text.
func defuseAll(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	return hooks.MapTexts(tree, hooks.Defuse), nil
}
