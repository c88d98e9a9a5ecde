package leader

import (
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestTheHubKeepsTheLatestEvents(t *testing.T) {
	h := newHub()
	for i := range uint64(keptEvents + 3) {
		h.publish(nil, &smqpb.LayoutEvent{Version: i})
	}
	for _, test := range []struct {
		seen uint64
		n    int
	}{{0, keptEvents}, {3, keptEvents}, {4, keptEvents - 1}, {keptEvents + 2, 1}, {keptEvents + 3, 0}} {
		events, count := h.since(test.seen)
		if len(events) != test.n || count != keptEvents+3 {
			t.Fatalf("behind %d: %d events of %d", test.seen, len(events), count)
		}
		for i, e := range events {
			if want := count - uint64(len(events)-i); e.GetVersion() != want {
				t.Fatalf("behind %d: event %d in the place of %d", test.seen, e.GetVersion(), want)
			}
		}
	}
}

func TestTheHubTellsAtOnceOfWhatIsPublished(t *testing.T) {
	h, one, tr := newHub(), new(topic), newTraffic(smq.Topic{}, time.Time{})
	rev, changed, _ := h.now()
	h.touch(tr)
	select {
	case <-changed:
		t.Error("loads were told at once")
	default:
	}
	h.publish(one, nil)
	<-changed
	now, changed, closed := h.now()
	if now != rev+2 || tr.rev.Load() != rev+1 || one.rev.Load() != rev+2 || closed {
		t.Errorf("revisions %d, %d, %d; closed: %v", now, tr.rev.Load(), one.rev.Load(), closed)
	}
	h.close()
	h.close()
	<-changed
	h.publish(one, nil)
	if _, changed, closed = h.now(); !closed {
		t.Error("it is not closed")
	}
	<-changed
}
