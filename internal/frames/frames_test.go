package frames

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func frame(t testing.TB, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

func read(t testing.TB, file []byte, from int64) (lines []string, next int64, damaged int) {
	t.Helper()
	next, damaged, err := Each(bytes.NewReader(file), from, func(line []byte, at int64) bool {
		lines = append(lines, fmt.Sprintf("%d: %s", at, line))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, next, damaged
}

// random is text that does not compress, in lines.
func random(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + r.IntN(90))
	}
	return string(b) + "\n"
}

func TestEach(t *testing.T) {
	t.Parallel()
	a, b, c := frame(t, "a\naa\n"), frame(t, random(300<<10)+"b\n"), frame(t, "c\n")
	at := func(frames ...[]byte) (n int) { return len(bytes.Join(frames, nil)) }
	broken := func(frame []byte, i int) []byte {
		out := slices.Clone(frame)
		out[i] ^= 0xff
		return out
	}
	skippable := []byte("\x51\x2a\x4d\x18\x03\x00\x00\x00abc")
	all := []string{"0: a", "0: aa", fmt.Sprintf("%d: %.20s", at(a), random(300<<10)), fmt.Sprintf("%d: b", at(a)), fmt.Sprintf("%d: c", at(a, b))}
	onlyAC := []string{all[0], all[1], all[4]}
	for name, c := range map[string]struct {
		file    []byte
		want    []string
		next    int
		damaged int
	}{
		"nothing":               {nil, nil, 0, 0},
		"frames":                {slices.Concat(a, b, c), all, at(a, b, c), 0},
		"a frame that is not":   {slices.Concat(a, skippable, c), []string{all[0], all[1], fmt.Sprintf("%d: c", at(a, skippable))}, at(a, skippable, c), 0},
		"cut in the magic":      {slices.Concat(a, b[:2]), all[:2], at(a), 0},
		"cut in the header":     {slices.Concat(a, b[:5]), all[:2], at(a), 0},
		"cut in a block":        {slices.Concat(a, b[:at(b)/2]), all[:2], at(a), 0},
		"cut in the checksum":   {slices.Concat(a, b[:at(b)-1]), all[:2], at(a), 0},
		"damaged text":          {slices.Concat(a, broken(b, at(b)/2), c), onlyAC, at(a, b, c), 1},
		"damaged checksum":      {slices.Concat(a, broken(b, at(b)-1), c), onlyAC, at(a, b, c), 1},
		"damaged magic":         {slices.Concat(a, broken(b, 0), c), onlyAC, at(a, b, c), 1},
		"damaged block":         {slices.Concat(a, broken(b, 8), c), onlyAC, at(a, b, c), 1},
		"cut and gone on with":  {slices.Concat(a, b[:at(b)/2], c), []string{all[0], all[1], fmt.Sprintf("%d: c", at(a)+at(b)/2)}, at(a) + at(b)/2 + at(c), 1},
		"zeros at the end":      {slices.Concat(a, make([]byte, 100)), all[:2], at(a), 1},
		"a line without an end": {slices.Concat(a, frame(t, "x\ny")), []string{all[0], all[1], fmt.Sprintf("%d: x", at(a)), fmt.Sprintf("%d: ", at(a))}, at(a, frame(t, "x\ny")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, next, damaged := read(t, c.file, 0)
			for i := range got {
				got[i] = got[i][:min(len(got[i]), strings.Index(got[i], " ")+21)]
			}
			if !slices.Equal(got, c.want) || next != int64(c.next) || damaged != c.damaged {
				t.Errorf("got %.200q, next %d, %d damaged, want %.200q, %d, %d", got, next, damaged, c.want, c.next, c.damaged)
			}
		})
	}
	if got, next, _ := read(t, slices.Concat(a, b, c), int64(at(a, b))); !slices.Equal(got, all[4:]) || next != int64(at(a, b, c)) {
		t.Errorf("from a frame on: %q, next %d", got, next)
	}
}

// A frame that was not taken to its end is read again.
func TestEachStops(t *testing.T) {
	t.Parallel()
	a := frame(t, "a\n")
	next, _, err := Each(bytes.NewReader(slices.Concat(a, frame(t, "b\nbb\n"), a)), 0, func(line []byte, _ int64) bool { return string(line) != "bb" })
	if err != nil || next != int64(len(a)) {
		t.Errorf("next %d, %v, want %d", next, err, len(a))
	}
}

// bomb is a frame that says that it repeats a byte, in blocks of 128 KiB.
func bomb(window byte, blocks int) []byte {
	b := append(slices.Clone(magic), 0, window)
	for i := range blocks {
		size := uint32(maxBlock)<<3 | 1<<1
		if i == blocks-1 {
			size |= 1
		}
		b = append(b, byte(size), byte(size>>8), byte(size>>16), 'x')
	}
	return b
}

// What a frame expands to, and the memory that it asks for, are bounded.
func TestBombs(t *testing.T) {
	const small, large = 7 << 3, 20 << 3 // windows of 128 KiB and 1 GiB
	for name, c := range map[string]struct {
		frame   []byte
		damaged int
		passed  bool
	}{
		"long":          {bomb(small, MaxFrame/maxBlock), 1, true}, // a line without an end
		"too long":      {bomb(small, MaxFrame/maxBlock+1), 1, false},
		"asks for much": {bomb(large, 1), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			end := frame(t, "end\n")
			var lines []string
			_, damaged, err := Each(bytes.NewReader(slices.Concat(c.frame, end)), 0, func(line []byte, _ int64) bool {
				lines = append(lines, string(line))
				return true
			})
			want := []string{"end"}
			if c.passed {
				want = []string{"", "end"}
			}
			if err != nil || damaged != c.damaged || !slices.Equal(lines, want) {
				t.Errorf("%d damaged, lines %.80q, %v", damaged, lines, err)
			}
		})
	}
}

func FuzzEach(f *testing.F) {
	a, b := frame(f, "a\naa\n"), frame(f, random(1000))
	f.Add(slices.Concat(a, b), uint16(3), byte(1))
	f.Add(slices.Concat(a, bomb(7<<3, 3), b), uint16(20), byte(0x80))
	f.Fuzz(func(t *testing.T, file []byte, i uint16, flip byte) {
		// Where it ends there is nothing more to read.
		if len(file) > 0 {
			file[int(i)%len(file)] ^= flip
		}
		lines, next, _ := read(t, file, 0)
		if next < 0 || next > int64(len(file)) {
			t.Fatalf("next %d of %d", next, len(file))
		}
		again, end, _ := read(t, file, next)
		if len(again) != 0 || end != next {
			t.Errorf("after %q, from %d on: %q, next %d", lines, next, again, end)
		}
	})
}
