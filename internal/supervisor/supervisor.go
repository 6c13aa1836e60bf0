// Package supervisor has a user's own service manager keep a program running:
// systemd, launchd, or the Task Scheduler of Windows.
//
// [New] only computes what is to be written and run, so that it can be shown
// before it is done, for any system on any other. No secret belongs into a
// program's arguments or environment: the files can be read, and so can the list
// of processes.
package supervisor

import (
	"fmt"
	"strings"
	"unicode"
)

// Machine is what a plan needs to know of the user's machine.
type Machine struct {
	OS         string // as runtime.GOOS names it
	Home       string // absolute
	ConfigHome string // $XDG_CONFIG_HOME, "" means the default
	Dir        string // a folder of ours, for files that the system does not look for
	UserID     string // number of the user, or on Windows DOMAIN\name
}

// Program is what is kept running.
type Program struct {
	Path string   // absolute
	Args []string // without the program
	Env  []string // NAME=value; on Windows, a task has that of the user's account alone
	Log  string   // file for what it writes to stderr, where the system keeps no journal
}

// Plan is what to write and to run.
type Plan struct {
	Manager string // the service manager, for people
	File    string
	Text    string    // content of File, see [Plan.Bytes]
	Start   []Command // once File is there
	Stop    []Command // while File is there
	After   []Command // once File is gone

	utf16 bool
}

// Command is what is run.
type Command struct {
	Argv    []string
	MayFail bool // it only clears away what an older install has left
}

// String is for people.
func (c Command) String() string { return strings.Join(c.Argv, " ") }

const (
	unitName = "reme-hook"
	label    = "io.github.agentscope-ai.reme-hook"
)

// New makes the plan for a machine.
func New(m Machine, p Program) (Plan, error) {
	for _, s := range append(append([]string{m.Home, m.ConfigHome, m.Dir, m.UserID, p.Path, p.Log}, p.Args...), p.Env...) {
		if strings.ContainsFunc(s, unicode.IsControl) {
			return Plan{}, fmt.Errorf("%q has a control character", s)
		}
	}
	switch m.OS {
	case "linux":
		return systemd(m, p), nil
	case "darwin":
		return launchd(m, p), nil
	case "windows":
		return task(m, p), nil
	}
	return Plan{}, fmt.Errorf("no service manager is known for %s; have yours run: %s %s", m.OS, p.Path, strings.Join(p.Args, " "))
}

// Bytes are what goes into the file.
func (p Plan) Bytes() []byte {
	if p.utf16 {
		return utf16LE(p.Text)
	}
	return []byte(p.Text)
}

func systemd(m Machine, p Program) Plan {
	config := m.ConfigHome
	if config == "" {
		config = m.Home + "/.config"
	}
	// A percent sign is special everywhere; a dollar sign is not behind the colon of
	// ExecStart. The program goes through sh, as systemd takes no quote and no
	// backslash in the path of what it starts itself.
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(s) + `"`
	}
	var b strings.Builder
	b.WriteString(`# Made by 'reme-hook service install'; 'reme-hook service uninstall' removes it.
[Unit]
Description=Shared memory of the coding agents (reme-hook serve)

[Service]
ExecStart=:/bin/sh -c "exec \"$0\" \"$@\""`)
	for _, a := range append([]string{p.Path}, p.Args...) {
		b.WriteString(" " + quote(a))
	}
	b.WriteString("\n")
	for _, e := range p.Env {
		b.WriteString("Environment=" + quote(e) + "\n")
	}
	b.WriteString(`Restart=on-failure
RestartSec=5
TimeoutStopSec=30
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`)
	const unit = unitName + ".service"
	systemctl := func(args ...string) Command { return Command{Argv: append([]string{"systemctl", "--user"}, args...)} }
	return Plan{
		Manager: "systemd",
		File:    config + "/systemd/user/" + unit,
		Text:    b.String(),
		Start:   []Command{systemctl("daemon-reload"), systemctl("enable", unit), systemctl("restart", unit)},
		Stop:    []Command{systemctl("disable", "--now", unit)},
		After:   []Command{systemctl("daemon-reload")},
	}
}

func launchd(m Machine, p Program) Plan {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Made by 'reme-hook service install'; 'reme-hook service uninstall' removes it. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + label + `</string>
	<key>ProgramArguments</key>
	<array>
`)
	for _, a := range append([]string{p.Path}, p.Args...) {
		b.WriteString("\t\t<string>" + escapeXML(a) + "</string>\n")
	}
	b.WriteString("\t</array>\n")
	if len(p.Env) > 0 {
		b.WriteString("\t<key>EnvironmentVariables</key>\n\t<dict>\n")
		for _, e := range p.Env {
			name, value, _ := strings.Cut(e, "=")
			b.WriteString("\t\t<key>" + escapeXML(name) + "</key>\n\t\t<string>" + escapeXML(value) + "</string>\n")
		}
		b.WriteString("\t</dict>\n")
	}
	b.WriteString(`	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ExitTimeOut</key>
	<integer>30</integer>
	<key>Umask</key>
	<integer>63</integer>
	<key>StandardErrorPath</key>
	<string>` + escapeXML(p.Log) + `</string>
</dict>
</plist>
`)
	domain := "gui/" + m.UserID
	bootout := Command{Argv: []string{"launchctl", "bootout", domain + "/" + label}, MayFail: true}
	file := m.Home + "/Library/LaunchAgents/" + label + ".plist"
	return Plan{
		Manager: "launchd",
		File:    file,
		Text:    b.String(),
		Start:   []Command{bootout, {Argv: []string{"launchctl", "bootstrap", domain, file}}},
		Stop:    []Command{bootout},
	}
}

func task(m Machine, p Program) Plan {
	args := make([]string, len(p.Args))
	for i, a := range p.Args {
		args[i] = quoteWindows(a)
	}
	text := `<?xml version="1.0" encoding="UTF-16"?>
<!-- Made by 'reme-hook service install'; 'reme-hook service uninstall' removes it. -->
<Task version="1.3" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Shared memory of the coding agents (reme-hook serve)</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <UserId>` + escapeXML(m.UserID) + `</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>` + escapeXML(m.UserID) + `</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>10</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>` + escapeXML(p.Path) + `</Command>
      <Arguments>` + escapeXML(strings.Join(args, " ")) + `</Arguments>
    </Exec>
  </Actions>
</Task>
`
	file := m.Dir + `\service.xml`
	schtasks := func(verb string, args ...string) Command {
		return Command{Argv: append([]string{"schtasks", verb, "/TN", unitName}, args...), MayFail: verb == "/End"}
	}
	return Plan{
		Manager: "the Task Scheduler",
		File:    file,
		Text:    strings.ReplaceAll(text, "\n", "\r\n"),
		Start:   []Command{schtasks("/End"), schtasks("/Create", "/XML", file, "/F"), schtasks("/Run")},
		Stop:    []Command{schtasks("/End"), schtasks("/Delete", "/F")},
		utf16:   true,
	}
}
