package cmd

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/internal/doctor"
)

func newDoctorCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "doctor [<host>...]",
		Short:   "Check everything, and say what to do about what is wrong",
		GroupID: groupSetup,
		Long: `Check the memory, the spool and every host, by running the hooks that the hosts
are configured with in a scratch memory. Exit status 3 if something needs you.`,
		ValidArgs: a.hostNames(),
		RunE: func(c *cobra.Command, names []string) error {
			return a.runDoctor(c.Context(), names, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return c
}

func (a *app) runDoctor(ctx context.Context, names []string, asJSON bool) error {
	hosts := a.hosts
	if len(names) > 0 {
		var err error
		if hosts, _, err = a.chosen(ctx, installOptions{scope: "user"}, names); err != nil {
			return err
		}
	}
	findings, err := a.examine(ctx, hosts)
	if err != nil {
		return err
	}
	if asJSON {
		if err := a.printJSON(map[string]any{"version": 1, "healthy": doctor.Healthy(findings), "findings": findings}); err != nil {
			return err
		}
	} else {
		a.printFindings(findings)
	}
	if !doctor.Healthy(findings) {
		return errNeedsUser
	}
	return nil
}

func (a *app) examine(ctx context.Context, hosts []host) ([]doctor.Finding, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := doctor.Doctor{
		Now: a.now, Env: a.installEnv(), Options: a.installOptions(), Config: a.problems,
		Spool: a.spool(), State: a.state(), Link: a.link(), Recall: a.config.RecallTimeout, Program: exe, Upstream: a.upstream,
		Memory: func(ctx context.Context) (doctor.Memory, error) {
			m, err := a.memory()
			if err == nil {
				err = a.meet(ctx, m)
			}
			return m, err
		},
	}
	var list []doctor.Host
	for _, h := range hosts {
		list = append(list, doctor.Host{Adapter: h.Adapter, Target: h.Target})
	}
	return d.Examine(ctx, list), nil
}

func (a *app) printFindings(findings []doctor.Finding) {
	area := ""
	for _, f := range findings {
		if f.Area != area {
			area = f.Area
			fmt.Fprintln(a.stdout, area)
		}
		fmt.Fprintf(a.stdout, "  %-7s  %s\n", f.Level, f.What)
		if f.Do != "" {
			fmt.Fprintf(a.stdout, "           → %s\n", f.Do)
		}
	}
}
