package leader

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// watchEvery is how often a watcher is told of other loads.
	watchEvery = 500 * time.Millisecond
	// watchPause is the least time between two looks for what has changed.
	watchPause = 50 * time.Millisecond
	// watchSign is how often a watcher is told something, if only that this leader
	// lives.
	watchSign = 2 * time.Second
	// watchPage bounds the topics, and the events, of one update.
	watchPage = 1000
	// sweepWait is how long a snapshot of topics waits to be called complete for a new
	// leader to have looked at all topics.
	sweepWait = 5 * time.Second
)

// Watch sends a snapshot of what is asked for and then what changes of it, until
// the caller has had enough or this broker leads no more. A caller that is slow
// is told less often, of the newest state, and in the end misses events.
func (l *Leader) Watch(req *smqpb.WatchRequest, stream grpc.ServerStreamingServer[smqpb.WatchUpdate]) error {
	if err := l.leading(); err != nil {
		return err
	}
	w, err := l.newWatcher(req, stream)
	if err != nil {
		return err
	}
	return w.run(stream.Context())
}

// watcher is one caller of Watch. It belongs to that call's goroutine.
type watcher struct {
	l      *Leader
	req    *smqpb.WatchRequest
	stream grpc.ServerStreamingServer[smqpb.WatchUpdate]
	topic  smq.Topic // whose details are asked for
	begun  time.Time

	// What has been sent.
	rev      uint64            // everything up to it
	events   uint64            // of all events
	begin    uint64            // how many there were when it came
	early    <-chan past       // brings what was before; nil: it has come, or is not asked for
	before   *past             // has come, and is not sent
	told     map[string]uint64 // by topic id: the newest version of it
	started  bool              // a snapshot has been begun
	complete bool              // and called complete
	detail   string            // id of the topic whose details were sent, or missing with the damage; empty: none
	damaged  map[smq.Topic]bool
	cluster  *smqpb.ClusterInfo
	sent     time.Time
}

// missing stands in the place of a topic's id.
const missing = "missing"

func (l *Leader) newWatcher(req *smqpb.WatchRequest, stream grpc.ServerStreamingServer[smqpb.WatchUpdate]) (*watcher, error) {
	w := &watcher{l: l, req: req, stream: stream, begun: time.Now(), told: make(map[string]uint64)}
	var err error
	if ns := req.GetNamespace(); ns != "" {
		if _, err = smq.ParseTopic(ns + "/x"); err != nil {
			return nil, fmt.Errorf("namespace %q: %w", ns, err)
		}
	}
	if name := req.GetTopic(); name != "" {
		if w.topic, err = smq.ParseTopic(name); err != nil {
			return nil, fmt.Errorf("topic %q: %w", name, err)
		}
	}
	_, w.begin = l.hub.since(0)
	if req.GetEventsSinceMs() == 0 || !req.GetEvents() {
		w.events = w.begin
	}
	return w, nil
}

func (w *watcher) run(ctx context.Context) error {
	if w.req.GetTopic() != "" {
		// Perhaps this leader has not met it yet. What does not load is missing.
		_, _ = w.l.topic(ctx, w.topic, "")
	}
	if w.req.GetEvents() && w.req.GetEventsSinceMs() > 0 {
		early := make(chan past, 1)
		go func() { early <- w.past(ctx) }()
		select { // mostly it is there at once, and the snapshot is whole
		case p := <-early:
			w.before = &p
		case <-time.After(watchPause):
			w.early = early
		}
	}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		changed, err := w.update(ctx)
		if err == nil {
			err = background.Wait(ctx, watchPause)
		}
		if err != nil {
			return err
		}
		select {
		case p := <-w.early:
			w.early, w.before = nil, &p
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// update sends what has changed, if anything has, and returns what is closed at
// the next change.
func (w *watcher) update(ctx context.Context) (changed <-chan struct{}, err error) {
	rev, changed, over := w.l.hub.now()
	if over || w.l.leading() != nil {
		return nil, &rpc.NotLeaderError{}
	}
	events, count := w.l.hub.since(w.events)
	out := &smqpb.WatchUpdate{}
	if !w.started || count > w.events+uint64(len(events)) {
		// In the second case it may have missed that topics were deleted.
		w.started, w.complete, w.rev, w.detail, w.cluster = true, false, 0, "", nil
		out.Reset_ = true
	}
	w.addRemoved(out, events)
	count = w.addEvents(out, events, count)
	w.addTopics(out, rev)
	w.addDetail(out, rev)
	w.addCluster(ctx, out)
	w.rev, w.events = rev, count
	if !w.complete && w.early == nil && (!w.req.GetTopics() || w.l.swept.Load() || time.Since(w.begun) >= sweepWait) {
		w.complete, out.Complete = true, true
	}
	return changed, w.send(out)
}

// asksFor reports whether the namespace is one that is asked for.
func (w *watcher) asksFor(namespace string) bool {
	return w.req.GetNamespace() == "" || w.req.GetNamespace() == namespace
}

// wanted are those of the events, the latest of count, that are asked for. Whatever
// comes to pass while it watches is, also where the caller's clock, or that of an
// earlier leader, is ahead of this one's.
func (w *watcher) wanted(events []*smqpb.LayoutEvent, count uint64) []*smqpb.LayoutEvent {
	var wanted []*smqpb.LayoutEvent
	for i, e := range events {
		present := count-uint64(len(events)-i) >= w.begin
		name, err := smq.ParseTopic(e.GetTopic())
		if err == nil && w.asksFor(name.Namespace) && (present || e.GetCreatedMs() >= w.req.GetEventsSinceMs()) {
			wanted = append(wanted, e)
		}
	}
	return wanted
}

// addEvents adds what has happened to layouts: after what was before, if that is
// asked for. events are the latest of count; it returns how many there have been.
func (w *watcher) addEvents(out *smqpb.WatchUpdate, events []*smqpb.LayoutEvent, count uint64) uint64 {
	if !w.req.GetEvents() || w.early != nil {
		return count
	}
	if w.before != nil {
		out.Events = w.before.events
		for _, e := range out.Events {
			w.note(e)
		}
		events, count = w.l.hub.since(w.before.count)
		w.before = nil
	}
	for _, e := range w.wanted(events, count) {
		if w.note(e) {
			out.Events = append(out.Events, e)
		}
	}
	return count
}

// note reports whether the event has not been told, and takes note of it. A topic's
// versions rise.
func (w *watcher) note(e *smqpb.LayoutEvent) bool {
	if e.GetDeleted() {
		delete(w.told, e.GetTopicId())
		return true
	}
	if e.GetVersion() <= w.told[e.GetTopicId()] {
		return false
	}
	w.told[e.GetTopicId()] = e.GetVersion()
	return true
}

// addRemoved adds the topics that are gone.
func (w *watcher) addRemoved(out *smqpb.WatchUpdate, events []*smqpb.LayoutEvent) {
	if !w.req.GetTopics() || out.Reset_ {
		return
	}
	for _, e := range events {
		if name, err := smq.ParseTopic(e.GetTopic()); err == nil && w.asksFor(name.Namespace) && e.GetDeleted() && w.l.known(name) == nil {
			out.RemovedTopics = append(out.RemovedTopics, e.GetTopic())
		}
	}
}

// addTopics adds a line for each topic that has changed, up to a revision.
func (w *watcher) addTopics(out *smqpb.WatchUpdate, rev uint64) {
	if !w.req.GetTopics() {
		return
	}
	for _, t := range w.l.snapshot() {
		if w.asksFor(t.Topic.Namespace) && w.isDue(t, rev) {
			out.Topics = append(out.Topics, w.l.status(t))
		}
	}
	w.addDamage(out)
}

// addDamage adds the topics that cannot be read, and those that are gone since.
func (w *watcher) addDamage(out *smqpb.WatchUpdate) {
	if out.Reset_ {
		w.damaged = nil
	}
	now := w.l.damages()
	for name := range w.damaged {
		if now[name] == nil && w.l.known(name) == nil {
			out.RemovedTopics = append(out.RemovedTopics, name.String())
		}
	}
	told := w.damaged
	w.damaged = make(map[smq.Topic]bool, len(now))
	for name, d := range now {
		if !w.asksFor(name.Namespace) || w.l.known(name) != nil {
			continue
		}
		w.damaged[name] = true
		if !told[name] || d.rev.Load() > w.rev {
			out.Topics = append(out.Topics, d.status(name))
		}
	}
}

// isDue reports whether the topic or its loads have changed since what has been
// sent, up to a revision. What changes later has the next update, so that it is
// not told twice; a snapshot leaves nothing out.
func (w *watcher) isDue(t *topic, rev uint64) bool {
	latest := max(t.rev.Load(), t.traffic.rev.Load())
	return latest > w.rev && (latest <= rev || w.rev == 0)
}

// status is the topic in one line.
func (l *Leader) status(t *topic) *smqpb.TopicStatus {
	lay, load := t.layout(), t.traffic.total()
	return &smqpb.TopicStatus{
		Topic: t.Topic.String(), TopicId: string(t.ID), Partitions: lay.Partitions(), Segments: int32(len(lay.Segments)),
		LayoutVersion: lay.Version, MessagesPerSecond: load.Messages, BytesPerSecond: load.Bytes, Mode: string(l.policy(t).Mode),
	}
}

// addDetail adds the topic whose details are asked for, if it has changed, up to
// a revision.
func (w *watcher) addDetail(out *smqpb.WatchUpdate, rev uint64) {
	if w.req.GetTopic() == "" {
		return
	}
	t := w.l.known(w.topic)
	if t == nil {
		detail, key := &smqpb.TopicDetail{Missing: true}, missing
		if d := w.l.damages()[w.topic]; d != nil {
			detail.Error = rpc.ErrorInfo(d.err)
			key += d.err.Error()
		}
		if w.detail != key {
			out.Detail, w.detail = detail, key
		}
		return
	}
	if w.detail == "" || w.isDue(t, rev) {
		out.Detail, w.detail = w.l.describe(t), string(t.ID)
	}
}

// describe is the topic whole.
func (l *Leader) describe(t *topic) *smqpb.TopicDetail {
	lay := t.layout()
	loads, notes := t.traffic.describe(lay)
	return &smqpb.TopicDetail{
		Config: t.config().Proto(), Layout: layout.ToProto(lay), Loads: loads, Notes: notes, Scaling: catalog.ScalingProto(l.policy(t)),
	}
}

// describe is the loads of the layout's segments as they are known or expected,
// and the planner's notes, in words.
func (tr *traffic) describe(l layout.Layout) (loads []*smqpb.SegmentLoad, notes []string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, s := range l.Segments {
		if load, there := tr.loads[s.ID]; there {
			loads = append(loads, layout.LoadToProto(load, s.Range))
		}
	}
	for _, n := range tr.notes {
		notes = append(notes, fmt.Sprintf("segment %d: %s", n.Segment, n.Text))
	}
	return loads, notes
}

// addCluster adds the cluster if it has changed.
func (w *watcher) addCluster(ctx context.Context, out *smqpb.WatchUpdate) {
	if !w.req.GetBrokers() {
		return
	}
	if now := w.l.clusterInfo(ctx); !proto.Equal(now, w.cluster) {
		out.Cluster, w.cluster = now, now
	}
}

// send sends the update in pages, or with nothing in it as a sign of life when one
// is due.
func (w *watcher) send(out *smqpb.WatchUpdate) error {
	now := time.Now()
	if proto.Size(out) == 0 && now.Sub(w.sent) < watchSign {
		return nil
	}
	w.sent = now
	for len(out.Topics) > watchPage || len(out.Events) > watchPage {
		page := &smqpb.WatchUpdate{Reset_: out.Reset_, TimeMs: time.Now().UnixMilli()}
		page.Topics, out.Topics = cutPage(out.Topics)
		page.Events, out.Events = cutPage(out.Events)
		out.Reset_ = false
		if err := w.stream.Send(page); err != nil {
			return err
		}
	}
	out.TimeMs = time.Now().UnixMilli()
	return w.stream.Send(out)
}

func cutPage[T any](all []T) (page, rest []T) {
	n := min(len(all), watchPage)
	return all[:n], all[n:]
}
