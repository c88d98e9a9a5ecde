package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// lookupTimeout bounds one question to the leading broker, after which
	// the owner known so far is tried again.
	lookupTimeout = 3 * time.Second
	// maxLookups bounds the questions under way at a time.
	maxLookups = 4
	// lookupPartitions bounds the partitions that a question names.
	lookupPartitions = 1000
)

// Bounds of the wait before a route is tried again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// route is the way to a segment of the layout.
type route struct {
	segment uint64
	lo, hi  int32
	addr    string // of the owner; empty while the segment has none

	dead     bool          // the layout has moved on
	blocked  bool          // nothing is sent until a lookup has been answered
	looking  bool          // a lookup has been asked for
	cooling  bool          // the router's list of cooling routes has it
	failures int           // since the last success
	retryAt  time.Duration // nothing is sent before
	lastErr  error
	parked   []int32 // partitions that wait for the route to open
}

// router knows where a topic's partitions are served and finds out again when
// they no longer are. Its user, a publisher or subscriber, guards it with its
// own lock, which is held at every call and during the callbacks.
type router struct {
	mu      sync.Locker // the user's
	topic   *smqpb.TopicConfig
	logger  *slog.Logger
	metrics *metrics
	now     clock
	lookup  func(context.Context, *smqpb.LookupRequest) (*smqpb.LookupResponse, error)
	spawn   func(func(context.Context)) // starts a goroutine of the user's
	arm     func(at time.Duration)      // asks for a call of tick

	resume func(partition int32) // a parked partition may go on
	moved  func(*route)          // the layout no longer has the route
	failed func(error)           // the topic is gone

	version uint64
	routes  []*route // by range
	nowhere *route   // for partitions that a layout leaves out
	waiting []*route // for a lookup
	lookers int      // goroutines that look up
	cooling []*route

	suspects map[string]time.Duration // addresses of owners that are quiet, and since when that is known
	watching bool                     // a goroutine watches the layout because of them
}

// find is the route to a partition.
func (r *router) find(partition int32) *route {
	i := sort.Search(len(r.routes), func(i int) bool { return r.routes[i].hi > partition })
	if i < len(r.routes) && r.routes[i].lo <= partition {
		return r.routes[i]
	}
	if r.nowhere == nil || r.nowhere.dead {
		r.nowhere = &route{}
	}
	return r.nowhere
}

// open reports whether the route may be used now.
func (r *router) open(rt *route) bool {
	if rt.retryAt != 0 && r.now() >= rt.retryAt {
		rt.retryAt = 0
	}
	return !rt.dead && !rt.blocked && rt.addr != "" && rt.retryAt == 0
}

// park remembers a partition until the route, which is not open, opens or is
// replaced; then resume is called. A partition is parked once at a time.
func (r *router) park(rt *route, partition int32) {
	rt.parked = append(rt.parked, partition)
	if rt.retryAt == 0 {
		r.ask(rt)
	}
}

// works notes that the route's owner serves it.
func (r *router) works(rt *route) { rt.failures, rt.lastErr = 0, nil }

// doubt asks for the layout without closing the route: its owner was well a
// moment ago, and may only have dropped a connection.
func (r *router) doubt(rt *route, err error) {
	if !rt.dead {
		rt.lastErr = err
		r.ask(rt)
	}
}

// block closes the route until the layout has been asked for.
func (r *router) block(rt *route, err error) {
	if !rt.dead {
		rt.lastErr, rt.blocked = err, true
		r.ask(rt)
	}
}

// cool closes the route for a while, longer with every failure in a row.
func (r *router) cool(rt *route, err error) {
	if err != nil {
		rt.lastErr = err
	}
	if rt.dead || rt.retryAt != 0 && r.now() < rt.retryAt {
		return
	}
	backoff := min(minBackoff<<min(rt.failures, 10), maxBackoff)
	rt.failures++
	rt.retryAt = r.now() + backoff/2 + rand.N(backoff/2)
	if !rt.cooling {
		rt.cooling = true
		r.cooling = append(r.cooling, rt)
	}
	r.arm(rt.retryAt)
}

// tick opens the routes that have cooled down. It returns when the next one
// will have; 0: none is cooling.
func (r *router) tick(now time.Duration) (next time.Duration) {
	cooling := r.cooling
	r.cooling = nil
	for _, rt := range cooling {
		if !rt.dead && rt.retryAt > now {
			r.cooling = append(r.cooling, rt)
			if next == 0 || rt.retryAt < next {
				next = rt.retryAt
			}
			continue
		}
		rt.cooling, rt.retryAt = false, 0
		r.release(rt)
	}
	return next
}

// release lets what waits for the route go on, or wait again.
func (r *router) release(rt *route) {
	parked := rt.parked
	rt.parked = nil
	for _, partition := range parked {
		r.resume(partition)
	}
}

// ask has the layout looked up because of the route.
func (r *router) ask(rt *route) {
	if rt.looking {
		return
	}
	rt.looking = true
	r.waiting = append(r.waiting, rt)
	if r.lookers < maxLookups {
		r.lookers++
		r.spawn(r.lookUp)
	}
}

// lookUp is the goroutine that asks, for one route after the other.
func (r *router) lookUp(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.waiting) > 0 && r.waiting[0].dead {
			r.waiting = r.waiting[1:]
		}
		if len(r.waiting) == 0 || ctx.Err() != nil {
			r.lookers--
			return
		}
		rt := r.waiting[0]
		r.waiting = r.waiting[1:]
		req := r.request(rt)
		r.mu.Unlock()
		resp, err := r.askOnce(ctx, req)
		r.mu.Lock()
		r.answered(rt, resp, err)
	}
}

func (r *router) request(rt *route) *smqpb.LookupRequest {
	req := &smqpb.LookupRequest{Topic: r.topic.GetTopic(), TopicId: r.topic.GetTopicId(), Assign: true}
	if rt.addr != "" {
		req.StaleSegment = rt.segment
	}
	req.Partitions = slices.Clone(rt.parked[:min(len(rt.parked), lookupPartitions)])
	return req
}

func (r *router) askOnce(ctx context.Context, req *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return r.lookup(ctx, req)
}

// learn takes in what a lookup has found out.
func (r *router) learn(resp *smqpb.LookupResponse, err error) {
	switch {
	case errors.Is(err, smq.ErrNotFound):
		r.metrics.lookups.WithLabelValues(lookupOK).Inc()
		r.failed(err)
	case err != nil:
		r.metrics.lookups.WithLabelValues(lookupFailed).Inc()
		r.logger.Debug("cannot look up the owners of the topic's segments", "error", err)
	default:
		r.metrics.lookups.WithLabelValues(lookupOK).Inc()
		r.apply(resp.GetLayout())
	}
}

// answered takes in what a lookup because of the route has found out.
func (r *router) answered(rt *route, resp *smqpb.LookupResponse, err error) {
	rt.looking = false
	r.learn(resp, err)
	if errors.Is(err, smq.ErrNotFound) {
		return
	}
	if err != nil && rt.lastErr == nil {
		rt.lastErr = err
	}
	if !rt.dead && (rt.blocked || rt.addr == "") {
		// The leader knows no better, or could not be asked: the owner as it
		// is known is tried again, after a while.
		rt.blocked = false
		r.cool(rt, nil)
		if rt.addr == "" && rt.lastErr == nil {
			rt.lastErr = smq.ErrUnavailable
		}
	}
}

// apply takes over a layout unless it is known or older than what is.
func (r *router) apply(layout *smqpb.Layout) {
	if layout.GetVersion() <= r.version {
		return
	}
	r.version = layout.GetVersion()
	kept := make(map[uint64]*route, len(r.routes))
	for _, rt := range r.routes {
		kept[rt.segment] = rt
	}
	routes := make([]*route, 0, len(layout.GetSegments()))
	for _, s := range layout.GetSegments() {
		rt := kept[s.GetId()]
		if rt == nil || rt.addr != s.GetOwnerAddress() || rt.lo != s.GetLo() || rt.hi != s.GetHi() {
			rt = &route{segment: s.GetId(), lo: s.GetLo(), hi: s.GetHi(), addr: s.GetOwnerAddress()}
		} else {
			delete(kept, s.GetId())
		}
		routes = append(routes, rt)
	}
	slices.SortFunc(routes, func(a, b *route) int { return cmp.Compare(a.lo, b.lo) })
	old := r.routes
	r.routes = routes
	for _, rt := range old {
		if kept[rt.segment] == rt {
			r.retire(rt)
		}
	}
	if r.nowhere != nil {
		r.retire(r.nowhere)
	}
}

// retire ends a route that the layout no longer has.
func (r *router) retire(rt *route) {
	rt.dead = true
	r.moved(rt)
	r.release(rt)
}

// serves reports whether a broker owns any segment of the topic, as far as known.
func (r *router) serves(addr string) bool {
	return slices.ContainsFunc(r.routes, func(rt *route) bool { return rt.addr == addr })
}
