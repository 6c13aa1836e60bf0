package supervisor

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func machine(os string) (Machine, Program) {
	args := []string{"serve", "--listen", "127.0.0.1:2334"}
	switch os {
	case "windows":
		return Machine{OS: os, Home: `C:\Users\Zoë & Co`, Dir: `C:\Users\Zoë & Co\.reme\integrations`, UserID: `PC\Zoë`},
			Program{Path: `C:\Users\Zoë & Co\.reme\integrations\bin\reme-hook.exe`, Args: append(args, "--tls-cert", `C:\my certs\`, "--tls-key", `a"b`)}
	case "darwin":
		return Machine{OS: os, Home: "/Users/zoë & co", UserID: "501"},
			Program{Path: "/Users/zoë & co/.reme/integrations/bin/reme-hook", Args: args, Env: []string{"REME_WORKSPACE=/Volumes/<mem>"}, Log: "/Users/zoë & co/.reme/integrations/log/serve.log"}
	}
	return Machine{OS: os, Home: "/home/zoë", UserID: "1000"},
		Program{Path: `/home/zoë/100% "mine"/$HOME\x/reme-hook`, Args: args, Env: []string{`REME_WORKSPACE=/srv/50% off\$5`}}
}

// The whole plan of each system, from any system.
func TestPlans(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin", "windows"} {
		p, err := New(machine(system))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n%s\n%s", p.Manager, p.File, strings.ReplaceAll(p.Text, "\r\n", "\n"))
		for _, part := range []struct {
			name     string
			commands []Command
		}{{"start", p.Start}, {"stop", p.Stop}, {"after", p.After}} {
			for _, c := range part.commands {
				fmt.Fprintf(&b, "%s: %q, may fail: %v\n", part.name, c.Argv, c.MayFail)
			}
		}
		golden := filepath.Join("testdata", system+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s is now\n%s", golden, b.String())
		}
	}
}

// Files of XML are, and have what was put in.
func TestXML(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"darwin", "windows"} {
		m, program := machine(system)
		p, err := New(m, program)
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(p.Text))
		d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
		var text strings.Builder
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if data, ok := token.(xml.CharData); ok {
				text.Write(data)
			}
		}
		if !strings.Contains(text.String(), program.Path) {
			t.Errorf("%s: %s", system, text.String())
		}
	}
	p, err := New(machine("windows"))
	if b := p.Bytes(); err != nil || !bytes.HasPrefix(b, []byte{0xff, 0xfe, '<', 0, '?', 0}) || !bytes.Contains(b, []byte{'o', 0, 0xeb, 0}) {
		t.Errorf("%x, %v", b[:12], err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	m, p := machine("linux")
	p.Path = "/home/x\nExecStartPre=/bin/evil"
	if _, err := New(m, p); err == nil {
		t.Error("a line break gets through")
	}
	m, p = machine("plan9")
	if _, err := New(m, p); err == nil || !strings.Contains(err.Error(), "plan9") {
		t.Errorf("%v", err)
	}
}

func TestQuoteWindows(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		``: `""`, `a`: `a`, `a\`: `a\`, `a b`: `"a b"`, `a b\`: `"a b\\"`, `a"b`: `"a\"b"`, `a\"b`: `"a\\\"b"`, `a \b`: `"a \b"`,
	} {
		if got := quoteWindows(s); got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
}

// systemd reads the unit as it is meant.
func TestUnitVerifies(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not on this machine")
	}
	plan, err := New(machine("linux"))
	if err != nil {
		t.Fatal(err)
	}
	verify := func(text string) string {
		unit := filepath.Join(t.TempDir(), "reme-hook.service")
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
		if err == nil && len(out) == 0 {
			return ""
		}
		return fmt.Sprintf("%v: %s", err, out)
	}
	if told := verify(plan.Text); told != "" {
		t.Error(told)
	}
	if told := verify(strings.Replace(plan.Text, "RestartSec=5", "RestartSec=soon", 1)); told == "" {
		t.Error("it reads anything")
	}
}
