package workspace

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// match asks FTS5 itself.
func (x *index) match(tb testing.TB, term string, limit int) []int64 {
	tb.Helper()
	rows, err := x.db.Query("SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT ?", `"`+term+`"`, limit)
	if err != nil {
		tb.Fatal(term, err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, id)
	}
	if rows.Err() != nil {
		tb.Fatal(rows.Err())
	}
	return ids
}

// samePostings compares what is read of the full-text index with what FTS5 finds.
func samePostings(tb testing.TB, x *index, terms []string) {
	tb.Helper()
	asked := make([]queryTerm, len(terms))
	for i, t := range terms {
		asked[i].text = t
	}
	for _, limit := range []int{1, firstPosted, maxPosted} {
		var lists [][]int64
		if err := x.reading(context.Background(), func(r *reader) (err error) {
			lists, err = r.postings(asked, limit)
			return err
		}); err != nil {
			tb.Fatal(err)
		}
		for i, t := range terms {
			if want := x.match(tb, t, limit); !slices.Equal(lists[i], want) {
				tb.Fatalf("%q, at most %d: %d docs, FTS5 finds %d", t, limit, len(lists[i]), len(want))
			}
		}
	}
}

// TestPostings has FTS5 write an index in all ways that it has: many segments and
// merged ones, half merged ones, lists over many pages, docs that are replaced and
// taken out.
func TestPostings(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := openAt(t, t.TempDir(), noon)
	mustAppend(t, w, testSession("s"), testTurn(1, "hello", "there")...)
	random := rand.New(rand.NewPCG(1, 2))
	terms := []string{"absent", "z", "zzzzzzzz", "Ünïcode", "日本", "a_b.c/d", "UPPER"}
	for n := range 400 {
		terms = append(terms, fmt.Sprintf("t%d", n), fmt.Sprintf("prefix-of-all-the-terms-%d", n))
	}
	if err := w.use(ctx, func(x *index) error {
		last := int64(100)
		for round := range 24 {
			if err := x.write(ctx, func(tx *tx) error {
				for range 1 + random.IntN(200) {
					if last > 200 && random.IntN(5) == 0 {
						id := 101 + random.Int64N(last-100)
						tx.later = append(tx.later, postponed{id, "", true})
						if random.IntN(2) == 0 {
							tx.later = append(tx.later, postponed{id, "again everywhere " + terms[random.IntN(len(terms))], false})
						}
						continue
					}
					last += 1 + random.Int64N(1+int64(random.IntN(2000)))
					doc := "everywhere "
					for i := range terms {
						if random.IntN(i/8+2) == 0 {
							doc += terms[i] + " "
						}
					}
					tx.later = append(tx.later, postponed{last, doc, false})
				}
				return nil
			}); err != nil {
				return err
			}
			switch {
			case round%13 == 12:
				if err := x.merge(ctx); err != nil {
					return err
				}
			case round%4 == 3: // some of it
				if err := x.write(ctx, func(tx *tx) error {
					return tx.exec("INSERT INTO terms(terms, rank) VALUES('merge', ?)", 1+random.IntN(30))
				}); err != nil {
					return err
				}
			}
			if round%2 == 1 {
				random.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
				samePostings(t, x, append([]string{"everywhere", "again", "hello", "there"}, terms[:60]...))
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// FuzzPostings: whatever is in the pages, reading them ends, in an error at worst.
func FuzzPostings(f *testing.F) {
	page := []byte{0, 8, 0, 14, 2, '0', 'a', 5, 3, 1, 1, 'b', 7, 0, 4, 5}
	f.Add(page, "a")
	f.Add(binary.BigEndian.AppendUint32(make([]byte, 4), 0xFF000001), "b")
	f.Fuzz(func(t *testing.T, data []byte, term string) {
		if l, err := newLeaf(data); err == nil {
			if list, _, _, err := l.find(term); err == nil {
				appendRowids(nil, list)
			}
			appendRowids(nil, l.head())
		}
		(&segment{}).bury(data)
		r := &reader{pages: map[int64][]byte{10: data}}
		_ = r.list(data)
	})
}
