package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
)

// Main runs the binary of the given name and ends the process. build makes its
// command tree.
func Main(name string, build func(*Env) *cobra.Command) {
	e := NewEnv(name)
	ctx, stop := withSignals(context.Background(), e)
	code := e.Run(ctx, build, os.Args[1:])
	stop()
	os.Exit(code)
}

// Run runs the command tree with args, prints the error if there is one, and
// returns the exit code. The end of ctx interrupts it.
func (e *Env) Run(ctx context.Context, build func(*Env) *cobra.Command, args []string) int {
	root := build(e)
	out := &firstError{w: e.Stdout}
	mistyped := e.prepare(root, out)
	if isCompletion(args) {
		walk(root, completeNames)
		walk(root, unquoteUsages)
	}
	root.SetArgs(args)
	err := guard(func() error { return root.ExecuteContext(ctx) })
	if err == nil {
		err = cmp.Or(*mistyped, out.err)
	}
	cause := context.Cause(ctx)
	code := ExitCode(err, cause)
	if text := e.report(err, cause); text != "" {
		e.line(text)
	}
	return code
}

// report is what to say about err on standard error, empty when there is
// nothing to say.
func (e *Env) report(err, cause error) string {
	var exit *ExitError
	var signalled *SignalError
	switch {
	case err == nil, errors.Is(err, ErrOutputClosed):
		return ""
	case errors.As(err, &exit):
		if exit.Err == nil {
			return ""
		}
	case errors.As(err, &signalled), errors.As(cause, &signalled):
		return "" // whoever sent the signal knows
	}
	return errorLine(err)
}

// prepare gives every command of the tree the common manners. mistyped is set when
// help is asked for a command that does not exist.
func (e *Env) prepare(root *cobra.Command, out io.Writer) (mistyped *error) {
	root.SilenceErrors = true // Run prints them
	root.SilenceUsage = true
	root.SetIn(e.Stdin)
	root.SetOut(out)
	root.SetErr(e.Stderr)
	root.Version = Version()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := e.Configure(cmd); err != nil {
			return err
		}
		return refuseEmpty(cmd)
	}
	if root.HasSubCommands() {
		root.SetHelpCommand(e.helpCommand())
		root.InitDefaultHelpCmd()
	}
	walk(root, func(cmd *cobra.Command) {
		styleHelp(cmd)
		if cmd.Args != nil {
			cmd.Args = usageArgs(cmd.Args)
		}
		if cmd.HasSubCommands() {
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, args []string) error { return e.noCommand(cmd, args) }
		}
	})
	mistyped = new(error)
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			*mistyped = e.noCommand(cmd, words)
			return
		}
		show(cmd, args)
	})
	return mistyped
}

// firstError keeps the first error of a writer, for those who do not look:
// cobra prints help texts and versions that way.
type firstError struct {
	w   io.Writer
	err error
}

func (f *firstError) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if f.err == nil {
		f.err = err
	}
	return n, err
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}

// usageArgs makes what is wrong with the arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Exit(ExitUsage, fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
		}
		return nil
	}
}

// noCommand answers a call that names no command of the group, or one that
// does not exist.
func (e *Env) noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(e.Stderr)
		if err := cmd.Usage(); err != nil {
			return err
		}
		return Exit(ExitUsage, nil)
	}
	var names []string
	meant := ""
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
		if slices.Contains(c.SuggestFor, args[0]) { // what other tools call it
			meant = fmt.Sprintf(", did you mean %s?", c.Name())
		}
	}
	if meant == "" {
		meant = didYouMean(args[0], names, "")
	}
	return Usagef("unknown command %q for %s%s; see %s --help", args[0], cmd.CommandPath(), meant, cmd.CommandPath())
}

// guard turns a panic into an error. The trace is for whoever mends it, so it
// is printed only on request.
func guard(run func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error: %v (a fault in this program: set SMQ_DEBUG=1 to see where, and report it)", v)
			if os.Getenv("SMQ_DEBUG") != "" {
				os.Stderr.Write(debug.Stack())
			}
		}
	}()
	return run()
}
