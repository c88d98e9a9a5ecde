package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// isCompletion reports whether a shell asks for completions.
func isCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// Words completes to fixed words.
func Words(words ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// WordList completes a list, with commas between, of some of the words.
func WordList(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var lists []string
		for _, word := range words {
			if !slices.Contains(strings.Split(before, ","), word) {
				lists = append(lists, before+word)
			}
		}
		return lists, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeNames keeps shells from offering files where none are meant: an argument
// or a value is a file where its name, as help texts show it, says so.
func completeNames(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && !strings.Contains(cmd.Use, "FILE") {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if _, there := cmd.GetFlagCompletionFunc(f.Name); there {
				return
			}
			switch name, _ := pflag.UnquoteUsage(f); name {
			case "FILE", "BINARY": // what shells offer by themselves
			case "DIR":
				must(cmd.MarkFlagDirname(f.Name))
			default:
				must(cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions))
			}
		})
	}
}

// unquoteUsages takes the marks around value names off the descriptions of
// flags: help texts need them, and shells would show them.
func unquoteUsages(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	}
}
