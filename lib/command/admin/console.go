package admin

import (
	"context"
	"errors"
	"log/slog"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// console is the cluster as the console needs it. It connects while the console
// is on the screen already: what is asked of it waits for that, and fails with it.
type console struct {
	cancel context.CancelFunc
	ready  chan struct{} // closed when the others are set
	c      *client.Client
	err    error // why there is no c
}

// startConsole begins to connect.
func startConsole(ctx context.Context, dial func(context.Context) (*client.Client, error)) *console {
	ctx, cancel := context.WithCancel(ctx)
	c := &console{cancel: cancel, ready: make(chan struct{})}
	go func() {
		defer close(c.ready)
		c.c, c.err = dial(ctx)
	}()
	return c
}

// dialConsole connects within --timeout, and looks whether there is the topic, if
// one is named. What else is wrong with it the console shows.
func dialConsole(ctx context.Context, e *cli.Env, topic string) (*client.Client, error) {
	c, err := connect.Dial(ctx, e, slog.New(slog.DiscardHandler))
	if err != nil || topic == "" {
		return c, err
	}
	t, err := smq.ParseTopic(topic)
	if err == nil {
		ctx, cancel := e.WithTimeout(ctx)
		defer cancel()
		_, err = c.DescribeTopic(ctx, t)
	}
	if errors.Is(err, smq.ErrNotFound) {
		err = connect.NoTopic(ctx, c, err, t)
		_ = c.Close() // nothing is under way
		return nil, err
	}
	return c, nil
}

// close ends the connection, or the attempt to make it.
func (c *console) close() {
	c.cancel()
	<-c.ready
	if c.c != nil {
		_ = c.c.Close() // nothing is under way
	}
}

// client waits until it is connected.
func (c *console) client(ctx context.Context) (*client.Client, error) {
	select {
	case <-c.ready:
		return c.c, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *console) Watch(ctx context.Context, req *smqpb.WatchRequest, update func(*smqpb.WatchUpdate), lost func(error)) error {
	cl, err := c.client(ctx)
	if err != nil {
		return err
	}
	return cl.Watch(ctx, req, update, lost)
}

func (c *console) Changes(ctx context.Context, topic string, after uint64) ([]*smqpb.LayoutEvent, error) {
	cl, err := c.client(ctx)
	if err != nil {
		return nil, err
	}
	var events []*smqpb.LayoutEvent
	before := make(map[smq.SegmentID]bool)
	// With the version before the first one, which tells what that opened.
	req := &smqpb.ListVersionsRequest{Topic: topic, After: max(after, 1) - 1}
	for more := true; more; {
		var resp *smqpb.ListVersionsResponse
		err := cl.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) (err error) {
			resp, err = l.ListVersions(ctx, req)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, v := range resp.GetVersions() {
			if v.GetVersion() > after {
				events = append(events, eventOf(resp.GetConfig(), v, opened(v, before)))
			}
			clear(before)
			for _, s := range v.GetSegments() {
				before[smq.SegmentID(s.GetId())] = true
			}
			req.After = v.GetVersion()
		}
		more = resp.GetMore() && len(resp.GetVersions()) > 0
	}
	return events, nil
}

func (c *console) SplitSegment(ctx context.Context, topic string, segment uint64) error {
	cl, err := c.client(ctx)
	if err != nil {
		return err
	}
	t, err := smq.ParseTopic(topic)
	if err == nil {
		_, err = cl.SplitSegment(ctx, t, segment, 0)
	}
	return err
}

func (c *console) MergeSegments(ctx context.Context, topic string, segments []uint64) error {
	cl, err := c.client(ctx)
	if err != nil {
		return err
	}
	t, err := smq.ParseTopic(topic)
	if err == nil {
		_, err = cl.MergeSegments(ctx, t, segments)
	}
	return err
}

func (c *console) DrainBroker(ctx context.Context, broker string) error {
	cl, err := c.client(ctx)
	if err != nil {
		return err
	}
	return cl.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		_, err := l.DrainBroker(ctx, &smqpb.DrainBrokerRequest{Broker: broker})
		return err
	})
}
