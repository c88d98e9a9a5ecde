package admin

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var floodTopic = smq.Topic{Namespace: smq.DefaultNamespace, Name: "flood"}

// The flood of the demo: messages of so many bytes, of so many keys, so many a
// second, for at most so long; and how long the topic has to fold back.
const (
	floodSize  = 2000
	floodKeys  = 500
	floodRate  = 2000
	floodTime  = 30 * time.Second
	floodAfter = 10 * time.Second // once it has spread
	foldTime   = 2 * time.Minute
)

// floodScaling splits early, so that a small machine can have a flood.
var floodScaling = &smqpb.Scaling{Mode: "auto", SplitBytesPerSecond: 1e6, MaxSegments: 2 * demoBrokers, CoolDownMs: 2000}

// scale lets a flood come over a topic and go, and tells how its segments split
// and merge meanwhile.
func (d *demo) scale(ctx context.Context) error {
	if _, err := d.client.CreateTopic(ctx, floodTopic, client.TopicOptions{Scaling: floodScaling}); err != nil {
		return err
	}
	size := cli.Size(floodSize)
	if err := d.say("a flood comes over topic %s: %s of %v each, where a segment is split above %s", floodTopic,
		smq.MessageRate(floodRate), &size, smq.ByteRate(floodScaling.GetSplitBytesPerSecond())); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	told := make(chan error, 1)
	go func() { told <- d.tellEvents(watching) }()
	n, err := d.flood(ctx)
	if err != nil {
		return err
	}
	if err := d.say("the flood is over after %d messages, all acked", n); err != nil {
		return err
	}
	if err := d.awaitFold(ctx); err != nil {
		return err
	}
	stop()
	if err := <-told; err != nil {
		return err
	}
	return d.checkFlood(ctx, n)
}

// tellEvents says what becomes of the flooded topic's segments, until ctx ends.
func (d *demo) tellEvents(ctx context.Context) error {
	var failed error
	req := &smqpb.WatchRequest{Events: true, EventsSinceMs: d.began.UnixMilli()}
	err := d.client.Watch(ctx, req, func(u *smqpb.WatchUpdate) {
		for _, e := range u.GetEvents() {
			if e.GetTopic() == floodTopic.String() && e.GetVersion() > 2 && failed == nil {
				failed = d.say("  %s", d.describeEvent(e))
			}
		}
	}, func(error) {})
	if ctx.Err() == nil && failed == nil {
		failed = err
	}
	return failed
}

func (d *demo) describeEvent(e *smqpb.LayoutEvent) string {
	var gone, come []string
	for _, s := range e.GetSealed() {
		gone = append(gone, strconv.FormatUint(s.GetId(), 10))
	}
	for _, s := range e.GetOpened() {
		come = append(come, fmt.Sprintf("%d (partitions %d to %d, %s)", s.GetId(), s.GetLo(), s.GetHi()-1, d.nameOf(s.GetOwnerAddress())))
	}
	segments, them := "segment", "it"
	if len(gone) > 1 {
		segments, them = "segments", "them"
	}
	return fmt.Sprintf("%s: %s %s became %s; publishers to %s waited %v", e.GetCause(), segments, strings.Join(gone, ", "), strings.Join(come, ", "),
		them, time.Duration(e.GetPauseMs())*time.Millisecond)
}

// flood publishes until the topic has been spread over several brokers for a
// while, and returns how many messages it took.
func (d *demo) flood(ctx context.Context) (n int, err error) {
	var a acks
	p, err := d.client.NewPublisher(ctx, floodTopic, client.PublisherOptions{Results: a.results})
	if err != nil {
		return 0, err
	}
	limit := rate.NewLimiter(floodRate, floodRate/100)
	end := time.Now().Add(floodTime)
	for spread := false; time.Now().Before(end); n++ {
		if n%floodRate == 0 && !spread {
			if spread, err = d.isSpread(ctx); err != nil {
				return 0, err
			}
			if spread {
				end = time.Now().Add(floodAfter)
			}
		}
		if err := limit.Wait(ctx); err != nil {
			return 0, err
		}
		if err := p.Publish(ctx, floodMessage(n)); err != nil {
			return 0, err
		}
	}
	if err := p.Close(ctx); err != nil {
		return 0, err
	}
	_, err = a.longestPause()
	return n, err
}

// floodMessage is number n, with a key, made larger.
func floodMessage(n int) *client.Message {
	value := append(strconv.AppendInt(nil, int64(n), 10), ' ')
	return &client.Message{
		Key:   strconv.AppendInt(nil, int64(n%floodKeys), 10),
		Value: append(value, bytes.Repeat([]byte{'.'}, floodSize-len(value))...), Partition: client.AnyPartition,
	}
}

// isSpread reports whether more than one broker owns segments of the topic.
func (d *demo) isSpread(ctx context.Context) (bool, error) {
	t, err := d.client.DescribeTopic(ctx, floodTopic)
	owners := make(map[string]bool)
	for _, s := range t.GetLayout().GetSegments() {
		owners[s.GetOwner()] = true
	}
	return len(owners) > 1, err
}

// awaitFold waits until the topic is one segment again.
func (d *demo) awaitFold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, foldTime)
	defer cancel()
	for {
		t, err := d.client.DescribeTopic(ctx, floodTopic)
		if err != nil {
			return err
		}
		if len(t.GetLayout().GetSegments()) == 1 {
			return nil
		}
		if background.Wait(ctx, time.Second/4) != nil {
			return fmt.Errorf("%w: topic %s is not one segment again after %v", smq.ErrTimeout, floodTopic, foldTime)
		}
	}
}

// checkFlood reads everything back: all of it, each once, in order for every key.
func (d *demo) checkFlood(ctx context.Context, n int) error {
	last := make(map[int]int) // number of each key's last message
	count := 0
	err := readTopic(ctx, d.client, floodTopic, func(value []byte) error {
		text, _, _ := strings.Cut(string(value), " ")
		number, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%w: %q came back", smq.ErrCorrupt, text)
		}
		key := number % floodKeys
		due := key
		if before, any := last[key]; any {
			due = before + floodKeys
		}
		if number != due {
			return fmt.Errorf("%w: message %d of key %d came back where %d was due", smq.ErrCorrupt, number, key, due)
		}
		last[key] = number
		count++
		return nil
	})
	if err != nil {
		return err
	}
	if count != n {
		return fmt.Errorf("%w: %s came back of %d", smq.ErrCorrupt, smq.Count(count, "message"), n)
	}
	return d.say("read the flood back: all %d messages, each once, in order for every key", n)
}
