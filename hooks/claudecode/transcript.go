package claudecode

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/agentscope-ai/reme-hook/client"
)

// transcriptTail is how much of a transcript's end is looked at, in bytes. The
// user's line of a turn lies within 2 kB of the end when its compaction starts.
const transcriptTail = 256 << 10

// answering tells whether the agent had said anything in a turn by the end of
// the transcript. A transcript that cannot be read counts as yes.
func answering(path string, turn client.TurnID) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return true
	}
	tail := make([]byte, min(size, transcriptTail))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return true
	}
	return answeredIn(tail, turn)
}

// answeredIn looks from the end of a piece of a transcript for the agent's words
// and the prompt of the turn, whichever comes first. Neither: the prompt is
// further up, so much was said since.
func answeredIn(tail []byte, turn client.TurnID) bool {
	for len(tail) > 0 {
		i := bytes.LastIndexByte(tail[:len(tail)-1], '\n') + 1
		line := tail[i:]
		tail = tail[:i]
		var row struct {
			Type      string `json:"type"`
			PromptID  string `json:"promptId"`
			Sidechain bool   `json:"isSidechain"`
			Summary   bool   `json:"isCompactSummary"`
			Result    any    `json:"toolUseResult"`
		}
		if json.Unmarshal(line, &row) != nil || row.Sidechain || row.Summary || row.Result != nil {
			continue
		}
		switch {
		case row.Type == "assistant":
			return true
		case row.Type == "user" && row.PromptID == string(turn):
			return false
		}
	}
	return true
}
