//go:build unix

package contract

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Host is a real agent program that can be driven headless.
type Host interface {
	Name() string
	Run(ctx context.Context, turn Turn) (Result, error)
	model() *Model
}

// Turn is one call of a host.
type Turn struct {
	Prompt    string
	Session   string          // resume this session; a new one if empty
	Interrupt <-chan struct{} // the user's Ctrl-C
	Args      []string        // further arguments of the host
}

// Result is what one call of a host did.
type Result struct {
	Code           int
	Session        string
	Reply          string
	Stdout, Stderr string
	Hooks          []string // the events whose hooks the host reports to have run
	Complaints     []string // what the host said about hooks that failed
}

// turnLimit is far beyond what a turn needs: fake models answer at once. OpenClaw takes 20 s to start.
const turnLimit = 3 * time.Minute

// hostEnv is the whole environment of a host: of ours nothing but what a program needs to run at all.
func hostEnv(home, path, proxy string, more ...string) []string {
	env := []string{
		"HOME=" + home, "PATH=" + path, "TMPDIR=" + home + "/tmp", "LANG=C.UTF-8", "TERM=dumb",
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"="+proxy)
	}
	return append(env, more...)
}

// start runs a program in a session of its own until it ends, the limit passes or the test is over; then nothing of its
// process group is left. An interrupt goes to the whole group, as a terminal sends it.
func start(ctx context.Context, dir string, env []string, feed *feeder, interrupt <-chan struct{}, argv ...string) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if feed != nil {
		in, err := feed.open()
		if err != nil {
			return Result{}, err
		}
		defer in.Close()
		cmd.Stdin, cmd.Stdout = in, io.MultiWriter(&stdout, feed)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-interrupt:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		case <-ended:
		}
	}()
	err := cmd.Wait()
	close(ended)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	r := Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
	if exit := new(exec.ExitError); errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	return r, err
}
