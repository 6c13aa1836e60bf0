//go:build unix

package contract

import (
	"bytes"
	"os"
)

// feeder is the standard input of a stream-json session. It watches the output and gives the next prompt after each
// result, and the end of input after the last one.
type feeder struct {
	prompts []string
	within  bool // the next prompt is given when a tool is called, too
	in      *os.File
	line    bytes.Buffer
}

// open starts the feeding and returns the end that the host reads.
func (f *feeder) open() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	f.in = w
	f.next()
	return r, nil
}

// Write takes the host's output.
func (f *feeder) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			f.line.WriteByte(c)
			continue
		}
		called := bytes.Contains(f.line.Bytes(), []byte(`"type":"tool_use"`))
		if bytes.Contains(f.line.Bytes(), []byte(`"type":"result"`)) || f.within && called && len(f.prompts) > 0 {
			f.next()
		}
		f.line.Reset()
	}
	return len(p), nil
}

func (f *feeder) next() {
	if len(f.prompts) == 0 {
		_ = f.in.Close()
		return
	}
	content := []map[string]string{{"type": "text", "text": f.prompts[0]}}
	f.prompts = f.prompts[1:]
	_, _ = f.in.WriteString(toJSON(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": content}}) + "\n")
}
