//go:build unix

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// BenchmarkTopics has a cluster of three brokers hold many topics of one segment
// each (SMQ_E2E_TOPICS, else 1,000), looks at them, and kills the leader. It
// reports how long administrators wait for each.
func BenchmarkTopics(b *testing.B) {
	n := 1000
	if text := os.Getenv("SMQ_E2E_TOPICS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		benchmarkTopics(b, n)
	}
	b.ReportMetric(0, "ns/op")
}

func benchmarkTopics(b *testing.B, n int) {
	c := newCluster(b, newStore(b), 3)
	took := func(what string, f func()) {
		b.Helper()
		begun := time.Now()
		f()
		b.ReportMetric(time.Since(begun).Seconds(), "s-"+what)
	}
	took("fill", func() { c.fillTopics(n) })
	took("list", func() {
		if got := strings.Count(c.mustAdmin("topic", "list", "-o", "name").stdout, "\n"); got != n {
			b.Errorf("%d topics are listed", got)
		}
	})
	took("top", func() { c.mustAdmin("top", "--once") })
	leader := c.leader()
	leader.kill()
	took("next-leader", func() { c.mustAdmin("topic", "create", "after", "--timeout", "1m") })
	took("failed-over", func() {
		await(b, "no segment belongs to the dead", func() error {
			got := c.admin("segment", "list", "-o", "plain")
			if got.code != 0 || strings.Contains(got.stdout, leader.addrs.GRPC) {
				return fmt.Errorf("exit code %d", got.code)
			}
			return nil
		})
	})
}

// fillTopics creates topics and publishes a message to each.
func (c *cluster) fillTopics(n int) {
	c.t.Helper()
	ctx := c.t.Context()
	cl, err := client.Connect(ctx, client.Config{Masters: []string{c.masters[0].addrs.GRPC}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close() // nothing is under way
	var all errgroup.Group
	all.SetLimit(64)
	for i := range n {
		all.Go(func() error {
			topic := smq.Topic{Namespace: smq.DefaultNamespace, Name: fmt.Sprintf("topic-%d", i)}
			if _, err := cl.CreateTopic(ctx, topic, client.TopicOptions{}); err != nil {
				return err
			}
			p, err := cl.NewPublisher(ctx, topic, client.PublisherOptions{})
			if err != nil {
				return err
			}
			if err := p.Publish(ctx, &client.Message{Value: []byte("one"), Partition: client.AnyPartition}); err != nil {
				return err
			}
			return p.Close(ctx)
		})
	}
	if err := all.Wait(); err != nil {
		c.t.Fatal(err)
	}
}
