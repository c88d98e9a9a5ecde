package admin

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seaweedmq/smq/lib/bench"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newBench(e *cli.Env) *cobra.Command {
	return group("bench", "Measure throughput and latency",
		newBenchRun(e, "pub", "Measure publishing: how many messages a second, and how long until their acks",
			"  smq-admin bench pub --rate 1000/s --size 1KiB --duration 60s --acks replicated --replicas 2\n  smq-admin bench pub --rate 1MB/s:10s,40MB/s:30s,1MB/s:60s --topic flooded\n  smq-admin bench pub -o csv >> results.csv"),
		newBenchRun(e, "e2e", "Measure the whole way: how long from publishing to receiving",
			"  smq-admin bench e2e --rate 1000/s --duration 60s -o json\n  smq-admin bench e2e --in-flight 1 --messages 10000"),
		newBenchSub(e))
}

// benchHelp is what the measurements that publish have in common.
const benchHelp = `
With --rate each message is due at a time, whatever becomes of those before it, and its
latency counts from then: a stall is in the latency of everything that was due meanwhile.
Without --rate messages follow one another as fast as they are taken, or with at most
--in-flight of each producer under way; then the latency counts from the moment when
they are offered, and tells mostly how long the queue is unless --in-flight bounds it.
Of several rates each is told of by itself, and so is each change of the topic's layout
meanwhile: the latencies of what was due in the seconds that it took (but not in csv).

Messages go to all partitions in turn. They are published to a topic of their own, which
is deleted in the end, or to the one that --topic names, where they stay.

SIGINT and SIGTERM end it early; what was found so far is printed. Whatever was not acked,
or not received in time, is an error, and makes the exit code 3, or 1 when nothing was.

`

// benchFlags are the flags of the measurements.
type benchFlags struct {
	topic      string
	partitions int32
	replicas   int32
	rate       string
	inFlight   int
	size       cli.Size
	messages   int64
	duration   cli.Duration
	warmup     cli.Duration
	settle     cli.Duration
	producers  int
	acks       string
	compress   string
	linger     cli.Duration
	batch      cli.Size
	output     string
}

var (
	benchFormats = []string{"table", "json", "csv"}
	ackLevels    = []string{"stored", "replicated", "default"}
	codecs       = []string{"none", "gzip", "snappy", "lz4", "zstd"}
)

// Defaults of the measurements.
const (
	benchDuration = 10 * time.Second
	benchWarmup   = 2 * time.Second
	benchSettle   = 10 * time.Second
	benchFill     = 1_000_000 // messages to be read
)

// topicFlags are those that every measurement has.
func (o *benchFlags) topicFlags(cmd *cobra.Command, e *cli.Env) {
	f := cmd.Flags()
	f.StringVar(&o.topic, "topic", "", "use this `TOPIC`, and leave it there (default: one of its own, which is deleted)")
	f.Int32Var(&o.partitions, "partitions", 0, fmt.Sprintf("without --topic, `N` partitions (default %d)", smq.DefaultPartitions))
	f.Int32Var(&o.replicas, "replicas", 0, "without --topic, `N` brokers hold what is not stored yet")
	f.Var(&o.size, "size", fmt.Sprintf("of a message's value, %d bytes at the least", bench.MinSize))
	f.StringVar(&o.compress, "compress", "none", "`CODEC`: none, gzip, snappy, lz4 or zstd")
	f.StringVarP(&o.output, "output", "o", o.output, "`FORMAT`: table, json or csv")
	connect.CompleteWords(cmd, "output", benchFormats...)
	connect.CompleteWords(cmd, "compress", codecs...)
	connect.CompleteFlag(cmd, "topic", connect.CompleteTopics(e))
}

func newBenchRun(e *cli.Env, test, short, example string) *cobra.Command {
	o := newBenchFlags()
	cmd := &cobra.Command{
		Use:     test,
		Short:   short,
		Long:    short + ".\n" + benchHelp + cli.ExitCodes,
		Example: example,
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.parse(cmd.Flags())
			if err != nil {
				return err
			}
			return withClientUntimed(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return benchRun(ctx, e, c, test, o, p)
			})
		},
	}
	o.register(cmd, e)
	return cmd
}

func newBenchFlags() *benchFlags {
	return &benchFlags{
		size: 1 << 10, producers: 1, acks: client.AckDefault.String(), output: "table",
		duration: cli.Duration(benchDuration), warmup: cli.Duration(benchWarmup), settle: cli.Duration(benchSettle),
		linger: cli.Duration(client.DefaultLinger), batch: client.DefaultBatchBytes,
	}
}

// register adds the flags of the measurements that publish.
func (o *benchFlags) register(cmd *cobra.Command, e *cli.Env) {
	f := cmd.Flags()
	f.StringVar(&o.rate, "rate", "", "`N/s` messages, or SIZE/s bytes, of all producers together; several, with a length each, follow one another, as in 1MB/s:10s,20MB/s:30s (default: as fast as possible)")
	f.IntVar(&o.inFlight, "in-flight", 0, "without --rate, at most `N` messages of each producer under way (default: what its buffer takes)")
	f.Int64Var(&o.messages, "messages", 0, "end after `N` messages, not counting the warm-up (then --duration only if given)")
	f.Var(&o.duration, "duration", "end after this time, not counting the warm-up")
	f.Var(&o.warmup, "warmup", "leave out what begins before")
	f.Var(&o.settle, "settle", "wait this long for what is under way at the end")
	f.IntVar(&o.producers, "producers", o.producers, "`N` publishers side by side")
	f.StringVar(&o.acks, "acks", o.acks, "`LEVEL`: stored, replicated or default (replicated where it can be)")
	f.Var(&o.linger, "linger", "how long a message may wait for others to share its batch (with --rate 0s unless given)")
	f.Var(&o.batch, "batch", "size of a batch, before compression")
	o.topicFlags(cmd, e)
	connect.CompleteWords(cmd, "acks", ackLevels...)
}

// benchPlan is what the flags come to.
type benchPlan struct {
	options   bench.Options
	publisher client.PublisherOptions
	topic     smq.Topic // of --topic; zero: a temporary one
}

func (o *benchFlags) parse(f *pflag.FlagSet) (p benchPlan, err error) {
	if p.topic, err = o.parseTopic(f); err != nil {
		return p, err
	}
	p.options = bench.Options{
		InFlight: o.inFlight, Size: int(o.size), Producers: o.producers, Messages: o.messages,
		Duration: time.Duration(o.duration), Warmup: time.Duration(o.warmup), Settle: time.Duration(o.settle),
	}
	if p.options.Stages, err = o.stages(); err != nil {
		return p, err
	}
	if s := p.options.Stages; len(s) > 0 && s[0].For > 0 {
		if f.Changed("duration") {
			return p, cli.Usagef("--rate %s and --duration: the stages have lengths of their own", o.rate)
		}
		p.options.Duration = 0
	}
	switch {
	case o.rate != "" && f.Changed("in-flight"):
		return p, cli.Usagef("--rate and --in-flight: with a rate as many are under way as there have to be; give one or the other")
	case f.Changed("in-flight") && o.inFlight < 1:
		return p, cli.Usagef("--in-flight %d: the least is 1", o.inFlight)
	case f.Changed("messages") && o.messages < 1:
		return p, cli.Usagef("--messages %d: the least is 1", o.messages)
	case o.size < bench.MinSize || o.size > smq.MaxMessageSize:
		return p, cli.Usagef("--size %v: use %s to %s", &o.size, cli.FormatSize(bench.MinSize), cli.FormatSize(smq.MaxMessageSize))
	case o.producers < 1:
		return p, cli.Usagef("--producers %d: the least is 1", o.producers)
	case o.batch < 1 || o.batch > smq.MaxBatchSize:
		return p, cli.Usagef("--batch %v: use 1B to %s", &o.batch, cli.FormatSize(smq.MaxBatchSize))
	}
	if o.messages > 0 && !f.Changed("duration") {
		p.options.Duration = 0
	}
	p.publisher = client.PublisherOptions{Spread: true, BatchBytes: int(o.batch), Linger: time.Duration(o.linger)}
	if o.linger == 0 || o.rate != "" && !f.Changed("linger") {
		p.publisher.Linger = client.NoLinger
	}
	if p.publisher.Acks, err = client.ParseAckLevel(o.acks); err != nil {
		return p, cli.OneOf("ack level", o.acks, ackLevels...)
	}
	if p.publisher.Codec, err = record.ParseCodec(o.compress); err != nil {
		return p, cli.OneOf("codec", o.compress, codecs...)
	}
	return p, p.options.Validate()
}

// stages reads --rate: a rate, or several with a length each.
func (o *benchFlags) stages() ([]bench.Stage, error) {
	if o.rate == "" {
		return nil, nil
	}
	parts := strings.Split(o.rate, ",")
	var stages []bench.Stage
	for _, part := range parts {
		rate, length, timed := strings.Cut(part, ":")
		if !timed && len(parts) > 1 {
			return nil, cli.Usagef("--rate %s: %s has no length; write for instance 1MB/s:10s,20MB/s:30s", o.rate, part)
		}
		v, err := cli.ParseRate(rate)
		if err != nil {
			return nil, cli.Usagef("--rate %w", err)
		}
		stage := bench.Stage{Rate: v.PerSecond}
		if v.Bytes {
			stage.Rate /= float64(max(o.size, 1))
		}
		if timed {
			if stage.For, err = cli.ParseDuration(length); err != nil || stage.For <= 0 {
				return nil, cli.Usagef("--rate %s: %q is not a length; write for instance 1MB/s:10s,20MB/s:30s", o.rate, length)
			}
		}
		stages = append(stages, stage)
	}
	return stages, nil
}

// parseTopic reads --topic and checks the flags that go with it.
func (o *benchFlags) parseTopic(f *pflag.FlagSet) (smq.Topic, error) {
	if !cli.Typed(f, "output") && !slices.Contains(benchFormats, o.output) {
		o.output = "table" // the one for all commands is none of these
	}
	if err := cli.OneOf("format", o.output, benchFormats...); err != nil {
		return smq.Topic{}, err
	}
	if f.Changed("partitions") && (o.partitions < 1 || o.partitions > smq.MaxPartitions) {
		return smq.Topic{}, cli.Usagef("--partitions %d: a topic has 1 to %d", o.partitions, smq.MaxPartitions)
	}
	if err := checkReplicas(f, o.replicas); err != nil {
		return smq.Topic{}, err
	}
	if o.topic == "" {
		return smq.Topic{}, nil
	}
	if f.Changed("partitions") || f.Changed("replicas") {
		return smq.Topic{}, cli.Usagef("--topic %s: it is as it is; --partitions and --replicas are for a topic of the measurement's own", o.topic)
	}
	return smq.ParseTopic(o.topic)
}

// withTopic runs f with the topic to use: one that is made for it and deleted
// behind it unless a name was given.
func withTopic(ctx context.Context, e *cli.Env, c *client.Client, given smq.Topic, o *benchFlags, f func(smq.Topic, *smqpb.TopicConfig) error) (err error) {
	looking, cancel := e.WithTimeout(ctx)
	defer cancel()
	if given != (smq.Topic{}) {
		d, err := c.DescribeTopic(looking, given)
		if err != nil {
			return connect.NoTopic(ctx, c, err, given)
		}
		return f(given, d.GetConfig())
	}
	topic := smq.Topic{Namespace: smq.DefaultNamespace, Name: fmt.Sprintf("bench-%016x", randomID())}
	config, err := c.CreateTopic(looking, topic, client.TopicOptions{Partitions: o.partitions, Replicas: o.replicas})
	if err != nil {
		return err
	}
	defer func() {
		deleting, cancel := e.WithTimeout(context.WithoutCancel(ctx)) // an interruption leaves nothing behind either
		defer cancel()
		if deletion := c.DeleteTopic(deleting, topic); deletion != nil && !errors.Is(deletion, smq.ErrNotFound) {
			e.Warnf("topic %s stays behind: %v", topic, deletion)
		}
	}()
	return f(topic, config)
}

// randomID tells one measurement from another.
func randomID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:])
}

func benchRun(ctx context.Context, e *cli.Env, c *client.Client, test string, o *benchFlags, p benchPlan) error {
	return withTopic(ctx, e, c, p.topic, o, func(topic smq.Topic, config *smqpb.TopicConfig) error {
		var source *client.Subscriber
		if test == "e2e" {
			var err error
			connecting, cancel := e.WithTimeout(ctx)
			defer cancel()
			if source, err = c.NewSubscriber(connecting, topic, client.SubscriberOptions{}); err != nil {
				return err
			}
			defer source.Close() // it has nothing to lose
		}
		run, result, err := publishTo(ctx, e, c, topic, p, source)
		if err != nil {
			return connect.NoTopic(ctx, c, err, topic)
		}
		view := viewBench(test, config, p, result)
		view.Stages = viewStages(p.options.Stages, run.Stages())
		view.Changes = changesDuring(ctx, e, c, topic, run)
		if err := printBench(e, o.output, view); err != nil {
			return err
		}
		return benchOutcome(ctx, result)
	})
}

// publishTo publishes to a topic, and receives what it publishes unless source
// is nil.
func publishTo(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, p benchPlan, source *client.Subscriber) (run *bench.Run, result bench.Result, err error) {
	connecting, cancel := e.WithTimeout(ctx)
	defer cancel()
	run, err = bench.NewRun(p.options, randomID(), func(told func(client.Results)) (bench.Publisher, error) {
		options := p.publisher
		options.Results = told
		return c.NewPublisher(connecting, topic, options)
	})
	if err != nil {
		return nil, bench.Result{}, err
	}
	progress := e.StartProgress(false, func() cli.ProgressState {
		return cli.ProgressState{Done: run.Acked() * int64(p.options.Size), Text: number(run.Acked()) + " messages acked"}
	})
	defer progress.Stop()
	if source == nil {
		result, err = run.Publish(ctx)
	} else {
		result, err = run.EndToEnd(ctx, source)
	}
	return run, result, err
}

// changesDuring are the changes of the topic's layout in a run, each with the
// latencies of what was due in the seconds that it took. Their times are by the
// clock of the brokers that led.
func changesDuring(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, run *bench.Run) []benchChange {
	asking, cancel := e.WithTimeout(context.WithoutCancel(ctx)) // what was found before an interruption is told too
	defer cancel()
	all, damaged, err := history(asking, c, topic)
	if err == nil && len(damaged) > 0 {
		err = damaged[0]
	}
	if err != nil {
		e.Warnf("what has changed in the layout of topic %s is not known: %v", topic, err)
	}
	changes := []benchChange{}
	for _, change := range all {
		end := time.UnixMilli(change.CreatedMS)
		begin := end.Add(-time.Duration(change.PauseMS) * time.Millisecond)
		if end.Before(run.Began()) {
			continue
		}
		if l := run.During(begin, end); l.Count > 0 {
			changes = append(changes, benchChange{Version: change.Version, CreatedMS: change.CreatedMS, Cause: change.Cause, PauseMS: change.PauseMS, Messages: l.Count, Ack: *viewLatency(l)})
		}
	}
	return changes
}

// benchOutcome is the error that a measurement ends with.
func benchOutcome(ctx context.Context, r bench.Result) error {
	code := cli.ExitPartly
	if r.Messages == 0 {
		code = cli.ExitFailed
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.Failed > 0:
		return cli.Exit(code, fmt.Errorf("%s not acked: %w", smq.Count(r.Failed, "message"), r.FirstErr))
	case r.Unsent > 0:
		return cli.Exit(code, fmt.Errorf("the rate was not reached: %s due and not even offered", smq.Count(r.Unsent, "message")))
	case r.Missing > 0:
		return cli.Exit(code, fmt.Errorf("%s acked and not received in time", smq.Count(r.Missing, "message")))
	}
	return nil
}
