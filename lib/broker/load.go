package broker

import (
	"context"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// loads is what the broker as a whole tells the cluster of its load.
type loads struct {
	mu   sync.Mutex
	load *smqpb.Load
}

func (l *loads) get() *smqpb.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load
}

// sampleLoop samples the loads until ctx ends.
func (b *Broker) sampleLoop(ctx context.Context) {
	for background.Wait(ctx, sampleEvery) == nil {
		b.sample(time.Now())
		select {
		case b.sampled <- struct{}{}:
		default: // the last report is still under way
		}
	}
}

func (b *Broker) sample(now time.Time) {
	total := &smqpb.Load{MemoryLimit: uint64(b.cfg.Memory)}
	var oldest time.Duration
	own := b.segments()
	own.expire(now)
	for _, s := range own.snapshot() {
		stats := s.log.Stats()
		if stats.State == "open" {
			s.rates.sample(s.log, now) // else it keeps its last rates, for its successors
		}
		rate := s.rates.now()
		total.Segments++
		total.MessagesPerSecond += rate.messages
		total.BytesPerSecond += rate.bytes
		total.MemoryUsed += uint64(stats.Buffered)
		oldest = max(oldest, stats.OldestUnsent)
		if stats.OldestUnsent > b.cfg.StuckAfter {
			own.giveUp(s)
		}
	}
	b.metrics.segments.Set(float64(total.Segments))
	b.metrics.offeredMessages.Set(total.MessagesPerSecond)
	b.metrics.offeredBytes.Set(total.BytesPerSecond)
	b.metrics.flushLag.Set(oldest.Seconds())
	b.loads.mu.Lock()
	defer b.loads.mu.Unlock()
	b.loads.load = total
}

// status describes the segment.
func (s *segment) status() *smqpb.SegmentStatus {
	stats, i := s.log.Stats(), s.log.Ident()
	rate := s.rates.now()
	storeError := ""
	if err := troubleOf(stats); err != nil {
		storeError = err.Error()
		if s.log.Err() == nil {
			stats.State = "stuck"
		}
	}
	return &smqpb.SegmentStatus{
		Topic: i.Topic.String(), TopicId: string(i.TopicID), Segment: uint64(i.Segment), Lo: i.Range.Lo, Hi: i.Range.Hi,
		State: stats.State, Chunks: stats.Chunks, Bytes: stats.Bytes, Messages: stats.Messages, Buffered: uint64(stats.Buffered),
		MessagesPerSecond: rate.messages, BytesPerSecond: rate.bytes,
		OldestUnstoredMs: uint64(stats.OldestUnsent.Milliseconds()), StoreError: storeError,
	}
}
