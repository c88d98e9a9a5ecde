package cli

import (
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

// styleHelp makes a command's help look like all others.
func styleHelp(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.LocalFlags().SortFlags = false
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
