package sub

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/command/render"
	"github.com/seaweedmq/smq/lib/smq"
)

const long = `Subscribe to TOPICs (name, or namespace/name) and write each message's value and
a newline to standard output, partition by partition in order, as messages come.

Where each partition starts (--from):     and where it stops (--until):
  latest    what comes from now on        end     what it holds now
  earliest  the first message             OFFSET  before this offset
  OFFSET    that offset                   @TIME   before the first message of TIME
  -N        N messages before its end     (none)  never
  @TIME     the first message of TIME
  10m       TIME is so long ago
All of these are per partition: --from -10 shows the last 10 messages of every
partition, and --until OFFSET ends when every partition has come to OFFSET, so it
waits for those that have not; -p names the one that is meant.
TIME is 2026-01-31, 2026-01-31T15:04:05Z, or seconds or milliseconds since 1970.

Formats (-f):
  value     the value and a newline (or -d TEXT)
  raw       the value alone
  length    the value's length, 4 bytes big-endian, and the value
  json      an envelope a line: topic, partition, offset, timestamp, key, value,
            headers; bytes that are not UTF-8 as {"base64":"…"}. smq-pub -f json
            takes it again.
  TEMPLATE  as in rpk: %t %p %o %k %v %h{…} %d, with {hex}, {base64}, {json} …

A closed pipe ends it quietly, with success. SIGINT and SIGTERM end it with 130
and 143, after what was received is written.

` + cli.ExitCodes

const examples = `  smq-sub orders                              # follow
  smq-sub orders --from earliest --until end  # all there is
  smq-sub orders --from -10 -p 0,3-5 -f '%p %o %k=%v\n'
  smq-sub orders --from 10m -f json | jq .value
  smq-sub orders --from @2026-01-31 --until @2026-02-01 -f length > january-31`

// options are the flags of smq-sub.
type options struct {
	from       string
	until      string
	count      int64
	partitions string
	format     string
	delimiter  string
}

// New is the command tree of smq-sub.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "smq-sub TOPIC…",
		Short:   "Subscribe to messages",
		Long:    long,
		Example: examples,
		Args:    cli.Args("TOPIC…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), e, cmd, o, args)
		},
		ValidArgsFunction: connect.CompleteTopics(e),
	}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "latest", "`PLACE` to start at in each partition: earliest, latest, OFFSET, -N, @TIME or a duration (ago)")
	f.StringVar(&o.until, "until", "", "`PLACE` to stop at in each partition: end, OFFSET (waits for it; see -p) or @TIME")
	f.Int64VarP(&o.count, "count", "n", 0, "stop after `N` messages")
	f.StringVarP(&o.partitions, "partitions", "p", "", "only these partitions, a `LIST` such as 0,3-5")
	f.StringVarP(&o.format, "format", "f", "value", "`FORMAT`: value, raw, length, json, or a template such as '%k %v\\n'")
	f.StringVarP(&o.delimiter, "delimiter", "d", `\n`, "`TEXT` after each value; escapes \\t \\n \\r \\0 \\xNN")
	cli.MayBeEmpty(f, "delimiter", "partitions")
	e.AddMasterFlag(cmd)
	e.AddTimeoutFlag(cmd, cli.DefaultTimeout, "how long to look for the cluster, the topics and where to start")
	e.AddCommonFlags(cmd)
	connect.CompleteWords(cmd, "from", "earliest", "latest")
	connect.CompleteWords(cmd, "until", "end")
	connect.CompleteWords(cmd, "format", render.Formats...)
	return cmd
}

// job is a call of smq-sub whose flags are in order.
type job struct {
	topics      []smq.Topic
	partitions  []int32
	from, until place
	newRenderer func() render.Func
	budget      *budget
}

func prepare(cmd *cobra.Command, o *options, args []string, now time.Time) (j job, err error) {
	for _, arg := range args {
		t, err := smq.ParseTopic(arg)
		if err != nil {
			return job{}, err
		}
		if !slices.Contains(j.topics, t) {
			j.topics = append(j.topics, t)
		}
	}
	if j.from, err = parseFrom(o.from, now); err != nil {
		return job{}, err
	}
	if j.until, err = parseUntil(o.until); err != nil {
		return job{}, err
	}
	if cmd.Flags().Changed("partitions") && o.partitions == "" {
		return job{}, cli.Usagef("-p is empty; leave it out for all partitions")
	}
	if j.partitions, err = parsePartitions(o.partitions); err != nil {
		return job{}, err
	}
	delimiter, err := cli.Unescape(o.delimiter)
	if err != nil {
		return job{}, err
	}
	if cmd.Flags().Changed("delimiter") && o.format != "value" {
		return job{}, cli.Usagef("-d goes with -f value only")
	}
	if _, err := render.New(o.format, delimiter); err != nil {
		return job{}, err
	}
	j.newRenderer = func() render.Func {
		r, _ := render.New(o.format, delimiter) // was checked just now
		return r
	}
	if cmd.Flags().Changed("count") {
		if o.count < 1 {
			return job{}, cli.Usagef("-n %d: the least is 1", o.count)
		}
		j.budget = &budget{}
		j.budget.left.Store(o.count)
	}
	return j, nil
}

func run(ctx context.Context, e *cli.Env, cmd *cobra.Command, o *options, args []string) error {
	j, err := prepare(cmd, o, args, time.Now())
	if err != nil {
		return err
	}
	logger, err := e.Logger(slog.LevelError)
	if err != nil {
		return err
	}
	ctx, cancel := e.WatchOutput(ctx)
	defer cancel()
	if err = j.connect(ctx, e, logger); err != nil && errors.Is(context.Cause(ctx), cli.ErrOutputClosed) {
		return cli.ErrOutputClosed // whatever failed for that reason
	}
	return err
}

func (j job) connect(ctx context.Context, e *cli.Env, logger *slog.Logger) error {
	c, err := connect.Dial(ctx, e, logger)
	if err != nil {
		return err
	}
	defer c.Close() // only read
	return j.run(ctx, e, c)
}

// run follows all topics. Whatever ends it, what was rendered before is
// written.
func (j job) run(ctx context.Context, e *cli.Env, c *client.Client) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	out := newOutput(e.Stdout, fail)
	var all []*follower
	for _, topic := range j.topics {
		f, err := j.follower(ctx, e, c, topic, out)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	var followers errgroup.Group
	for _, f := range all {
		followers.Go(func() error {
			err := f.run(ctx)
			if err != nil {
				fail(err)
			}
			return err
		})
	}
	return finish(ctx, out, followers.Wait)
}

// finish waits for the followers and for what they rendered to be written,
// though not for ever if a signal wants an end and nobody reads.
func finish(ctx context.Context, out *output, wait func() error) error {
	done := make(chan error, 1)
	go func() { done <- errors.Join(wait(), out.Flush()) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(grace):
			err = context.Cause(ctx)
		}
	}
	// The first failure is the cause; the others follow from it.
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errEnough) {
		return out.Flush()
	}
	return err
}

// follower looks a topic up and subscribes to it by its plan. The client's end
// ends the subscription.
func (j job) follower(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, out *output) (*follower, error) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	p, err := makePlan(ctx, c, topic, j.partitions, j.from, j.until, time.Now())
	if err != nil {
		return nil, j.advise(ctx, c, topic, err)
	}
	f := &follower{topic: topic, name: topic.String(), plan: p, finder: c, render: j.newRenderer(), out: out, budget: j.budget}
	if p.nothing() {
		return f, nil
	}
	s, err := c.NewSubscriber(ctx, topic, client.SubscriberOptions{Partitions: p.partitions, Start: p.start, Starts: p.starts})
	if err != nil {
		return nil, j.advise(ctx, c, topic, err)
	}
	f.from = subscription{s}
	return f, nil
}

// advise says plainly that there is no such topic or no such partition, when
// that is what a look-up failed with.
func (j job) advise(ctx context.Context, c *client.Client, topic smq.Topic, err error) error {
	if errors.Is(err, smq.ErrInvalid) && len(j.partitions) > 0 {
		last := j.partitions[len(j.partitions)-1]
		if d, describeErr := c.DescribeTopic(ctx, topic); describeErr == nil && last >= d.GetConfig().GetPartitions() {
			n := d.GetConfig().GetPartitions()
			return cli.Usagef("topic %s has partitions 0 to %d; there is no %d", topic, n-1, last)
		}
	}
	return connect.NoTopic(ctx, c, err, topic)
}
