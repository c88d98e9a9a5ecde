package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageTemplate is what follows a command's description in its help.
const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}} [FLAGS]{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Global flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`

// plainDefault shows defaults that pflag would quote or put into brackets as one
// types them.
func plainDefault(f *pflag.Flag) {
	shown := f.DefValue
	switch {
	case f.Value.Type() == "stringSlice":
		shown = strings.Trim(shown, "[]")
		f.DefValue = "[]" // is not shown
	case f.Value.Type() == "string":
		f.DefValue = "" // likewise
	default:
		return
	}
	if shown != "" {
		f.Usage += " (default " + shown + ")"
	}
}

// helpCommand shows the help of a command, as --help behind it does.
func (e *Env) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND…]",
		Short:   "Show the help of a command",
		Example: "  " + e.Name + " help",
		// Help needs no configuration.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			about, err := e.find(cmd.Root(), args)
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			about, err := e.find(cmd.Root(), args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range about.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// find goes down the tree along the names of commands.
func (e *Env) find(cmd *cobra.Command, names []string) (*cobra.Command, error) {
	for i, name := range names {
		at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name && c.IsAvailableCommand() })
		if at < 0 {
			return nil, e.noCommand(cmd, names[i:])
		}
		cmd = cmd.Commands()[at]
	}
	return cmd, nil
}

// styleHelp makes a command's help look like all others.
func styleHelp(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.LocalFlags().SortFlags = false
	cmd.InheritedFlags().SortFlags = false
	cmd.DisableFlagsInUseLine = true
	cmd.SetUsageTemplate(usageTemplate)
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			switch f.DefValue { // what these mean, the usage says
			case "-1":
				f.DefValue = "0" // is not shown
			case "0s", "default":
				f.DefValue = ""
			}
			plainDefault(f)
		})
	}
}
