package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/broker"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/command/local"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// tortureOptions are the flags of smq-admin torture.
type tortureOptions struct {
	torture.Options
	duration, every, settle cli.Duration
	scale                   cli.Duration
	memory                  cli.Size
	faults                  []string
	acks, rate              string
	bin                     string
	history                 string
}

const tortureLong = `Start a cluster of processes of its own, publish to it and read from it, and
meanwhile kill, pause, cut off, slow down and drain its parts, in an order that
--seed decides. Then mend everything, read everything back, verify what is
stored, and report whether the promises were kept. Any broken one makes the exit
code 1; the history of all that was done and seen, the logs and the store are
then kept, and the report says where. The first SIGINT or SIGTERM ends the faults
early, and what there is by then is reported; a second one, more than half a second
later, ends everything and leaves what there is.

The network between all parts, also between clients and brokers, leads through
relays, so that it can be cut both ways and one way, and slowed down. The store
is a directory, or a SeaweedFS that runs (--store) or is to be started (--weed).

Kinds of faults: kill (brokers), pause (brokers, up to 10s), partition, slow,
store, master (kill, pause, cut off), drain.

When all replicas of a segment are lost, its messages that were acked as
replicated and had not reached the store are lost, as is promised. Such losses
are counted as excused, if the layout says that it happened and the faults say
that it could.`

const tortureExamples = `  smq-admin torture --duration 30s --seed 1
  smq-admin torture --duration 10m --faults kill,pause --acks stored
  smq-admin torture --weed /usr/local/bin/weed -o json | jq .violations
  smq-admin torture --check /tmp/smq-torture-1/history.ndjson`

func newTorture(e *cli.Env) *cobra.Command {
	o := &tortureOptions{
		duration: cli.Duration(time.Minute), every: cli.Duration(2 * time.Second), settle: cli.Duration(90 * time.Second), scale: cli.Duration(2 * time.Second),
		memory: 128 << 20,
	}
	cmd := &cobra.Command{
		Use: "torture", Short: "Break a cluster in every way, and check its promises",
		Long: tortureLong, Example: tortureExamples,
		Args: cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.history != "" {
				return checkHistory(e, o.history)
			}
			if !cmd.Flags().Changed("seed") {
				o.Seed = rand.Uint64N(1 << 32)
			}
			if err := checkReplicas(cmd.Flags(), o.Replicas); err != nil {
				return err
			}
			return runTorture(cmd.Context(), e, o)
		},
	}
	f := cmd.Flags()
	f.Var(&o.duration, "duration", "how long faults come")
	f.Uint64Var(&o.Seed, "seed", 0, "`NUMBER` that decides the order of faults (default: a random one)")
	f.StringSliceVar(&o.faults, "faults", familyNames(), "which `KINDS` of faults come")
	f.Var(&o.every, "every", "how often a fault comes, on average")
	f.IntVar(&o.AtOnce, "at-once", 2, "at most `N` faults at a time")
	f.IntVar(&o.Masters, "masters", 3, "`N` masters")
	f.IntVar(&o.Brokers, "brokers", 4, "`N` brokers")
	f.Var(&o.memory, "memory", "of each broker, a bound for buffers and cache")
	f.StringVar(&o.Store, "store", "", "`URL` of the store; a folder of the run's own is made below it (default: a temporary directory)")
	f.StringVar(&o.Weed, "weed", "", "start a SeaweedFS server as the store, from this `BINARY`")
	f.StringVar(&o.bin, "bin", "", "`DIR` with the smq-master and smq-broker to torture (default: those in this binary)")
	f.StringVar(&o.acks, "acks", "both", "`LEVEL` that publishers ask for: stored, replicated, default, or both, in turn")
	f.IntVar(&o.Topics, "topics", 3, "`N` topics, besides one that is checked for linearizability")
	f.Int32Var(&o.Partitions, "partitions", 4, "each topic has `N`")
	f.Int32Var(&o.Replicas, "replicas", 2, "`N` brokers hold what is not stored yet of each topic")
	f.IntVar(&o.Publishers, "publishers", 3, "`N` for each topic")
	f.IntVar(&o.Readers, "readers", 2, "`N` for each topic")
	f.StringVar(&o.rate, "rate", "300msg/s", "publish at this `RATE`, in messages, in all")
	f.Var(&o.settle, "settle", "how long everything may take to work again in the end")
	f.Var(&o.scale, "scale-every", "how often segments are split or merged by hand, besides what they do by themselves; 0: they stay as they are")
	f.StringVar(&o.Dir, "dir", "", "`DIR` for everything (default: a temporary one)")
	f.BoolVar(&o.Keep, "keep", false, "keep history, logs and store in any case")
	f.StringVar(&o.history, "check", "", "only check a history that was kept, `FILE` or -")
	e.AddOutputFlag(cmd)
	connect.CompleteFlag(cmd, "faults", cli.WordList(familyNames()...))
	connect.CompleteWords(cmd, "acks", "stored", "replicated", "default", "both")
	return cmd
}

// parseMessageRate reads a rate that can only be one of messages.
func parseMessageRate(text string) (perSecond float64, err error) {
	rate, err := cli.ParseRate(text)
	switch {
	case err != nil:
		return 0, cli.Usagef("--rate %w", err)
	case rate.Bytes:
		return 0, cli.Usagef("--rate %s: it has to be in messages, for instance 300msg/s", text)
	}
	return rate.PerSecond, nil
}

func familyNames() []string {
	var names []string
	for _, f := range torture.Families() {
		names = append(names, string(f))
	}
	return names
}

func runTorture(ctx context.Context, e *cli.Env, o *tortureOptions) error {
	remove, err := o.complete(e)
	if err != nil {
		return err
	}
	o.Stop = ctx.Done()
	e.OnSecondSignal(func() { e.Infof("what there is so far, unchecked, is in %s", o.Dir) })
	report, err := torture.Run(context.WithoutCancel(ctx), o.Options)
	switch {
	case errors.Is(err, smq.ErrInvalid):
		return errors.Join(err, remove())
	case err != nil:
		return fmt.Errorf("torture: %w; logs and history are in %s", err, o.Dir)
	}
	if report.Violations.Count() == 0 && !o.Keep {
		if err := remove(); err != nil {
			return err
		}
		report.History, report.Dir = "", ""
	}
	if err := printTorture(e, report); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// complete turns flags into options, and makes the directory, which remove
// removes.
func (o *tortureOptions) complete(e *cli.Env) (remove func() error, err error) {
	for _, name := range o.faults {
		f, err := torture.ParseFamily(name)
		if err != nil {
			return nil, err
		}
		o.Families = append(o.Families, f)
	}
	if o.Acks, err = parseAcks(o.acks); err != nil {
		return nil, err
	}
	if o.Rate, err = parseMessageRate(o.rate); err != nil {
		return nil, err
	}
	if err := broker.CheckMemory(o.memory); err != nil {
		return nil, err
	}
	if o.Command, err = o.command(); err != nil {
		return nil, err
	}
	if o.Weed != "" {
		if _, err := exec.LookPath(o.Weed); err != nil {
			return nil, fmt.Errorf("--weed: %w", err)
		}
	}
	o.ScaleEvery = time.Duration(o.scale)
	o.Duration, o.Every, o.Settle = time.Duration(o.duration), time.Duration(o.every), time.Duration(o.settle)
	o.Memory = int64(o.memory)
	o.Tell = e.Infof
	if e.Flags.Verbose {
		o.Detail = e.Infof
	}
	return o.makeDir()
}

// makeDir makes the directory for everything; what is in it already stays.
func (o *tortureOptions) makeDir() (remove func() error, err error) {
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "smq-torture-"); err != nil {
			return nil, err
		}
		return func() error { return os.RemoveAll(o.Dir) }, nil
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	err = os.Mkdir(o.Dir, 0o755)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%s: %w; name one that is not there yet", o.Dir, smq.ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	return func() error { return os.RemoveAll(o.Dir) }, nil
}

func parseAcks(s string) ([]client.AckLevel, error) {
	if s == "both" {
		return []client.AckLevel{client.AckStored, client.AckReplicated}, nil
	}
	level, err := client.ParseAckLevel(s)
	if err != nil {
		return nil, fmt.Errorf("%w, or both", err)
	}
	return []client.AckLevel{level}, nil
}

// command is how the daemons are started: this program runs as them, or they are
// binaries of a directory.
func (o *tortureOptions) command() (func(binary string, args ...string) *exec.Cmd, error) {
	if o.bin != "" {
		for _, name := range []string{"smq-master", "smq-broker"} {
			if _, err := exec.LookPath(filepath.Join(o.bin, name)); err != nil {
				return nil, fmt.Errorf("--bin: %w", err)
			}
		}
		return func(binary string, args ...string) *exec.Cmd {
			return exec.Command(filepath.Join(o.bin, binary), args...)
		}, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return func(binary string, args ...string) *exec.Cmd {
		cmd := exec.Command(program, append([]string{local.RunAs, binary}, args...)...)
		cmd.Args[0] = os.Args[0] // so that the program knows itself
		return cmd
	}, nil
}

func checkHistory(e *cli.Env, path string) error {
	in := e.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close() // only read
		in = file
	}
	report, err := torture.CheckHistory(in)
	if err != nil {
		return err
	}
	report.History = path
	return printTorture(e, report)
}

var tortureColumns = cli.View[torture.Report]{
	Name: func(r torture.Report) string { return number(int64(r.Seed)) },
	Columns: []cli.Column[torture.Report]{
		{Header: "SEED", Cell: func(r torture.Report) string { return fmt.Sprint(r.Seed) }},
		{Header: "STORE", Cell: func(r torture.Report) string { return orNone(r.Store) }},
		{Header: "OPERATIONS", Cell: func(r torture.Report) string { return number(int64(r.Operations)) }},
		{Header: "SENT", Cell: func(r torture.Report) string { return number(int64(r.Sent)) }},
		{Header: "ACKED", Cell: func(r torture.Report) string {
			return fmt.Sprintf("%d stored, %d replicated", r.Acked[check.Stored], r.Acked[check.Replicated])
		}},
		{Header: "FAILED", Cell: func(r torture.Report) string {
			return fmt.Sprintf("%d not stored, %d unknown", r.NotStored, r.Unknown)
		}},
		{Header: "READ", Cell: func(r torture.Report) string {
			return fmt.Sprintf("%d by readers, %d in the end, %d stored", r.Read, r.Kept, r.Verified.Messages)
		}},
		{Header: "LINEARIZABILITY", Cell: func(r torture.Report) string {
			return fmt.Sprintf("%s, %s undecided", smq.Count(r.Linear, "operation"), smq.Count(len(r.Undecided), "partition"))
		}},
		{Header: "FAULTS", Cell: func(r torture.Report) string { return describeCounts(r.Faults) }},
		{Header: "CHANGES", Cell: func(r torture.Report) string { return describeCounts(r.Verified.Changes) }},
		{Header: "LONGEST_OUTAGE", Cell: func(r torture.Report) string { return describeOutage(r.Outage) }},
		{Header: "SLOWEST_ACK", Cell: func(r torture.Report) string { return inMS(r.SlowestAck) }},
		{Header: "EXCUSED", Cell: func(r torture.Report) string { return number(int64(r.Excused.Count())) }},
		{Header: "VIOLATIONS", Cell: func(r torture.Report) string { return number(int64(r.Violations.Count())) }},
		{Header: "KEPT_IN", Cell: func(r torture.Report) string { return orNone(r.Dir) }},
	},
}

func inMS(us int64) string {
	return (time.Duration(us) * time.Microsecond).Round(time.Millisecond).String()
}

func describeCounts(counts map[string]int) string {
	total := 0
	var each []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		total += counts[name]
		each = append(each, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if total == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(each, ", "))
}

func describeOutage(o check.Outage) string {
	if o.Length() == 0 {
		return "-"
	}
	text := fmt.Sprintf("%s of %s/%d, from %s on", inMS(o.Length()), o.Topic, o.Partition, inMS(o.From))
	if len(o.Faults) > 0 {
		text += ": " + strings.Join(o.Faults, ", ")
	}
	return text
}

func printTorture(e *cli.Env, r torture.Report) error {
	err := tortureColumns.One(e, r, func() error {
		for _, f := range r.Violations {
			for _, example := range f.Examples {
				if _, err := fmt.Fprintf(e.Stdout, "violation: %s (%d): %s\n", f.Violation, f.Count, example); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil && r.Violations.Count() > 0 {
		err = cli.Exit(cli.ExitFailed, fmt.Errorf("torture: %s; the history is %s", smq.Count(r.Violations.Count(), "violation"), r.History))
	}
	return err
}
