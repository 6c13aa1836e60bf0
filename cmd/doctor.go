package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/internal/doctor"
)

type doctorOptions struct {
	json   bool
	fix    bool
	bundle string
}

func newDoctorCommand(a *app) *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use:     "doctor [<host>...]",
		Short:   "Check everything, and say what to do about what is wrong",
		GroupID: groupSetup,
		Long: `Check the machine, the memory, the spool and every host, by running the hooks that
the hosts are configured with in a scratch memory. Exit status 3 if something needs
you.

--fix mends what is safe: rights of files, temporary files that a crash has left,
and what an older or doubled install of this program has left at a host. It never
touches what you have chosen, such as a switch, another plugin or an approval.`,
		ValidArgs: a.hostNames(),
		RunE: func(c *cobra.Command, names []string) error {
			return a.runDoctor(c.Context(), names, o)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print the findings as JSON")
	c.Flags().BoolVar(&o.fix, "fix", false, "mend what is safe to mend, then check again")
	c.Flags().StringVar(&o.bundle, "bundle", "", "also write a ZIP archive for those who are to help, without any text of yours, to this file")
	return c
}

func (a *app) runDoctor(ctx context.Context, names []string, o doctorOptions) error {
	private()
	hosts := a.hosts
	if len(names) > 0 {
		var err error
		if hosts, _, err = a.chosen(ctx, installOptions{scope: "user"}, names); err != nil {
			return err
		}
	}
	d, list, err := a.doctor(hosts)
	if err != nil {
		return err
	}
	findings := d.Examine(ctx, list)
	var fixed []doctor.Fixed
	if o.fix {
		if fixed = d.Fix(ctx, findings); len(fixed) > 0 {
			findings = d.Examine(ctx, list)
		}
	}
	if o.bundle != "" {
		if err := a.writeBundle(d, o.bundle, findings); err != nil {
			return err
		}
	}
	if o.json {
		if err := a.printJSON(doctor.Report(findings, fixed)); err != nil {
			return err
		}
	} else {
		for _, f := range fixed {
			if f.Err != "" {
				fmt.Fprintf(a.stdout, "not fixed  %s: %s\n", f.Area, f.Err)
			} else {
				fmt.Fprintf(a.stdout, "fixed      %s: %s\n", f.Area, f.Did)
			}
		}
		a.printFindings(findings)
		if o.bundle != "" {
			fmt.Fprintln(a.stdout, "wrote", o.bundle)
		}
	}
	if !doctor.Healthy(findings) {
		return errNeedsUser
	}
	return nil
}

// writeBundle writes the archive of doctor --bundle to a new file.
func (a *app) writeBundle(d doctor.Doctor, path string, findings []doctor.Finding) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the bundle needs a new file: %w", err)
	}
	return errors.Join(d.Bundle(f, version, a.values, findings), f.Close())
}

// doctor prepares an examination of hosts.
func (a *app) doctor(hosts []host) (doctor.Doctor, []doctor.Host, error) {
	exe, err := os.Executable()
	if err != nil {
		return doctor.Doctor{}, nil, err
	}
	var list []doctor.Host
	for _, h := range hosts {
		list = append(list, doctor.Host{Adapter: h.Adapter, Target: h.Target})
	}
	return doctor.Doctor{
		Now: a.now, Env: a.installEnv(), Options: a.installOptions(), Config: a.config, Problems: a.problems,
		Spool: a.spool(), State: a.state(), Link: a.link(), Program: exe, Upstream: a.upstream,
		Log: a.logFile(), Temp: os.TempDir(), Free: doctor.Free, Probe: doctor.Probe, Tools: doctor.ListTools,
		Memory: func(ctx context.Context) (doctor.Memory, error) {
			m, err := a.memory()
			if err == nil {
				err = a.meet(ctx, m)
			}
			return m, err
		},
	}, list, nil
}

func (a *app) printFindings(findings []doctor.Finding) {
	area := ""
	for _, f := range findings {
		if f.Area != area {
			area = f.Area
			fmt.Fprintln(a.stdout, area)
		}
		fmt.Fprintf(a.stdout, "  %-7s  %s\n", f.Level, f.What)
		switch {
		case f.Fix:
			fmt.Fprintf(a.stdout, "           → %s (doctor --fix does it)\n", f.Do)
		case f.Do != "":
			fmt.Fprintf(a.stdout, "           → %s\n", f.Do)
		}
	}
}
