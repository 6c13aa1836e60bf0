// Package jsonl reads files of lines that other programs append to, again and
// again from where it was.
//
// A cursor stands for a place in such a file. It holds the offset and a checksum
// of what stands before, so that a file that was replaced or cut is noticed and
// read from its beginning. A line that is not whole yet is not read.
package jsonl

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
)

const (
	// MaxLine is the length in bytes of the longest line that is read. A longer one,
	// an image or the output of a tool, is passed over.
	MaxLine = 16 << 20
	// guarded is how much of the text before a cursor must still be the same.
	guarded = 64
	// chunk is what is read at once.
	chunk = 64 << 10
)

// Cursor makes the cursor of an offset.
func Cursor(f io.ReaderAt, at int64) string { return fmt.Sprintf("%d-%s", at, guard(f, at)) }

// Offset is where a cursor leads in a file of a size; 0, if the file is not the
// one that it was made for.
func Offset(f io.ReaderAt, size int64, cursor string) int64 {
	offset, sum, _ := strings.Cut(cursor, "-")
	at, err := strconv.ParseInt(offset, 10, 64)
	if err != nil || at < 0 || at > size || guard(f, at) != sum {
		return 0
	}
	return at
}

// guard is a checksum of what stands before an offset.
func guard(f io.ReaderAt, at int64) string {
	b := make([]byte, min(at, guarded))
	if _, err := f.ReadAt(b, at-int64(len(b))); err != nil && err != io.EOF {
		return ""
	}
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 16)
}

// Each calls take with every whole line of a file from an offset on; see [Lines].
func Each(f io.ReaderAt, from int64, take func(line []byte, at int64) bool) (int64, error) {
	return Lines(io.NewSectionReader(f, from, math.MaxInt64-from), from, take)
}

// buffers are what Lines reads into: a backfill reads many files.
var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// Lines calls take with every whole line of a text, without its line end, and with
// the offset at which the line begins, until take returns false; at is the offset
// of the text. A line longer than [MaxLine] comes as nil. The line is valid until
// take returns. Lines returns the offset of the first line that was not taken.
func Lines(r io.Reader, at int64, take func(line []byte, at int64) bool) (int64, error) {
	pooled := buffers.Get().(*[chunk]byte)
	defer buffers.Put(pooled)
	buf := pooled[:]
	have := 0     // bytes in buf
	begin := at   // of the line that is looked at
	long := false // that line is passed over
	for {
		if have == len(buf) {
			if len(buf) >= MaxLine {
				long, at, have = true, at+int64(have), 0
			} else {
				buf = append(buf[:len(buf):len(buf)], make([]byte, len(buf))...)
			}
		}
		n, err := r.Read(buf[have:])
		data, start, searched := buf[:have+n], 0, have
		for {
			i := bytes.IndexByte(data[searched:], '\n')
			if i < 0 {
				break
			}
			line := data[start : searched+i]
			if long {
				line, long = nil, false
			}
			if !take(line, begin) {
				return begin, nil
			}
			start = searched + i + 1
			searched, begin = start, at+int64(start)
		}
		have = copy(buf, data[start:])
		at += int64(start)
		if err == io.EOF {
			return begin, nil
		}
		if err != nil {
			return begin, err
		}
	}
}
