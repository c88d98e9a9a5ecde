package catalog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// ackedSink hands over the acks.
type ackedSink chan seglog.Ack

func (s ackedSink) Acked(acks []seglog.Ack) {
	for _, a := range acks {
		s <- a
	}
}

// fill opens a segment, appends a message to partition 1 and seals it.
func fill(t *testing.T, st store.Store, id seglog.Ident, preds []seglog.Seal) seglog.Seal {
	t.Helper()
	shared := seglog.NewShared(seglog.SharedOptions{})
	l, err := seglog.Open(t.Context(), seglog.Config{Store: st, Ident: id, Predecessors: preds, Shared: shared})
	if err != nil {
		t.Fatal(err)
	}
	b := record.NewBuilder(record.None)
	if err := b.Append(0, nil, []byte("value"), nil); err != nil {
		t.Fatal(err)
	}
	batch, err := b.Finish(nil, -1, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.Reserve(context.Background(), int64(len(batch))); err != nil {
		t.Fatal(err)
	}
	acks := make(ackedSink, 1)
	l.Append([]seglog.Batch{{Partition: 1, Bytes: batch}}, acks)
	if a := <-acks; a.Err != nil {
		t.Fatal(a.Err)
	}
	seal, err := l.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return seal
}

// rolled makes a topic of two sealed segments and a live one, in four versions
// of its layout; forget: the second segment forgot the first, and its offsets
// start over.
func rolled(t *testing.T, st store.Store, forget bool) catalog.Config {
	t.Helper()
	c := topic("t")
	if err := catalog.Create(t.Context(), st, c); err != nil {
		t.Fatal(err)
	}
	stamp := layout.Stamp{NowMS: time.Now().UnixMilli()}
	l, err := layout.New(c.Partitions, stamp)
	if err != nil {
		t.Fatal(err)
	}
	whole := smq.Range{Lo: 0, Hi: c.Partitions}
	write := func() {
		t.Helper()
		if err := catalog.WriteVersion(t.Context(), st, c.Topic, c.ID, l); err != nil {
			t.Fatal(err)
		}
	}
	write()
	owner := []layout.Member{{Broker: "b1", Address: "127.0.0.1:1"}}
	if l, err = l.Next(layout.Replace(layout.Assign, []layout.Sealed{layout.EmptyOf(l.Segments[0])}, owner), stamp); err != nil {
		t.Fatal(err)
	}
	write()
	for range 2 {
		live := l.Segments[0]
		preds := catalog.Seals(live.Predecessors)
		if forget {
			preds = nil
		}
		seal := fill(t, st, c.Ident(live.ID, whole), preds)
		if l, err = l.Next(layout.Replace(layout.Roll, []layout.Sealed{catalog.Sealed(seal)}, owner), stamp); err != nil {
			t.Fatal(err)
		}
		write()
	}
	return c
}

func TestVerify(t *testing.T) {
	for name, forget := range map[string]bool{"clean": false, "offsets start over": true} {
		t.Run(name, func(t *testing.T) {
			st := mem.New()
			c := rolled(t, st, forget)
			v, err := catalog.Verify(t.Context(), st, c.Topic, nil)
			if err != nil {
				t.Fatal(err)
			}
			if v.Messages != 2 || v.Segments != 2 || v.Versions != 4 {
				t.Errorf("verified %+v", v)
			}
			found := strings.Contains(strings.Join(v.Problems, "\n"), "partition 1 goes on at offset 0, it ended at 1")
			if found != forget || !forget && len(v.Problems) > 0 {
				t.Errorf("problems %q", v.Problems)
			}
		})
	}
}

// A version that is damaged is named, and all segments are read nevertheless.
func TestVerifyGoesOnPastDamage(t *testing.T) {
	for version := 1; version <= 4; version++ {
		st := mem.New()
		c := rolled(t, st, false)
		spoil(t, st, versionFile(c, version))
		v, err := catalog.Verify(t.Context(), st, c.Topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Messages != 2 || v.Segments != 2 || v.Versions != 4 {
			t.Errorf("version %d is damaged: verified %+v", version, v)
		}
		if len(v.Problems) != 1 || !strings.Contains(v.Problems[0], versionFile(c, version)) {
			t.Errorf("version %d is damaged: problems %q", version, v.Problems)
		}
	}
	// What only damaged versions tell of is not known, and that what follows goes
	// on behind it is no problem.
	st := mem.New()
	c := rolled(t, st, false)
	spoil(t, st, versionFile(c, 2))
	spoil(t, st, versionFile(c, 3))
	v, err := catalog.Verify(t.Context(), st, c.Topic, nil)
	if err != nil || len(v.Problems) != 2 || v.Messages != 1 {
		t.Errorf("two versions are damaged: %v, %+v", err, v)
	}
	// Where the versions that are left do not fit together, that is a problem
	// besides.
	st = mem.New()
	c = rolled(t, st, false)
	two, err := catalog.ReadVersion(t.Context(), st, c.Topic, c.ID, 2)
	if err != nil {
		t.Fatal(err)
	}
	two.Segments[0].ID, two.NextSegment = 7, 8
	_, stamp, err := st.Read(t.Context(), versionFile(c, 2))
	if err == nil {
		_, err = st.Replace(t.Context(), versionFile(c, 2), layout.Encode(two), stamp)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err = catalog.Verify(t.Context(), st, c.Topic, nil)
	if err != nil || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "version 3") || v.Messages != 2 {
		t.Errorf("%v, %+v", err, v)
	}
}

// A configuration that is damaged leaves nothing to go by but its name.
func TestVerifyNamesADamagedConfiguration(t *testing.T) {
	st := mem.New()
	c := rolled(t, st, false)
	spoil(t, st, configFile(c))
	if _, err := catalog.Verify(t.Context(), st, c.Topic, nil); !catalog.IsDamage(err) || !strings.Contains(err.Error(), configFile(c)) {
		t.Errorf("got %v", err)
	}
}
