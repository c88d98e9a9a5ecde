package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Watch asks the leading broker for what req names and passes on what it sends,
// update by update, until ctx ends or an error comes that another try would not
// mend (a leader too old to know the call is an smq.ErrInvalid); it returns that
// error.
//
// It survives the leader: whenever the stream ends, lost is told why, once, the
// leader is looked up again, and what follows is a new snapshot, which begins
// with an update that says reset. Events are not in snapshots: those that came
// to pass meanwhile follow, as far as the next leader finds them, and none comes
// twice. Only the first stream asks for events since req.EventsSinceMs.
//
// update and lost are called by one goroutine, the caller's. While update does
// not return nothing more is received, and the leader merges what changes. It
// may keep and change what it gets.
func (c *Client) Watch(ctx context.Context, req *smqpb.WatchRequest, update func(*smqpb.WatchUpdate), lost func(error)) error {
	w := &watch{req: proto.CloneOf(req), update: update, lost: lost}
	for {
		heard := false
		err := c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
			var err error
			heard, err = w.follow(ctx, l)
			if heard {
				return nil // so that the search for the leader begins afresh
			}
			return err
		})
		switch {
		case err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
			return fmt.Errorf("watch: %w", err) // which says what was in the way until then
		case ctx.Err() != nil:
			return fmt.Errorf("watch: %w", context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("watch: %w", err)
		case w.final != nil:
			return fmt.Errorf("watch: %w", w.final)
		}
		// A leader that ends every stream at once is not asked in a tight loop.
		select {
		case <-time.After(minBackoff):
		case <-ctx.Done():
		}
	}
}

// Snapshot asks once for what req names and returns it in one update. It goes on
// trying until ctx ends.
func (c *Client) Snapshot(ctx context.Context, req *smqpb.WatchRequest) (*smqpb.WatchUpdate, error) {
	whole := &smqpb.WatchUpdate{}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var why error
	err := c.Watch(ctx, req, func(u *smqpb.WatchUpdate) {
		if whole.GetComplete() {
			return
		}
		if u.GetReset_() {
			events := whole.GetEvents()
			whole = &smqpb.WatchUpdate{Events: events}
		}
		proto.Merge(whole, u)
		if whole.GetComplete() {
			stop(nil)
		}
	}, func(err error) { why = err })
	if whole.GetComplete() {
		return whole, nil
	}
	if why != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: %w", err, why)
	}
	return nil, err
}

// watch is one caller's watch over the streams that it takes.
type watch struct {
	req    *smqpb.WatchRequest
	update func(*smqpb.WatchUpdate)
	lost   func(error)

	told  bool  // that the present outage is one
	final error // no other stream would do better
	seen  seenEvents
}

// follow receives one stream to its end. heard tells whether it gave anything:
// then the reason of its end has been told.
func (w *watch) follow(ctx context.Context, l smqpb.LeaderClient) (heard bool, err error) {
	req := proto.CloneOf(w.req)
	req.EventsSinceMs = w.seen.since(req.GetEventsSinceMs())
	stream, err := l.Watch(ctx, req)
	for err == nil {
		var u *smqpb.WatchUpdate
		if u, err = stream.Recv(); err != nil {
			break
		}
		heard, w.told = true, false
		w.seen.filter(u)
		w.update(u)
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the leading broker ended the watch", smq.ErrUnavailable)
	}
	if ctx.Err() != nil {
		return heard, err
	}
	if !lostLeader(err) {
		w.final = err
		return heard, err
	}
	if !w.told {
		w.told = true
		w.lost(err)
	}
	return heard, err
}

// lostLeader reports whether another leader, or the same one later, can do
// better.
func lostLeader(err error) bool {
	return errors.Is(err, smq.ErrNotLeader) || errors.Is(err, smq.ErrUnavailable) || errors.Is(err, smq.ErrDraining)
}

// eventMargin is by how much the clocks of two leaders may differ without an
// event being lost between them.
const eventMargin = time.Minute

// seenEvents remembers how far each topic's events have been passed on. A
// topic's versions rise, whoever leads.
type seenEvents struct {
	startMS  int64 // the leader's clock when the watch began
	latestMS int64 // the leaders' clock as heard last
	topics   map[string]seenTopic
}

type seenTopic struct {
	version uint64
	deleted bool
	ms      int64
}

// since is from when on to ask for events, given what the caller asked for.
func (s *seenEvents) since(asked int64) int64 {
	if s.latestMS == 0 {
		return asked
	}
	if asked == 0 {
		asked = s.startMS
	}
	return max(asked, s.latestMS-eventMargin.Milliseconds())
}

// filter takes the events out of u that have been passed on before and remembers
// the others.
func (s *seenEvents) filter(u *smqpb.WatchUpdate) {
	if s.startMS == 0 {
		s.startMS = u.GetTimeMs()
	}
	s.latestMS = max(s.latestMS, u.GetTimeMs())
	kept := u.Events[:0]
	for _, e := range u.GetEvents() {
		if s.isNew(e) {
			kept = append(kept, e)
		}
	}
	u.Events = kept
	if u.GetReset_() {
		s.forget()
	}
}

// isNew reports whether e has not been passed on, and takes note of it.
func (s *seenEvents) isNew(e *smqpb.LayoutEvent) bool {
	if s.topics == nil {
		s.topics = make(map[string]seenTopic)
	}
	t := s.topics[e.GetTopicId()]
	if t.deleted || !e.GetDeleted() && e.GetVersion() <= t.version {
		return false
	}
	s.topics[e.GetTopicId()] = seenTopic{version: max(t.version, e.GetVersion()), deleted: e.GetDeleted(), ms: e.GetCreatedMs()}
	return true
}

// forget drops deleted topics of which no leader tells again, since it is not
// asked for events from so long ago.
func (s *seenEvents) forget() {
	for id, t := range s.topics {
		if t.deleted && t.ms < s.latestMS-2*eventMargin.Milliseconds() {
			delete(s.topics, id)
		}
	}
}
