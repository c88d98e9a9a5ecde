package pub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
)

const long = `Publish messages to TOPIC (name, or namespace/name): by default each line of
standard input, or of the FILEs. Acks come in order; at the end one line on
standard error says what was sent and acked.

Formats (-f):
  lines     a message ends with the delimiter (-d); the last one may lack it.
            With -K, the text up to the key delimiter is the key.
  json      envelopes as smq-sub -f json writes them: key, value, headers,
            timestamp and partition are kept. Partitions must exist in TOPIC;
            --repartition chooses them anew, as it should when TOPIC has
            another number of partitions.
  raw       the whole input is one message (with --each: every FILE).
  length    each message follows its length, 4 bytes big-endian.
  TEMPLATE  as in rpk: %k, %v, %h{…}, %p, %d, with {hex}, {base64}, {json} …

Messages without a key all go to one partition, picked at random for each run,
so one pipe keeps one order; --spread gives that up. A message has at most
16 MiB. The first message that fails ends the reading, unless --failed-to keeps
what fails. It cannot keep what cannot be read: of lines, one that is too large,
and of json, what is no envelope, are left out, told of and counted as failed.
Broken JSON, and any fault in the other formats, ends the reading all the same,
since nobody can tell where the next message begins.

SIGINT and SIGTERM: nothing more is read; what was read is still sent, no faster
than --rate says, for half of --timeout at most. What is left then is not sent:
it counts as failed, and --failed-to keeps it. The exit code is 130 or 143. A
second signal ends it at once.

` + cli.ExitCodes

const examples = `  seq 1 1000000 | smq-pub numbers --create
  smq-pub orders -K : < orders.txt          # lines of key:value
  smq-pub images --each *.png -H type=image/png
  smq-sub a -f json --from earliest --until end | smq-pub b -f json --create
  smq-pub orders --failed-to left.json < in || smq-pub orders -f json < left.json`

// New is the command tree of smq-pub.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "smq-pub TOPIC [FILE…]",
		Short:   "Publish messages",
		Long:    long,
		Example: examples,
		Args:    cli.Args("TOPIC", "[FILE…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), e, cmd, o, args)
		},
		ValidArgsFunction: connect.CompleteFirstTopic(e),
	}
	o.register(cmd.Flags())
	e.AddMasterFlag(cmd)
	e.AddTimeoutFlag(cmd, cli.DefaultTimeout, "how long to look for the cluster and topic, and to flush after a signal")
	e.AddCommonFlags(cmd)
	connect.CompleteWords(cmd, "format", formats...)
	connect.CompleteWords(cmd, "acks", "stored", "replicated", "default")
	connect.CompleteWords(cmd, "compress", "none", "gzip", "snappy", "lz4", "zstd")
	return cmd
}

// job is a call of smq-pub whose flags and files are in order.
type job struct {
	topic   smq.Topic
	source  source
	inputs  []input
	options client.PublisherOptions
	pace    *pace
}

func prepare(e *cli.Env, cmd *cobra.Command, o *options, args []string) (job, error) {
	topic, err := smq.ParseTopic(args[0])
	if err != nil {
		return job{}, err
	}
	source, err := o.source(cmd.Flags(), len(args)-1)
	if err != nil {
		return job{}, err
	}
	options, err := o.publisher()
	if err != nil {
		return job{}, err
	}
	pace, err := parseRate(o.rate)
	if err != nil {
		return job{}, err
	}
	inputs, err := findInputs(e, args[1:])
	if err != nil {
		return job{}, err
	}
	if err := o.checkFailures(inputs); err != nil {
		return job{}, err
	}
	if o.format == "raw" && !o.each {
		inputs = joined(inputs)
	}
	return job{topic: topic, source: source, inputs: inputs, options: options, pace: pace}, nil
}

func run(ctx context.Context, e *cli.Env, cmd *cobra.Command, o *options, args []string) (err error) {
	j, err := prepare(e, cmd, o, args)
	if err != nil {
		return err
	}
	logger, err := e.Logger(slog.LevelError)
	if err != nil {
		return err
	}
	c, err := connect.Dial(ctx, e, logger)
	if err != nil {
		return err
	}
	defer c.Close() // what matters was flushed
	if o.create {
		if err := create(ctx, e, c, j.topic, o.partitions); err != nil {
			return err
		}
	}
	failures, err := o.openFailures()
	if err != nil {
		return err
	}
	if failures != nil {
		defer func() { err = errors.Join(err, failures.Close()) }()
	}
	var kept, report io.Writer
	if failures != nil {
		kept = failures
	}
	if o.report {
		report = e.Stdout
	}
	t := newTally(kept, report)
	j.options.Results = t.results
	p, err := openPublisher(ctx, e, c, j)
	if err != nil {
		return err
	}
	flow := &pump{source: j.source, to: p, tally: t, pace: j.pace, warn: e.Warnf}
	if o.tee {
		flow.tee = e.Stdout
	}
	return deliver(ctx, e, flow, j.inputs, o.progress)
}

// openPublisher looks the topic up.
func openPublisher(ctx context.Context, e *cli.Env, c *client.Client, j job) (*client.Publisher, error) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	p, err := c.NewPublisher(ctx, j.topic, j.options)
	if errors.Is(err, smq.ErrNotFound) {
		err = fmt.Errorf("topic %s: %w%s; make it with --create, or with smq-admin topic create %s", j.topic, smq.ErrNotFound, connect.Meant(ctx, c, j.topic), j.topic)
	}
	return p, err
}

// create makes the topic unless it is there.
func create(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, partitions int32) error {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	_, err := c.CreateTopic(ctx, topic, client.TopicOptions{Partitions: partitions})
	if errors.Is(err, smq.ErrExists) {
		if partitions > 0 {
			connect.WarnOfPartitions(ctx, e, c, topic, partitions)
		}
		return nil
	}
	return err
}

// deliver runs the pump, waits for the acks, and reports.
func deliver(ctx context.Context, e *cli.Env, p *pump, inputs []input, progress bool) error {
	started := time.Now()
	publishing, cancel := graceful(ctx, time.Duration(e.Flags.Timeout))
	defer cancel()
	total := totalSize(inputs)
	var shown *cli.Progress
	if progress || !typed(e, inputs) {
		shown = e.StartProgress(progress, func() cli.ProgressState {
			t, _ := p.tally.state()
			return cli.ProgressState{Done: p.read.Load(), Total: total, Text: fmt.Sprintf("%d sent, %d acked", t.sent, t.acked)}
		})
	}
	p.drain = time.Duration(e.Flags.Timeout) / 2 // the rest is for the acks
	inputErr := p.run(publishing, ctx, inputs)
	closeErr := p.to.Close(publishing)
	p.tally.settle(context.Cause(ctx))
	shown.Stop()
	t, failure := p.tally.state()
	e.Infof("%s", t.line(time.Since(started)))
	if ctx.Err() != nil {
		warnOfRest(e, p)
	}
	return verdict(t, context.Cause(ctx), inputErr, failure, closeErr)
}

// typed reports whether somebody types the input: progress would be drawn over
// the line that he is at.
func typed(e *cli.Env, inputs []input) bool {
	return e.StdinTerminal && slices.ContainsFunc(inputs, func(in input) bool { return in.stdin })
}

// warnOfRest tells what a signal has left of the input that was read and that made
// no message.
func warnOfRest(e *cli.Env, p *pump) {
	if s, ok := p.source.(partial); ok {
		if n := s.unfinished(); n > 0 {
			e.Warnf("%s of an unfinished message %s read and not sent", smq.Count(n, "byte"), was(n))
		}
	}
	if p.feed == nil {
		return
	}
	if n := p.feed.late(); n > 0 {
		e.Warnf("%s of input %s read too late, and not sent", smq.Count(n, "byte"), was(n))
	}
}

func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// notAcked says how many of all messages are not acked.
func notAcked(lost, all int64) string {
	be := "are"
	if lost == 1 {
		be = "is"
	}
	return fmt.Sprintf("%d of %s %s not acked", lost, smq.Count(all, "message"), be)
}

// verdict is what the command ends with: nil only if all that was to be
// published is acked. A signal comes first, then what is wrong with the input,
// then what the publisher failed with.
func verdict(t totals, signal, input, failure, closing error) error {
	all := t.sent + t.unsent
	lost := all - t.acked
	if signal != nil {
		if lost > 0 {
			return cli.Exit(cli.ExitCode(signal, signal), fmt.Errorf("%w: %s", signal, notAcked(lost, all)))
		}
		return signal
	}
	err := input
	if err == nil && failure != nil {
		err = failure
		if t.failed > 0 {
			err = fmt.Errorf("%s: %w", notAcked(lost, all), failure)
		}
	}
	if err == nil && (closing != nil || lost > 0) {
		err = fmt.Errorf("%s: %w", notAcked(lost, all), errors.Join(closing))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cli.ErrOutputClosed):
		err = errors.New("the reader of standard output has left, so the rest of the input was not read")
	}
	if t.acked > 0 {
		return cli.Exit(cli.ExitPartly, err)
	}
	return err
}
