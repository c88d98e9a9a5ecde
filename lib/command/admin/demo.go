package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/local"
	"github.com/seaweedmq/smq/lib/command/node"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

func newDemo(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo [FILE]",
		Short: "See a cluster work, survive the loss of a broker, and scale",
		Long: `Start a cluster of a master and three brokers, each a process of its own, in a
temporary directory. Publish a text file (FILE, or the help texts of all
commands) line by line and read it back. Then publish numbers, and meanwhile
kill the broker that takes them, as kill -9 does. Then let a flood of messages
come over a topic, whose segments split over the brokers that are left, and merge
when it is over. Read everything back, check what is stored, say what happened,
and clean up. It takes about a minute.`,
		Example: "  smq-admin demo\n  smq-admin demo README.md",
		Args:    cli.Args("[FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := helpTexts(cmd.Root())
			if len(args) == 1 {
				var err error
				if _, text, err = readFile(e, args[0]); err != nil {
					return err
				}
			}
			return runDemo(cmd.Context(), e, text)
		},
	}
	return cmd
}

// helpTexts are the help pages of all commands.
func helpTexts(root *cobra.Command) []byte {
	var text bytes.Buffer
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		fmt.Fprintf(&text, "%s: %s\n\n%s\n\n%s\n", cmd.CommandPath(), cmd.Short, cmd.Long, cmd.UsageString())
		for _, c := range cmd.Commands() {
			add(c)
		}
	}
	add(root)
	return text.Bytes()
}

// demo is a running one.
type demo struct {
	env     *cli.Env
	began   time.Time
	dir     string
	store   string // URL
	master  *local.Child
	brokers []*local.Child // those that live
	client  *client.Client

	mu       sync.Mutex     // guards what follows; held while removing
	children []*local.Child // all that were started
	removed  bool
}

func runDemo(ctx context.Context, e *cli.Env, text []byte) (err error) {
	d := &demo{env: e, began: time.Now()}
	d.dir, err = os.MkdirTemp("", "smq-demo-")
	if err != nil {
		return err
	}
	d.store = "dir://" + filepath.ToSlash(filepath.Join(d.dir, "store"))
	e.OnSecondSignal(func() { _ = d.remove() }) // nobody is left to tell
	defer func() { err = errors.Join(err, d.stop(ctx), d.remove()) }()
	for _, step := range []func(context.Context) error{
		d.start,
		func(ctx context.Context) error { return d.roundTrip(ctx, text) },
		d.surviveKill,
		d.scale,
		d.verify,
	} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("demo: %w", err)
		}
	}
	return d.say("done: nothing was lost, nothing was there twice, everything was in order")
}

// say prints a line with the time since the start, unless -q forbids it.
func (d *demo) say(format string, args ...any) error {
	if d.env.Flags.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(d.env.Stdout, "%6.2fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
	return err
}

const demoBrokers = 3

// start starts master and brokers.
func (d *demo) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	var err error
	d.master, err = d.startChild(ctx, "master", "smq-master", "--store", d.store, "--data", filepath.Join(d.dir, "master"))
	if err != nil {
		return err
	}
	for i := range demoBrokers {
		b, err := d.startChild(ctx, fmt.Sprintf("broker-%d", i+1), "smq-broker", "--master", d.master.Address)
		if err != nil {
			return err
		}
		d.brokers = append(d.brokers, b)
	}
	if d.client, err = client.Connect(ctx, client.Config{Masters: []string{d.master.Address}}); err != nil {
		return err
	}
	return d.say("started a master and %d brokers, each a process of its own; messages go to %s", demoBrokers, d.store)
}

func (d *demo) startChild(ctx context.Context, name, binary string, args ...string) (*local.Child, error) {
	c, err := local.StartChild(ctx, d.dir, name, binary, args...)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.children = append(d.children, c)
	return c, nil
}

var (
	textTopic   = smq.Topic{Namespace: smq.DefaultNamespace, Name: "text"}
	numberTopic = smq.Topic{Namespace: smq.DefaultNamespace, Name: "numbers"}
)

// roundTrip publishes a text line by line, and reads it back.
func (d *demo) roundTrip(ctx context.Context, text []byte) error {
	if _, err := d.client.CreateTopic(ctx, textTopic, client.TopicOptions{}); err != nil {
		return err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	start := time.Now()
	p, err := d.client.NewPublisher(ctx, textTopic, client.PublisherOptions{})
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := p.Publish(ctx, &client.Message{Value: line, Partition: client.AnyPartition}); err != nil {
			return err
		}
	}
	if err := p.Close(ctx); err != nil {
		return err
	}
	if err := d.say("published a text of %d lines (%s) to topic %s: all acked after %v", len(lines), cli.FormatSize(int64(len(text))), textTopic, time.Since(start).Round(time.Millisecond)); err != nil {
		return err
	}
	var back bytes.Buffer
	if err := readTopic(ctx, d.client, textTopic, func(value []byte) error { back.Write(value); return nil }); err != nil {
		return err
	}
	if !bytes.Equal(back.Bytes(), text) {
		return fmt.Errorf("%w: the text that was read back is another one", smq.ErrCorrupt)
	}
	return d.say("read it back: the same bytes, in the same order")
}

// verify checks what is stored, with no broker.
func (d *demo) verify(ctx context.Context) error {
	st, err := node.OpenStore(ctx, d.store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer st.Close() // only read
	for _, topic := range []smq.Topic{textTopic, numberTopic, floodTopic} {
		v, err := catalog.Verify(ctx, st, topic, func(seglog.Report) {})
		if err != nil {
			return err
		}
		if len(v.Problems) > 0 {
			return fmt.Errorf("topic %s: %w: %s", topic, smq.ErrCorrupt, v.Problems[0])
		}
		if err := d.say("verified what is stored of topic %s: %s in %s, checksums, chain of hashes and offsets are right", topic, smq.Count(v.Messages, "message"), smq.Count(v.Segments, "segment")); err != nil {
			return err
		}
	}
	return nil
}

// stop ends what runs in good order, or at once when ctx ends.
func (d *demo) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	if d.client != nil {
		_ = d.client.Close() // nothing is under way
	}
	var failed error
	for _, b := range d.brokers {
		failed = errors.Join(failed, b.Stop(ctx))
	}
	if d.master != nil {
		failed = errors.Join(failed, d.master.Stop(ctx))
	}
	return failed
}

// remove ends at once whatever still runs, and removes the directory. A second
// call, also at the same time, returns when that is done.
func (d *demo) remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.removed {
		return nil
	}
	d.removed = true
	for _, c := range d.children {
		c.Kill()
	}
	return os.RemoveAll(d.dir)
}
