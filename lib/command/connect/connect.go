// Package connect is the way of the commands to the cluster: connecting within
// --timeout, and completions that ask the cluster.
package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// Dial connects to the masters that --master names, within --timeout. What the
// client has to get around, now and later, is told in lines on standard error,
// unless -q; with -v it goes to logger instead.
func Dial(ctx context.Context, e *cli.Env, logger *slog.Logger) (*client.Client, error) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	if !e.Flags.Verbose {
		logger = slog.New(lines{e: e})
	}
	c, err := client.Connect(ctx, client.Config{Masters: e.Flags.Masters, Logger: logger})
	if errors.Is(err, smq.ErrUnavailable) {
		err = fmt.Errorf("%w; start one (smq-admin up) or name it with --master or SMQ_MASTER", err)
	}
	return c, err
}

// NoTopic says plainly that topic is not there, if that is what err says, which one
// may be meant, and what to do; any other error it returns as it is.
func NoTopic(ctx context.Context, c *client.Client, err error, topic smq.Topic) error {
	if !errors.Is(err, smq.ErrNotFound) {
		return err
	}
	return fmt.Errorf("topic %s: %w%s; smq-admin topic list shows those that there are", topic, smq.ErrNotFound, Meant(ctx, c, topic))
}

// suggestTimeout bounds the search for what may be meant.
const suggestTimeout = time.Second

// Meant is ", did you mean X?" when there is a topic whose name is like that of one
// that is not there, or the same in another namespace. Without a client it is empty.
func Meant(ctx context.Context, c *client.Client, topic smq.Topic) string {
	if c == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	return nearest(topic, topics(ctx, c))
}

func nearest(topic smq.Topic, names []string) string {
	for _, name := range names {
		if t, err := smq.ParseTopic(name); err == nil && t.Name == topic.Name {
			return ", did you mean " + name + "?"
		}
	}
	return cli.DidYouMean(topic.String(), names)
}

// WarnOfPartitions warns when a topic, which was to be created and was there
// already, has another number of partitions than it would have got.
func WarnOfPartitions(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, wanted int32) {
	d, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return // whatever uses the topic will tell
	}
	if n := d.GetConfig().GetPartitions(); n != wanted {
		e.Warnf("topic %s was there already, with %s, not %d", topic, smq.Count(n, "partition"), wanted)
	}
}
