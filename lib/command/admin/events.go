package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newEvents(e *cli.Env) *cobra.Command {
	var follow bool
	var since, namespace string
	cmd := &cobra.Command{
		Use:   "events [TOPIC…]",
		Short: "Show changes of topics' layouts as they happen",
		Long: `Show changes of the layouts of the TOPICs, or of all topics, a line each: splits,
merges, failovers and all others. Of what came to pass before the present leading broker
began, these are the latest 1,000, and none of topics that are deleted since; a topic's
whole history is in smq-admin topic history.

With -f this goes on, also when another broker takes the lead, until it is interrupted;
it begins with what --since asks for, or with what comes next. Without -f it shows what
there is, or what --since asks for, and ends.

-o json prints a line of JSON for each.`,
		Example: `  smq-admin events -f
  smq-admin events --since 1h orders
  smq-admin events -f -o json | jq -c 'select(.cause == "failover")'`,
		Args: cli.Args("[TOPIC…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topics, err := parseTopics(args)
			if err != nil {
				return err
			}
			if err := checkNamespace(namespace); err != nil {
				return err
			}
			req := &smqpb.WatchRequest{Events: true, Namespace: namespace}
			if req.EventsSinceMs, err = sinceMS(since, follow, time.Now()); err != nil {
				return err
			}
			p := &eventPrinter{e: e}
			for _, t := range topics {
				p.topics = append(p.topics, t.String())
			}
			return withClientUntimed(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				if follow {
					ctx, stop := e.WatchOutput(ctx)
					defer stop()
					warnOfMissing(ctx, e, c, topics)
					if err := p.follow(ctx, c, req); context.Cause(ctx) != cli.ErrOutputClosed {
						return err
					}
					return cli.ErrOutputClosed // whatever failed for that reason
				}
				ctx, cancel := e.WithTimeout(ctx)
				defer cancel()
				whole, err := c.Snapshot(ctx, req)
				if err != nil {
					return err
				}
				if err := p.print(whole.GetEvents()); err != nil {
					return err
				}
				return checkTopics(ctx, c, topics, whole.GetEvents())
			})
		},
		ValidArgsFunction: connect.CompleteTopics(e),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	cmd.Flags().StringVar(&since, "since", "", "begin with `DURATION` ago (1h) or at a time (2026-01-31T15:04)")
	cmd.Flags().StringVar(&namespace, "namespace", "", "only topics of this `NAMESPACE`")
	connect.CompleteFlag(cmd, "namespace", connect.CompleteNamespaces(e))
	e.AddOutputFlag(cmd)
	return cmd
}

// warnOfMissing says which topics are not there: their names may be mistyped, or they
// are to be made.
func warnOfMissing(ctx context.Context, e *cli.Env, c *client.Client, topics []smq.Topic) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	for _, topic := range topics {
		if _, err := c.DescribeTopic(ctx, topic); errors.Is(err, smq.ErrNotFound) {
			e.Warnf("topic %s: %v%s; waiting for it", topic, smq.ErrNotFound, connect.Meant(ctx, c, topic))
		}
	}
}

// checkTopics looks for the topics of which there are no events: a name may be
// mistyped.
func checkTopics(ctx context.Context, c *client.Client, topics []smq.Topic, events []*smqpb.LayoutEvent) error {
	for _, topic := range topics {
		if slices.ContainsFunc(events, func(e *smqpb.LayoutEvent) bool { return e.GetTopic() == topic.String() }) {
			continue
		}
		if _, err := c.DescribeTopic(ctx, topic); err != nil {
			return connect.NoTopic(ctx, c, err, topic)
		}
	}
	return nil
}

// leastSeconds tells seconds since 1970, of which there are more since 1973, from a
// duration whose unit was forgotten.
const leastSeconds = 1e8

// sinceMS is from when on events are asked for, in ms since 1970; 0: only new
// ones, 1: all that there are.
func sinceMS(text string, follow bool, now time.Time) (int64, error) {
	switch {
	case text == "" && follow:
		return 0, nil
	case text == "":
		return 1, nil
	}
	if d, err := cli.ParseDuration(text); err == nil && d >= 0 {
		return max(now.Add(-d).UnixMilli(), 1), nil
	}
	t, err := cli.ParseTime(text, time.Local)
	if bare, numErr := strconv.ParseFloat(text, 64); err != nil || numErr == nil && bare > 0 && bare < leastSeconds {
		return 0, cli.Usagef("--since %q: write a duration, for instance 90s, 1h30m or 7d, or a time, for instance 2026-01-31T15:04", text)
	}
	return max(t.UnixMilli(), 1), nil
}

// eventPrinter prints the events of some topics; of all of them when none is
// named.
type eventPrinter struct {
	e      *cli.Env
	topics []string
}

// follow prints events until ctx ends or nobody reads them any more.
func (p *eventPrinter) follow(ctx context.Context, c *client.Client, req *smqpb.WatchRequest) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := c.Watch(ctx, req, func(u *smqpb.WatchUpdate) {
		if err := p.print(u.GetEvents()); err != nil {
			stop(err)
		}
	}, func(err error) { p.e.Warnf("the leading broker is gone, looking for the next one: %v", err) })
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (p *eventPrinter) print(events []*smqpb.LayoutEvent) error {
	for _, event := range events {
		if len(p.topics) > 0 && !slices.Contains(p.topics, event.GetTopic()) {
			continue
		}
		if err := p.one(viewEvent(event)); err != nil {
			return err
		}
	}
	return nil
}

func (p *eventPrinter) one(v changeView) error {
	switch p.e.Flags.Output {
	case cli.FormatJSON:
		enc := json.NewEncoder(p.e.Stdout) // which writes a line at once
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	case cli.FormatYAML:
		if _, err := fmt.Fprintln(p.e.Stdout, "---"); err != nil {
			return err
		}
		return eventColumns.One(p.e, v, nil)
	case cli.FormatPlain, cli.FormatName:
		return eventColumns.List(p.e, []changeView{v})
	}
	_, err := fmt.Fprintln(p.e.Stdout, v.line())
	return err
}
