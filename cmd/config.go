package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

func newConfigCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Make or show the configuration",
		GroupID: groupSetup,
		Args:    args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newConfigInitCommand(a), newConfigShowCommand(a))
	return c
}

func newConfigInitCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a configuration file with every key, explained and commented out",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			private()
			if _, err := os.Lstat(a.configFile()); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s is there already; edit it, or remove it first", a.configFile())
			}
			if err := durable.MkdirAll(a.dir); err != nil {
				return err
			}
			if err := durable.WriteFile(a.configFile(), []byte(config.Template())); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "wrote", a.configFile())
			return nil
		},
	}
}

func newConfigShowCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show",
		Short: "Show each key, its value and where that comes from",
		Long:  "Show each key, its value and where that comes from. Exit status 3 if something in it could not be used.",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				if err := a.printJSON(map[string]any{"version": 1, "file": a.configFile(), "values": a.values, "problems": append([]config.Problem{}, a.problems...)}); err != nil {
					return err
				}
			} else {
				for _, v := range a.values {
					fmt.Fprintf(a.stdout, "%-17s %v  (%s)\n", v.Name, v.Value, v.Origin)
				}
				for _, p := range a.problems {
					fmt.Fprintln(a.stdout, "problem:", p.Error())
				}
			}
			if len(a.problems) > 0 {
				return errNeedsUser
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the configuration as JSON")
	return c
}
