package seglog

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// slowReads is a store whose next read of a file takes until it is let go.
type slowReads struct {
	store.Store
	hold chan struct{} // nil: no read is held
}

func (s *slowReads) ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error) {
	n, err := s.Store.ReadAt(ctx, path, p, off)
	if hold := s.hold; hold != nil {
		s.hold = nil
		<-hold
	}
	return n, err
}

// lateLists is a store that lists files only when they are old enough, which no
// store may, and counts what is asked of it.
type lateLists struct {
	store.Store
	age   time.Duration
	calls int
}

func (s *lateLists) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	if s.calls++; s.calls > 1000 {
		return nil, errors.New("too many calls")
	}
	infos, err := s.Store.List(ctx, dir, after, limit)
	return slices.DeleteFunc(infos, func(i store.Info) bool { return time.Since(i.Modified) < s.age }), err
}

// A sealer does not hammer a store that says that a name is taken and does not
// show by what.
func TestSealerWaitsForWhatItCannotSee(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := &lateLists{Store: mem.New(), age: time.Minute}
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		if _, err := SealStore(t.Context(), st, l.Ident(), nil, SealOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// A probe and a flush that meet the same seal count it once: a reader behind
// them comes to the segment's end.
func TestProbeAndFlushMeetTheSameSeal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := &slowReads{Store: mem.New()}
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		seal, err := SealStore(t.Context(), st, l.Ident(), nil, SealOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hold, probed := make(chan struct{}), make(chan error, 1)
		st.hold = hold
		go func() { probed <- l.Probe(t.Context()) }()
		synctest.Wait()
		acks := newCollector()
		appendTo(l, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")})
		<-l.Done()
		close(hold)
		if err := <-probed; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if a, _ := acks.get(1); !errors.Is(a.Err, smq.ErrSegmentSealed) {
			t.Errorf("a batch behind the seal: %+v", a)
		}
		if got, ok := l.Sealed(); !ok || !reflect.DeepEqual(got, seal) {
			t.Errorf("the log knows the seal %+v, it is %+v", got, seal)
		}
		if s := l.Stats(); s.Chunks != 2 || s.Bytes != seal.Bytes {
			t.Errorf("the log counts %d chunks and %d bytes, there are 2 and %d", s.Chunks, s.Bytes, seal.Bytes)
		}
		c := NewCursor(l)
		c.Add(0, 0)
		if d, err := c.Next(t.Context(), 1); !d.AtEnd || err != nil {
			t.Errorf("a reader is told %+v, %v", d, err)
		}
	})
}
