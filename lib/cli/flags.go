package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// DefaultMaster is where a master is looked for when nothing says otherwise.
const DefaultMaster = "127.0.0.1:7300"

// DefaultTimeout is how long a request may take when nothing says otherwise:
// enough for a broker to be found dead and replaced.
const DefaultTimeout = 15 * time.Second

// Flags are the values of the flags that are common to the binaries.
type Flags struct {
	Masters   []string
	Timeout   Duration
	Output    Format
	Quiet     bool
	Verbose   bool
	NoColor   bool
	LogFormat string // text or json
	Config    string
}

// globalFlags are the flags whose variable and configuration key bear no
// command's name.
var globalFlags = []string{"master", "timeout", "output", "quiet", "verbose", "no-color", "log-format"}

// AddCommonFlags adds what all binaries know.
func (e *Env) AddCommonFlags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.SortFlags = false
	f.BoolVarP(&e.Flags.Quiet, "quiet", "q", false, "print errors only")
	f.BoolVarP(&e.Flags.Verbose, "verbose", "v", false, "tell more on standard error")
	f.BoolVar(&e.Flags.NoColor, "no-color", false, "no colour and no animation (also NO_COLOR, TERM=dumb)")
	f.StringVar(&e.Flags.Config, "config", "", "configuration `FILE` (default $XDG_CONFIG_HOME/smq/config.yaml)")
}

// AddMasterFlag adds --master.
func (e *Env) AddMasterFlag(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.SortFlags = false
	f.StringSliceVar(&e.Flags.Masters, "master", []string{DefaultMaster}, "addresses of the masters, `HOST:PORT,...` (SMQ_MASTER)")
}

// AddTimeoutFlag adds --timeout, in the sense that usage explains.
func (e *Env) AddTimeoutFlag(cmd *cobra.Command, value time.Duration, usage string) {
	e.Flags.Timeout = Duration(value)
	cmd.PersistentFlags().Var(&e.Flags.Timeout, "timeout", usage)
}

// AddLogFlag adds --log-format, for daemons.
func (e *Env) AddLogFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&e.Flags.LogFormat, "log-format", "text", "`FORMAT` of logs: text or json")
	must(cmd.RegisterFlagCompletionFunc("log-format", Words("text", "json")))
}

// AddOutputFlag adds --output to a command that lists or shows something.
func (e *Env) AddOutputFlag(cmd *cobra.Command) {
	e.Flags.Output = FormatTable
	cmd.Flags().VarP(&e.Flags.Output, "output", "o", "table, json, yaml, plain (a line each: tabs, no heads, raw numbers) or name")
	must(cmd.RegisterFlagCompletionFunc("output", Words(formatNames...)))
}

// must panics on an error that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// WithTimeout limits ctx to --timeout; zero is no limit.
func (e *Env) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.Flags.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(e.Flags.Timeout))
}

// Args checks the arguments of a command by the names that its usage gives
// them: "TOPIC" must be there, "[TOPIC]" may be, and a last "FILE…" or
// "[FILE…]" repeats. None may be empty.
func Args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i := range args {
			if args[i] == "" && len(names) > 0 {
				return fmt.Errorf("%s is empty", strings.Trim(names[min(i, len(names)-1)], "[]…"))
			}
		}
		for i, name := range names {
			if i >= len(args) && !strings.HasPrefix(name, "[") {
				return fmt.Errorf("%s is missing", strings.TrimSuffix(name, "…"))
			}
			if strings.HasSuffix(strings.TrimSuffix(name, "]"), "…") {
				return nil
			}
		}
		if len(args) > len(names) {
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}
