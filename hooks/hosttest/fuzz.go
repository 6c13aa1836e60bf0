package hosttest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks"
)

// FuzzDecode feeds payloads to an adapter, beginning with those that the real host
// sent. It is for the packages hooks/<host>.
func FuzzDecode(f *testing.F, a *hooks.Adapter) {
	dir := filepath.Join("..", "..", "testdata", "payloads", string(a.Host))
	seeds := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		data, err := os.ReadFile(path)
		f.Add(data)
		seeds++
		return err
	})
	if err != nil || seeds == 0 {
		f.Fatalf("%d payloads, %v", seeds, err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, _ := hooks.ReadPayload(bytes.NewReader(data))
		for _, kind := range a.Events {
			e := a.Decode(kind, p)
			if again := a.Decode(kind, p); !reflect.DeepEqual(e, again) {
				t.Errorf("read once as %+v, then as %+v", e, again)
			}
			e.Kind = kind
			if out := a.Encode(e, hooks.Outcome{}); len(out) > 0 {
				t.Errorf("says %q for nothing", out)
			}
			for _, text := range append(e.Answered, e.Prompt, e.Reply, e.Summary, e.Note) {
				if kept := hooks.Clean(text); hooks.StripFrames(kept) != kept {
					t.Errorf("a frame is kept of %q", text)
				}
			}
		}
	})
}
