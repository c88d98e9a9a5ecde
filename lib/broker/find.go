package broker

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// finder finds where partitions' messages are, for one request. It looks for a
// newer layout at most once.
type finder struct {
	b     *Broker
	topic *topic
	fresh bool // the layout has been looked for
}

// place is where a partition can be read.
type place struct {
	src seglog.Source
	id  smq.SegmentID
	own *segment // when it is live
}

// elsewhere refuses a partition whose live segment this broker cannot serve.
type elsewhere struct {
	segment smq.SegmentID // the live one, as far as known
	error
}

func (e *elsewhere) Unwrap() error { return e.error }

// live is the partition's live segment, when it is this broker's, and newer
// than the given one. The error is an *elsewhere when it is not.
func (f *finder) live(ctx context.Context, p smq.Partition, newerThan smq.SegmentID) (*segment, error) {
	if err := f.check(p); err != nil {
		return nil, err
	}
	for {
		listed, _ := f.topic.layout().Find(p) // not found: no layout has been seen yet
		s, err := f.open(ctx, listed, newerThan)
		if err == nil {
			return s, nil
		}
		if f.fresh || !errors.Is(err, smq.ErrNotOwner) && !errors.Is(err, smq.ErrSegmentSealed) {
			return nil, &elsewhere{listed.ID, fmt.Errorf("partition %d of topic %v: %w", p, f.topic.Topic, err)}
		}
		f.fresh = true
		if _, err := f.topic.refresh(ctx); err != nil {
			return nil, err
		}
	}
}

// check says whether the topic has the partition.
func (f *finder) check(p smq.Partition) error {
	if p < 0 || p >= f.topic.Partitions {
		return fmt.Errorf("%w partition %d: topic %v has 0 to %d", smq.ErrInvalid, p, f.topic.Topic, f.topic.Partitions-1)
	}
	return nil
}

func (f *finder) open(ctx context.Context, listed layout.Segment, newerThan smq.SegmentID) (*segment, error) {
	own := f.b.segments()
	switch {
	case listed.ID <= newerThan && newerThan > 0:
		return nil, smq.ErrSegmentSealed
	case listed.Owner.Broker != own.self:
		return nil, smq.ErrNotOwner
	}
	return own.get(ctx, f.topic, listed.ID)
}

// find is where the partition's messages from offset on are, behind the
// segment of the given id. The error is an *elsewhere when another broker has
// them.
func (f *finder) find(ctx context.Context, p smq.Partition, offset smq.Offset, behind smq.SegmentID) (place, error) {
	if offset < 0 {
		return place{}, fmt.Errorf("partition %d, offset %d: %w", p, offset, smq.ErrOffsetOutOfRange)
	}
	own, err := f.live(ctx, p, behind)
	var other *elsewhere
	if err != nil && !errors.As(err, &other) {
		return place{}, err
	}
	if own != nil {
		start, end, err := own.log.Offsets(ctx, p)
		switch {
		case err != nil:
			return place{}, err
		case offset > end && !f.fresh:
			// Perhaps the layout is old, and others have gone on behind this segment.
			f.fresh = true
			if _, err := f.topic.refresh(ctx); err != nil {
				return place{}, err
			}
			return f.find(ctx, p, offset, behind)
		case offset > end:
			return place{}, outOfRange(p, offset, end)
		case offset >= start:
			return place{src: own.log, id: own.key.id, own: own}, nil
		}
	}
	past, found, err := f.past(ctx, p, offset)
	switch {
	case err != nil:
		return place{}, err
	case found:
		return past, nil
	case own != nil:
		return place{}, fmt.Errorf("%w topic %v: no segment holds partition %d from offset %d on", smq.ErrCorrupt, f.topic.Topic, p, offset)
	}
	return place{}, other
}

func outOfRange(p smq.Partition, offset, end smq.Offset) error {
	return fmt.Errorf("partition %d, offset %d: %w: it ends at %d", p, offset, smq.ErrOffsetOutOfRange, end)
}

// past is the sealed segment that holds the partition's message at offset; it
// reports false when that lies behind all of them.
func (f *finder) past(ctx context.Context, p smq.Partition, offset smq.Offset) (place, bool, error) {
	chain, err := f.chain(ctx, p)
	if err != nil {
		return place{}, false, err
	}
	var failed error
	i := sort.Search(len(chain), func(i int) bool {
		if failed != nil {
			return true
		}
		_, end, err := f.bounds(ctx, chain[i], p)
		failed = err
		return err != nil || end > offset
	})
	if failed != nil || i == len(chain) {
		return place{}, false, failed
	}
	start, _, err := f.bounds(ctx, chain[i], p)
	if err != nil {
		return place{}, false, err
	}
	if offset < start {
		return place{}, false, fmt.Errorf("partition %d, offset %d: %w: it begins at %d", p, offset, smq.ErrOffsetOutOfRange, start)
	}
	src, err := f.sealed(ctx, chain[i])
	return place{src: src, id: chain[i].Segment}, err == nil, err
}

// chain is the sealed segments that the partition's messages are in.
func (f *finder) chain(ctx context.Context, p smq.Partition) ([]layout.Sealed, error) {
	h, err := f.topic.past(ctx)
	if err != nil {
		return nil, err
	}
	return h.Chain(p), nil
}

func (f *finder) sealed(ctx context.Context, s layout.Sealed) (*seglog.Sealed, error) {
	return f.b.archive.get(ctx, f.topic.Ident(s.Segment, s.Range))
}

// bounds are the partition's offsets in a sealed segment.
func (f *finder) bounds(ctx context.Context, s layout.Sealed, p smq.Partition) (start, end smq.Offset, err error) {
	src, err := f.sealed(ctx, s)
	if err != nil {
		return 0, 0, err
	}
	return src.Offsets(ctx, p)
}
