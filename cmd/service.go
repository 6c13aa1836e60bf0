package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/supervisor"
)

func newServiceCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "service",
		Short:   "Have the system start 'reme-hook serve' with your session",
		GroupID: groupSetup,
		Args:    args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newServiceInstallCommand(a), newServiceUninstallCommand(a))
	return c
}

func newServiceInstallCommand(a *app) *cobra.Command {
	var o serveOptions
	var dryRun bool
	c := &cobra.Command{
		Use:   "install",
		Short: "Start it now and with every session",
		Long: `Copy this program to its stable place and have the user's own service manager
(systemd, launchd, the Task Scheduler) keep 'reme-hook serve' running, with the flags
given here and the settings of config.toml. No administrator is needed.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.installService(c.Context(), o, dryRun)
		},
	}
	o.addFlags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be written and run, and do nothing")
	return c
}

func newServiceUninstallCommand(a *app) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "End it and do not start it any more",
		Args:  args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.uninstallService(c.Context(), dryRun)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be removed and run, and do nothing")
	return c
}

// servicePlan is how this machine keeps serve running.
func (a *app) servicePlan(o serveOptions) (supervisor.Plan, error) {
	p := supervisor.Program{Path: a.installEnv().BinaryPath(), Args: []string{"serve"}, Log: filepath.Join(a.dir, "log", "serve.log")}
	if o.listen != "" {
		p.Args = append(p.Args, "--listen", o.listen)
	}
	if o.tlsCert != "" {
		for _, f := range [][2]string{{"--tls-cert", o.tlsCert}, {"--tls-key", o.tlsKey}} {
			path, err := filepath.Abs(f[1])
			if err != nil {
				return supervisor.Plan{}, err
			}
			p.Args = append(p.Args, f[0], path)
		}
	}
	for _, v := range a.values { // a service does not have the environment of this shell
		if v.Origin == "REME_WORKSPACE" {
			p.Env = append(p.Env, "REME_WORKSPACE="+a.config.Workspace)
		}
	}
	if os.Getenv(integrationsEnv) != "" {
		p.Env = append(p.Env, integrationsEnv+"="+a.dir)
	}
	u, err := user.Current()
	if err != nil {
		return supervisor.Plan{}, err
	}
	m := supervisor.Machine{OS: runtime.GOOS, Home: a.home, ConfigHome: os.Getenv("XDG_CONFIG_HOME"), Dir: a.dir, UserID: u.Uid}
	if runtime.GOOS == "windows" {
		m.UserID = u.Username
	}
	return supervisor.New(m, p)
}

func (a *app) installService(ctx context.Context, o serveOptions, dryRun bool) error {
	for _, v := range a.values {
		if v.Name == "token" && v.Origin == "REME_TOKEN" {
			return errors.New("the token is only in this shell's environment, which a service does not have; put it into config.toml")
		}
	}
	plan, err := a.servicePlan(o)
	if err != nil {
		return err
	}
	if dryRun {
		fmt.Fprintf(a.stdout, "would write %s:\n%s", plan.File, plan.Text)
		a.printCommands(plan.Start)
		return nil
	}
	private()
	if err := a.selfCopy(); err != nil {
		return err
	}
	change := install.Change{Path: plan.File, New: plan.Bytes()}
	if change.Old, err = readIfThere(plan.File); err != nil {
		return err
	}
	if err := install.Apply([]install.Change{change}); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "wrote", plan.File)
	if err := a.runCommands(ctx, plan, plan.Start); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s runs 'reme-hook serve', now and with every session\n", plan.Manager)
	return nil
}

func (a *app) uninstallService(ctx context.Context, dryRun bool) error {
	plan, err := a.servicePlan(serveOptions{})
	if err != nil {
		return err
	}
	old, err := readIfThere(plan.File)
	if err != nil {
		return err
	}
	if old == nil {
		fmt.Fprintln(a.stdout, "there is no service")
		return nil
	}
	if dryRun {
		a.printCommands(plan.Stop)
		fmt.Fprintf(a.stdout, "would remove %s\n", plan.File)
		a.printCommands(plan.After)
		return nil
	}
	stopped := a.runCommands(ctx, plan, plan.Stop)
	if err := install.Apply([]install.Change{{Path: plan.File, Old: old}}); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "removed", plan.File)
	if stopped != nil {
		return stopped
	}
	return a.runCommands(ctx, plan, plan.After)
}

// readIfThere returns nil if there is no such file.
func readIfThere(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return append([]byte{}, b...), err
}

func (a *app) printCommands(commands []supervisor.Command) {
	for _, c := range commands {
		fmt.Fprintln(a.stdout, "would run", c)
	}
}

// runCommands runs what a plan says. What fails is left to the user, who is told.
func (a *app) runCommands(ctx context.Context, plan supervisor.Plan, commands []supervisor.Command) error {
	for i, c := range commands {
		out, err := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...).CombinedOutput()
		if err == nil || c.MayFail {
			continue
		}
		fmt.Fprintf(a.stdout, "%s does not do it: %s: %v\n", plan.Manager, c, err)
		if out = bytes.TrimSpace(out); len(out) > 0 {
			fmt.Fprintf(a.stdout, "  %s\n", bytes.ReplaceAll(out, []byte("\n"), []byte("\n  ")))
		}
		fmt.Fprintln(a.stdout, "  → in a session that has one, run:")
		for _, left := range commands[i:] {
			fmt.Fprintln(a.stdout, "   ", left)
		}
		return errNeedsUser
	}
	return nil
}
