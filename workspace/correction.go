package workspace

import (
	"slices"
	"strings"
)

const (
	commonSubject = 0.6  // share of what an older memory has of the query that a correction has too
	nearSubject   = 0.45 // the same, of what may be a correction
	commonWords   = 0.25 // share of an older memory's terms that a correction has too
	sameQuestion  = 0.8
)

// supersede finds the memories that a newer one of the same project corrects: it
// says that something has changed, and speaks of the same thing; or it answers the
// same question again. The newer takes the place of the older. What speaks of
// something near it is put before it: both are shown.
func (r *recall) supersede(hits []*hit) {
	about := map[*hit]*claim{}
	for _, h := range hits {
		about[h] = &claim{hit: h}
	}
	newest := slices.SortedFunc(slices.Values(hits), func(a, b *hit) int { return int(max(-1, min(1, b.at-a.at))) })
	for i, old := range newest {
		var near *hit
		for _, h := range newest[:i] {
			if h.verdict != "" || h.at <= old.at || h.cwd != old.cwd {
				continue
			}
			corrects, perhaps := r.corrects(about[h], about[old])
			if corrects {
				old.verdict = "corrected by a newer one"
				h.replace(old)
				break
			}
			if perhaps && near == nil {
				near = h
			}
		}
		if near != nil && old.verdict == "" {
			near.replace(old)
		}
	}
}

// replace makes h no worse than what it is shown in the place of, or before.
func (h *hit) replace(old *hit) {
	h.score, h.chance = max(h.score, old.score), max(h.chance, old.chance)
}

// claim is a memory that is compared with others. What is found out about it is
// found out once.
type claim struct {
	*hit
	seen   bool // what follows is known
	change bool
}

func (c *claim) tellsChange() bool {
	if !c.seen {
		c.seen, c.change = true, tellsChange(c.doc)
	}
	return c.change
}

// corrects reports whether a newer memory corrects an older one, and whether it
// perhaps does.
func (r *recall) corrects(h, old *claim) (corrects, perhaps bool) {
	common := r.q.weight(old.mask&h.mask) / r.q.weight(old.mask)
	if common < nearSubject || share(old.terms, h.terms) < commonWords {
		return false, false
	}
	switch {
	case h.tellsChange():
		return common >= commonSubject, true
	case common < commonSubject || h.asked == nil || old.asked == nil:
		return false, false
	}
	return min(share(h.asked, old.asked), share(old.asked, h.asked)) >= sameQuestion, false
}

// share is how much of a is in b.
func share(a, b map[string]struct{}) float64 {
	common := 0
	for t := range a {
		if _, ok := b[t]; ok {
			common++
		}
	}
	return float64(common) / float64(max(1, len(a)))
}

// changes are what people say when something is not any more as it was.
var changes = []string{
	" no longer ", " not any more", " anymore", " any more", " instead of ", " instead", " replaced", " changed to ", " has changed", " have changed", " moved to ", " has moved", " have moved", " was moved",
	" switched to ", " switched off", " from now on", " from today", " as of ", " since this week", " correction", " corrected", " used to be ", " until now", " renamed", " raised", " lowered",
	" new rule", " is gone", " are gone", " drop ", " dropped", " now ", " now.", " now,", ", not ",
	"改为", "改成", "改由", "改用", "换成", "换了", "不再", "更正", "现在是", "从今天起", "月起", "调整", "取消了", "原来是", "更新为",
	"変更", "変わり", "になりました", "今後は", "今は", "ではなく", "廃止", "替わり", "入れ替え", "切り替え",
	"변경", "바뀌", "바꿨", "이제", "더 이상", "대신", "앞으로는", "아니라",
}

func tellsChange(d docText) bool {
	text := " " + strings.ToLower(strings.ReplaceAll(d.String(), "\n", " ")) + " "
	return slices.ContainsFunc(changes, func(c string) bool { return strings.Contains(text, c) })
}
