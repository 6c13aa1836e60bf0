package doctor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// logTail is how much of the log's end is read, in bytes.
const logTail = 1 << 20

// logLine is what doctor needs of a line of the log.
type logLine struct {
	Time  time.Time   `json:"time"`
	Level string      `json:"level"`
	Msg   string      `json:"msg"`
	Host  client.Host `json:"host"`
	MS    *int64      `json:"ms"`
}

// tail is the end of a file, from the beginning of a line.
func tail(path string, size int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	from := max(0, st.Size()-size)
	text, _ := io.ReadAll(io.NewSectionReader(f, from, size))
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// readLog reads the end of the log; lines that cannot be read are passed over.
func readLog(path string) []logLine {
	var out []logLine
	lines := bufio.NewScanner(bytes.NewReader(tail(path, logTail)))
	lines.Buffer(nil, logTail)
	for lines.Scan() {
		var l logLine
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			out = append(out, l)
		}
	}
	return out
}

// took is how many milliseconds the last hook of a host worked.
func took(log []logLine, host client.Host) (int64, bool) {
	for _, l := range slices.Backward(log) {
		if l.Host == host && l.Msg == "handled" && l.MS != nil {
			return *l.MS, true
		}
	}
	return 0, false
}

// lost looks for what hooks of the last day could not do.
func (d Doctor) lost(log []logLine) []Finding {
	var turns, panics int
	for _, l := range log {
		switch age := d.Now().Sub(l.Time); {
		case age > 24*time.Hour || l.Level != "ERROR":
		case l.Msg == "panic":
			panics++
		case strings.HasPrefix(l.Msg, "turn lost"):
			turns++
		}
	}
	var out []Finding
	if turns > 0 {
		out = append(out, problem("turns-lost", count(turns, "turn")+" of the last day could be written nowhere", "mend what is named here, then `reme-hook ingest gaps --fix` brings them in from the agents' own logs"))
	}
	if panics > 0 {
		out = append(out, problem("panic", count(panics, "hook")+" of the last day met a mistake of this program", "report it with what `reme-hook doctor --bundle FILE` writes, which has no text of yours"))
	}
	return out
}
