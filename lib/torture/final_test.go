package torture

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/mem"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// testRecorder is a recorder whose events come back when it is closed.
func testRecorder(t *testing.T) (rec *recorder, events func() []check.Event) {
	t.Helper()
	path := filepath.Join(t.TempDir(), historyFile)
	rec, err := newRecorder(path, check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rec, func() []check.Event {
		t.Helper()
		if _, err := rec.finish(); err != nil {
			t.Fatal(err)
		}
		return readHistory(t, path)
	}
}

func TestUncleanSealsAreFoundInTheLayouts(t *testing.T) {
	st := mem.New()
	c := catalog.Config{Topic: smq.Topic{Namespace: smq.DefaultNamespace, Name: "t"}, ID: smq.NewTopicID(), Partitions: 2}
	rec, events := testRecorder(t)
	at := func(after time.Duration) layout.Stamp {
		return layout.Stamp{Leader: "leader", Term: 1, NowMS: rec.start.Add(after).UnixMilli()}
	}
	member := func(n string) layout.Member { return layout.Member{Broker: smq.BrokerID(n), Address: "address-" + n} }
	l, err := layout.New(c.Partitions, at(0))
	next := func(after time.Duration, sealed layout.Sealed, successors ...layout.Successor) {
		if err == nil {
			err = catalog.WriteVersion(t.Context(), st, c.Topic, c.ID, l)
		}
		if err == nil {
			l, err = l.Next(layout.Change{Cause: layout.Failover, Sealed: []layout.Sealed{sealed}, Successors: successors}, at(after))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sealOf := func(i int, unclean bool) layout.Sealed {
		return layout.Sealed{Segment: l.Segments[i].ID, Range: l.Segments[i].Range, Hash: layout.Hash{1}, Unclean: unclean}
	}
	next(time.Second, layout.EmptyOf(l.Segments[0]),
		layout.Successor{Range: smq.Range{Lo: 0, Hi: 1}, Owner: member("a"), Followers: []layout.Member{member("b")}},
		layout.Successor{Range: smq.Range{Lo: 1, Hi: 2}, Owner: member("c")})
	next(2*time.Second, sealOf(1, false), layout.Successor{Range: smq.Range{Lo: 1, Hi: 2}, Owner: member("a")})
	next(3*time.Second, sealOf(0, true), layout.Successor{Range: smq.Range{Lo: 0, Hi: 1}, Owner: member("c")})
	next(4*time.Second, sealOf(0, false), layout.Successor{Range: smq.Range{Lo: 0, Hi: 1}, Owner: member("b")})

	part := func(address string) string { return "part of " + address }
	if _, err := noteLayouts(t.Context(), rec, st, c, part); err != nil {
		t.Fatal(err)
	}
	got := events()
	if len(got) != 1 {
		t.Fatalf("events: %v", got)
	}
	e := got[0]
	if e.Kind != check.Unclean || e.Topic != "t" || e.Partition != 0 || !slices.Equal(e.Parts, []string{"part of address-a", "part of address-b"}) {
		t.Errorf("%+v", e)
	}
	// Layouts count in ms.
	if from, until := e.Called/1000, e.Until/1000; from < 998 || from > 1000 || until < 2998 || until > 3000 {
		t.Errorf("it lived from %d ms to %d ms", from, until)
	}
}
