// Package frames reads files of lines that other programs append to in zstd
// frames, whole lines in each.
//
// A frame is taken as a whole or not at all: one that is not written to its end
// yet, or was cut, is not read. A frame that is damaged is passed over; what comes
// after it is found again. Whatever a file holds, the memory that reading it takes
// is bounded, and so is what a frame can expand to.
package frames

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/agentscope-ai/reme-hook/internal/jsonl"
)

const (
	// MaxFrame is the length in bytes of the longest text of a frame that is read. A
	// longer one counts as damaged.
	MaxFrame = 64 << 20
	// maxHeld is the length of the longest text that is unpacked once: most are shorter.
	maxHeld = 256 << 10
	// maxWindow is the memory that a frame may ask for: what the format recommends to
	// support, and more than encoders take unless they are told to.
	maxWindow = 8 << 20
	// maxBlock is the length of the longest block that the format allows.
	maxBlock = 128 << 10
	// tries is at how many places that look like its beginning the next frame is
	// looked for.
	tries = 100
)

var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Each calls take with every line of the frames from an offset on, and with the
// offset of its frame, until take returns false; see [jsonl.Each]. It returns the
// offset of the first frame that was not taken to its end, and how many were
// damaged. A line that its frame does not end comes as nil.
func Each(f io.ReaderAt, from int64, take func(line []byte, at int64) bool) (next int64, damaged int, err error) {
	text, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return from, 0, err
	}
	defer text.Close()
	var held bytes.Buffer
	for at := from; ; {
		end, err := extent(f, at)
		if errors.Is(err, errDamaged) || errors.Is(err, io.ErrUnexpectedEOF) {
			begin := find(f, at+1)
			if begin < 0 { // it is the last one
				if errors.Is(err, errDamaged) {
					damaged++
				}
				return at, damaged, nil
			}
			damaged++
			at = begin
			continue
		}
		if err == io.EOF {
			return at, damaged, nil
		}
		if err != nil {
			return at, damaged, err
		}
		frame := io.NewSectionReader(f, at, end-at)
		size, err := measure(text, frame, &held)
		if err != nil {
			damaged++
			at = end
			continue
		}
		var sound io.Reader = &held
		if size > maxHeld {
			if err := rewind(text, frame); err != nil {
				return at, damaged, err
			}
			sound = text
		}
		more := true
		read, err := jsonl.Lines(sound, 0, func(line []byte, _ int64) bool {
			more = take(line, at)
			return more
		})
		if err == nil && more && read != size { // it ends within a line
			damaged++
			more = take(nil, at)
		}
		if err != nil || !more {
			return at, damaged, err
		}
		at = end
	}
}

// measure is the length of a frame's text, if all of it is sound. It holds the text if
// that is not longer than maxHeld.
func measure(text *zstd.Decoder, frame *io.SectionReader, held *bytes.Buffer) (int64, error) {
	if err := rewind(text, frame); err != nil {
		return 0, err
	}
	held.Reset()
	n, err := held.ReadFrom(io.LimitReader(text, maxHeld+1))
	if err == nil && n > maxHeld {
		var more int64
		more, err = io.Copy(io.Discard, io.LimitReader(text, MaxFrame+1-n))
		n += more
	}
	if err == nil && n > MaxFrame {
		err = fmt.Errorf("%w: longer than %d bytes", errDamaged, MaxFrame)
	}
	return n, err
}

func rewind(text *zstd.Decoder, frame *io.SectionReader) error {
	if _, err := frame.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return text.Reset(frame)
}

var errDamaged = errors.New("damaged frame")

// extent is where the frame at an offset ends. The error is io.EOF if there is
// none, io.ErrUnexpectedEOF if the file ends within it.
func extent(f io.ReaderAt, at int64) (end int64, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, at, math.MaxInt64-at), 4<<10)
	head, err := r.Peek(zstd.HeaderMaxSize)
	if len(head) == 0 || err != nil && err != io.EOF {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, errDamaged
	}
	skip := func(n int) error {
		m, err := r.Discard(n)
		at += int64(m)
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if err := skip(h.HeaderSize); err != nil {
		return 0, err
	}
	if h.Skippable {
		err := skip(int(h.SkippableSize))
		return at, err
	}
	for last := false; !last; {
		b, err := r.Peek(3)
		if err == io.EOF {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		kind, size := b[0]>>1&3, int(b[0])>>3|int(b[1])<<5|int(b[2])<<13
		last = b[0]&1 != 0
		if kind == 3 || size > maxBlock {
			return 0, errDamaged
		}
		if kind == 1 { // one byte, repeated
			size = 1
		}
		if err := skip(3 + size); err != nil {
			return 0, err
		}
	}
	if h.HasCheckSum {
		err = skip(4)
		return at, err
	}
	return at, nil
}

// find is where the next whole frame begins, -1 if there is none.
func find(f io.ReaderAt, from int64) int64 {
	buf := make([]byte, 64<<10)
	for tried := 0; ; {
		n, err := f.ReadAt(buf, from)
		for i := 0; ; i++ {
			j := bytes.Index(buf[i:n], magic)
			if j < 0 {
				break
			}
			i += j
			if _, err := extent(f, from+int64(i)); err == nil {
				return from + int64(i)
			}
			if tried++; tried == tries {
				return -1
			}
		}
		if err != nil || n < len(magic) {
			return -1
		}
		from += int64(n - len(magic) + 1)
	}
}
