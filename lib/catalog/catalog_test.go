package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// unsure is a store that, for its first n changes, does not say whether it made
// them: applied tells whether it does.
type unsure struct {
	store.Store
	n       int
	applied bool
}

func (u *unsure) Create(ctx context.Context, path string, content []store.Part) error {
	return u.change(func() error { return u.Store.Create(ctx, path, content) })
}

func (u *unsure) Replace(ctx context.Context, path string, data []byte, v store.Version) (out store.Version, err error) {
	err = u.change(func() error { out, err = u.Store.Replace(ctx, path, data, v); return err })
	return out, err
}

func (u *unsure) change(apply func() error) error {
	if u.n == 0 {
		return apply()
	}
	u.n--
	if u.applied {
		_ = apply()
	}
	return fmt.Errorf("the connection broke: %w", store.ErrAmbiguous)
}

func topic(name string) catalog.Config {
	return catalog.Config{
		Topic: smq.Topic{Namespace: "ns", Name: name}, ID: smq.NewTopicID(), Partitions: 8, CreatedMS: 5,
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func TestATopicsLife(t *testing.T) {
	ctx, st := t.Context(), mem.New()
	c := topic("t")
	c.Key, _ = record.ParseKeySource("header:who")
	_, err := catalog.ReadConfig(ctx, st, c.Topic)
	wantErr(t, "before", err, smq.ErrNotFound)

	wantErr(t, "create", catalog.Create(ctx, st, c), nil)
	wantErr(t, "create again", catalog.Create(ctx, st, c), nil)
	wantErr(t, "create another", catalog.Create(ctx, st, topic("t")), smq.ErrExists)
	got, err := catalog.ReadConfig(ctx, st, c.Topic)
	if err != nil || got != c {
		t.Fatalf("got %+v, %v; want %+v", got, err, c)
	}

	e, err := catalog.Read(ctx, st, c.Topic)
	wantErr(t, "read", err, nil)
	altered := c
	altered.Replicas = 3
	altered.Scaling = layout.Policy{Mode: layout.Manual, Split: layout.Load{Messages: 5, Bytes: 1e6}, MinSegments: 2, MaxSegments: 7, CoolDown: 1500 * time.Millisecond}
	wantErr(t, "alter", catalog.Alter(ctx, st, e, altered), nil)
	wantErr(t, "alter what was read before", catalog.Alter(ctx, st, e, c), smq.ErrConflict)
	if got, err := catalog.ReadConfig(ctx, st, c.Topic); err != nil || got != altered {
		t.Fatalf("got %+v, %v; want %+v", got, err, altered)
	}
	if e, err = catalog.Read(ctx, st, c.Topic); err != nil {
		t.Fatal(err)
	}
	wrong := altered
	wrong.Scaling.MinSegments = 8 // more than the most
	wantErr(t, "alter into what cannot be", catalog.Alter(ctx, st, e, wrong), smq.ErrInvalid)
	wrong = altered
	wrong.Scaling.MinSegments, wrong.Scaling.MaxSegments = int(wrong.Partitions)+1, 0
	wantErr(t, "alter into more segments than partitions", catalog.Alter(ctx, st, e, wrong), smq.ErrInvalid)
	many := topic("many")
	many.Scaling.MinSegments = int(many.Partitions) + 1
	wantErr(t, "create with more segments than partitions", catalog.Create(ctx, st, many), smq.ErrInvalid)
	wantErr(t, "alter into another topic", catalog.Alter(ctx, st, e, topic("t")), smq.ErrInvalid)

	wantErr(t, "delete", catalog.Delete(ctx, st, e, 9), nil)
	wantErr(t, "delete what was read before", catalog.Delete(ctx, st, e, 9), smq.ErrConflict)
	_, err = catalog.ReadConfig(ctx, st, c.Topic)
	wantErr(t, "after", err, smq.ErrNotFound)

	second := topic("t")
	wantErr(t, "create anew", catalog.Create(ctx, st, second), nil)
	wantErr(t, "a late deletion of the first", catalog.Delete(ctx, st, e, 9), smq.ErrConflict)
	if got, err := catalog.ReadConfig(ctx, st, c.Topic); err != nil || got.ID != second.ID {
		t.Fatalf("got %+v, %v; want %+v", got, err, second)
	}
}

func TestOutcomesUnknown(t *testing.T) {
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprint("applied ", applied), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, inner := t.Context(), mem.New()
				st := &unsure{Store: inner, applied: applied}
				c := topic("t")
				st.n = 2
				wantErr(t, "create", catalog.Create(ctx, st, c), nil)
				first, _ := layout.New(8, layout.Stamp{Leader: "a", Term: 1})
				st.n = 2
				wantErr(t, "write", catalog.WriteVersion(ctx, st, c.Topic, c.ID, first), nil)
				other := first
				other.Stamp.Leader = "b"
				st.n = 2
				wantErr(t, "write another", catalog.WriteVersion(ctx, st, c.Topic, c.ID, other), smq.ErrConflict)
				e, err := catalog.Read(ctx, st, c.Topic)
				wantErr(t, "read", err, nil)
				altered := c
				altered.Replicas = 3
				st.n = 2
				wantErr(t, "alter", catalog.Alter(ctx, st, e, altered), nil)
				e, err = catalog.Read(ctx, st, c.Topic)
				wantErr(t, "read", err, nil)
				if e.Replicas != 3 {
					t.Fatalf("got %+v", e)
				}
				st.n = 2
				wantErr(t, "delete", catalog.Delete(ctx, st, e, 9), nil)
			})
		})
	}
}

// An attempt to alter may have been applied, and somebody has deleted the topic
// since, or has altered it otherwise.
func TestAlteredAndChangedAgain(t *testing.T) {
	for _, change := range []func(context.Context, store.Store, catalog.Entry) error{
		func(ctx context.Context, st store.Store, e catalog.Entry) error {
			return catalog.Delete(ctx, st, e, 9)
		},
		func(ctx context.Context, st store.Store, e catalog.Entry) error {
			other := e.Config
			other.Replicas = 2
			return catalog.Alter(ctx, st, e, other)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, inner := t.Context(), mem.New()
			c := topic("t")
			wantErr(t, "create", catalog.Create(ctx, inner, c), nil)
			e, err := catalog.Read(ctx, inner, c.Topic)
			wantErr(t, "read", err, nil)
			c.Replicas = 3
			altered := make(chan error)
			go func() { altered <- catalog.Alter(ctx, &unsure{Store: inner, n: 1, applied: true}, e, c) }()
			synctest.Wait() // it waits before it tries again
			e, err = catalog.Read(ctx, inner, c.Topic)
			wantErr(t, "read", err, nil)
			wantErr(t, "change", change(ctx, inner, e), nil)
			wantErr(t, "alter", <-altered, smq.ErrConflict)
		})
	}
}

func TestAnOutcomeUnknownUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1e9)
		defer cancel()
		st := &unsure{Store: mem.New(), n: 1 << 30}
		err := catalog.Create(ctx, st, topic("t"))
		wantErr(t, "create", err, smq.ErrTimeout)
		wantErr(t, "create", err, store.ErrAmbiguous)
	})
}

func versions(t *testing.T, st store.Store, c catalog.Config, n int) []layout.Layout {
	t.Helper()
	l, err := layout.New(c.Partitions, layout.Stamp{Leader: "a", Term: 1})
	all := []layout.Layout{l}
	for err == nil && len(all) < n {
		s := l.Segments[0]
		seal := layout.EmptyOf(s)
		if s.Assigned() {
			seal = layout.Sealed{Segment: s.ID, Range: s.Range, Hash: layout.Hash{1}}
		}
		l, err = l.Next(layout.Replace(layout.Roll, []layout.Sealed{seal}, []layout.Member{{Broker: "b", Address: "b:1"}}), l.Stamp)
		all = append(all, l)
	}
	for _, l := range all {
		if err == nil {
			err = catalog.WriteVersion(t.Context(), st, c.Topic, c.ID, l)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestVersions(t *testing.T) {
	ctx, st, c := t.Context(), mem.New(), topic("t")
	if _, found, err := catalog.Latest(ctx, st, c.Topic, c.ID, 0); found || err != nil {
		t.Fatalf("before the first: %v, %v", found, err)
	}
	all := versions(t, st, c, 40)
	for _, newerThan := range []uint64{0, 1, 39} {
		l, found, err := catalog.Latest(ctx, st, c.Topic, c.ID, newerThan)
		if err != nil || !found || l.Version != 40 {
			t.Fatalf("newer than %d: version %d, %v, %v", newerThan, l.Version, found, err)
		}
	}
	if _, found, err := catalog.Latest(ctx, st, c.Topic, c.ID, 40); found || err != nil {
		t.Fatalf("newer than the last: %v, %v", found, err)
	}
	for _, limit := range []int{1, 13, 39, 40, 100} {
		for at, more := uint64(0), true; more; {
			page, err := catalog.Versions(ctx, st, c.Topic, c.ID, at, limit)
			wantErr(t, "a page", err, nil)
			more = page.More
			for _, l := range page.Versions {
				if at++; l.Version != at {
					t.Fatalf("version %d in the place of %d", l.Version, at)
				}
			}
			if n := len(page.Versions); more != (at < 40) || n > limit || more && n < limit || page.Damaged != nil {
				t.Fatalf("pages of %d: %d versions up to %d, more: %v, damaged: %v", limit, n, at, more, page.Damaged)
			}
		}
	}
	if page, err := catalog.Versions(ctx, st, c.Topic, c.ID, 50, 5); len(page.Versions) != 0 || page.More || err != nil {
		t.Fatalf("behind the last: %v, %v", page, err)
	}
	err := catalog.WriteVersion(ctx, st, c.Topic, c.ID, all[38])
	wantErr(t, "an older one again", err, smq.ErrConflict)
}

func TestExtend(t *testing.T) {
	ctx, st, c := t.Context(), mem.New(), topic("t")
	versions(t, st, c, 40)
	h, err := catalog.Extend(ctx, st, c.Topic, c.ID, layout.History{})
	if err != nil || h.Last.Version != 40 || len(h.Chain(3)) != 38 {
		t.Fatalf("version %d, %d in the chain, %v", h.Last.Version, len(h.Chain(3)), err)
	}
	if again, err := catalog.Extend(ctx, st, c.Topic, c.ID, h); err != nil || again.Last.Version != 40 {
		t.Fatalf("again: version %d, %v", again.Last.Version, err)
	}
}

func TestNames(t *testing.T) {
	ctx, st := t.Context(), mem.New()
	for i := range 25 {
		wantErr(t, "create", catalog.Create(ctx, st, topic(fmt.Sprintf("t%02d", i))), nil)
	}
	if err := st.Create(ctx, "/topics/ns/t05x", nil); err != nil {
		t.Fatal(err)
	}
	after, got := "", []smq.Topic(nil)
	for more := true; more; {
		var page []smq.Topic
		var err error
		page, more, err = catalog.Names(ctx, st, "ns", after, 6)
		wantErr(t, "names", err, nil)
		got = append(got, page...)
		after = page[len(page)-1].Name
	}
	for i, name := range got {
		if name.Name != fmt.Sprintf("t%02d", i) {
			t.Fatalf("name %d is %v", i, name)
		}
	}
	if len(got) != 25 {
		t.Fatalf("%d names", len(got))
	}
	if ns, err := catalog.Namespaces(ctx, st, ""); err != nil || len(ns) != 1 || ns[0] != "ns" {
		t.Fatalf("namespaces: %v, %v", ns, err)
	}
}

func TestRemoveIncarnation(t *testing.T) {
	ctx, st := t.Context(), mem.New()
	first, second := topic("t"), topic("t")
	wantErr(t, "create", catalog.Create(ctx, st, first), nil)
	versions(t, st, first, 3)
	wantErr(t, "the present one", catalog.RemoveIncarnation(ctx, st, first.Topic, first.ID), smq.ErrConflict)
	wantErr(t, "of no topic", catalog.RemoveIncarnation(ctx, st, topic("u").Topic, first.ID), smq.ErrConflict)
	e, err := catalog.Read(ctx, st, first.Topic)
	wantErr(t, "read", err, nil)
	wantErr(t, "delete", catalog.Delete(ctx, st, e, 9), nil)
	wantErr(t, "create anew", catalog.Create(ctx, st, second), nil)
	versions(t, st, second, 3)
	if ids, err := catalog.Incarnations(ctx, st, first.Topic); err != nil || len(ids) != 2 {
		t.Fatalf("incarnations: %v, %v", ids, err)
	}
	wantErr(t, "the first", catalog.RemoveIncarnation(ctx, st, first.Topic, first.ID), nil)
	if ids, err := catalog.Incarnations(ctx, st, first.Topic); err != nil || len(ids) != 1 || ids[0] != second.ID {
		t.Fatalf("incarnations: %v, %v", ids, err)
	}
}

// behind is a store that answers reads of topic.json with what it was.
type behind struct {
	store.Store
	data    []byte
	version store.Version
}

func (b behind) Read(ctx context.Context, path string) ([]byte, store.Version, error) {
	if strings.HasSuffix(path, "/topic.json") {
		return b.data, b.version, nil
	}
	return b.Store.Read(ctx, path)
}

// A read from the past, when the name was another topic's, removes nothing.
func TestRemoveIncarnationAfterAReadFromThePast(t *testing.T) {
	ctx, st := t.Context(), mem.New()
	first, second := topic("t"), topic("t")
	wantErr(t, "create", catalog.Create(ctx, st, first), nil)
	e, err := catalog.Read(ctx, st, first.Topic)
	wantErr(t, "read", err, nil)
	wantErr(t, "delete", catalog.Delete(ctx, st, e, 9), nil)
	data, version, err := st.Read(ctx, "/topics/ns/t/topic.json")
	wantErr(t, "read", err, nil)
	past := behind{st, data, version}
	wantErr(t, "create anew", catalog.Create(ctx, st, second), nil)
	versions(t, st, second, 3)
	wantErr(t, "the second", catalog.RemoveIncarnation(ctx, past, second.Topic, second.ID), smq.ErrConflict)
	if ids, err := catalog.Incarnations(ctx, st, second.Topic); err != nil || len(ids) != 1 {
		t.Fatalf("incarnations: %v, %v", ids, err)
	}
	wantErr(t, "the first, whose end is true for ever", catalog.RemoveIncarnation(ctx, past, first.Topic, first.ID), nil)
}

func TestForeignFiles(t *testing.T) {
	ctx, st, c := t.Context(), mem.New(), topic("t")
	for _, data := range []string{`{`, `{"format":1}`, `{"format":1,"topic":"ns/u","topic_id":"00000000000000000000000000000000","partitions":1}`} {
		st := mem.New()
		if err := st.Create(ctx, "/topics/ns/t/topic.json", store.Bytes([]byte(data))); err != nil {
			t.Fatal(err)
		}
		_, err := catalog.Read(ctx, st, c.Topic)
		wantErr(t, data, err, smq.ErrCorrupt)
	}
	l, _ := layout.New(8, layout.Stamp{})
	if err := st.Create(ctx, "/topics/ns/t/"+string(c.ID)+"/layout/00000000000000000007.json", store.Bytes(layout.Encode(l))); err != nil {
		t.Fatal(err)
	}
	_, _, err := catalog.Latest(ctx, st, c.Topic, c.ID, 0)
	wantErr(t, "a version under another's name", err, smq.ErrCorrupt)
}
