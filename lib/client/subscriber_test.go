package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// fill puts messages with the values from to to-1 into a partition, some to a
// batch, at a timestamp of 1000 for each. The cluster's lock is not held.
func (c *fakeCluster) fill(partition int32, from, to, some int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := record.NewBuilder(record.LZ4)
	for i := from; i < to; i++ {
		if err := b.Append(int64(i)*1000, nil, fmt.Append(nil, i), nil); err != nil {
			c.t.Fatal(err)
		}
		if b.Len() < some && i+1 < to {
			continue
		}
		l := c.log(partition)
		bytes, err := b.Finish(nil, int64(l.end), 0, 0) // another producer each time
		if err == nil {
			_, _, err = l.append(bytes, 1)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.touch()
}

func newSubscriber(t *testing.T, c *Client, o SubscriberOptions) *Subscriber {
	t.Helper()
	s, err := c.NewSubscriber(t.Context(), fakeTopic, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// next polls until there are messages or a partition has been read to its end.
func next(t *testing.T, s *Subscriber) (partition int32, values []string, caughtUp bool) {
	t.Helper()
	fetch, err := s.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values = fetched(t, fetch)
	return fetch.Partition, values, fetch.CaughtUp
}

func fetched(t *testing.T, fetch *Fetch) (values []string) {
	t.Helper()
	last := int64(-1)
	for rec, ok := fetch.Next(); ok; rec, ok = fetch.Next() {
		values = append(values, string(rec.Value))
		last = rec.Offset
	}
	if fetch.Err() != nil {
		t.Fatal(fetch.Err())
	}
	if last >= 0 && fetch.NextOffset != last+1 {
		t.Errorf("the next offset is %d behind the last, %d", fetch.NextOffset, last)
	}
	return values
}

// untilCaughtUp polls one partition's values until it has been read to its end.
func untilCaughtUp(t *testing.T, s *Subscriber) (values []string) {
	t.Helper()
	for {
		_, got, caughtUp := next(t, s)
		if caughtUp {
			return values
		}
		values = append(values, got...)
	}
}

func TestSubscribeAndFollow(t *testing.T) {
	withCluster(t, 2, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		f.fill(0, 0, 100, 7)
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest(), Partitions: []int32{0}})
		defer s.Close()
		if got := untilCaughtUp(t, s); !slices.Equal(got, numbers(0, 100)) {
			t.Fatalf("got %v", got)
		}
		f.fill(1, 0, 10, 10) // is not subscribed to
		f.fill(0, 100, 103, 7)
		if p, got, _ := next(t, s); p != 0 || !slices.Equal(got, numbers(100, 103)) {
			t.Errorf("partition %d gave %v", p, got)
		}
		if got := s.Positions(); len(got) != 1 || got[0] != 103 {
			t.Errorf("positions %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if fetch, err := s.Poll(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("poll: %+v, %v", fetch, err)
		}
		f.fill(0, 103, 110, 7)
		lag, err := s.Lag(t.Context())
		if err != nil || lag[0] != 7 {
			t.Errorf("lag %v, %v", lag, err)
		}
	})
}

func TestStarts(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.fill(0, 0, 20, 6)
		for _, test := range []struct {
			name  string
			start Start
			from  int
		}{
			{"earliest", Earliest(), 0},
			{"latest", Latest(), 20},
			{"the zero value", Start{}, 20},
			{"in the middle of a batch", Offset(9), 9},
			{"at the start of one", Offset(12), 12},
			{"at the end", Offset(20), 20},
			{"the last three", Last(3), 17},
			{"the last of more than there are", Last(1000), 0},
			{"at a time", Time(time.UnixMilli(7500)), 8},
			{"before all", Time(time.UnixMilli(-5)), 0},
			{"after all", Time(time.UnixMilli(1e9)), 20},
		} {
			s := newSubscriber(t, c, SubscriberOptions{Start: Offset(1), Starts: map[int32]Start{0: test.start}})
			if got := s.Positions()[0]; got != int64(test.from) {
				t.Errorf("%s: position %d", test.name, got)
			}
			if got := untilCaughtUp(t, s); !slices.Equal(got, numbers(test.from, 20)) {
				t.Errorf("%s: got %v", test.name, got)
			}
			s.Close()
		}
		for name, o := range map[string]SubscriberOptions{
			"negative offset":     {Start: Offset(-1)},
			"negative last":       {Starts: map[int32]Start{0: Last(-1)}},
			"negative buffer":     {Buffer: -1},
			"no such partition":   {Partitions: []int32{1}},
			"a partition below 0": {Partitions: []int32{-1}},
		} {
			if _, err := c.NewSubscriber(t.Context(), fakeTopic, o); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestSeek(t *testing.T) {
	withCluster(t, 2, 3, func(t *testing.T, f *fakeCluster, c *Client) {
		f.fill(0, 0, 50, 5)
		f.fill(2, 0, 5, 5)
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest(), Partitions: []int32{0}})
		defer s.Close()
		untilCaughtUp(t, s)
		seek := func(partition int32, offset int64) {
			t.Helper()
			if err := s.Seek(partition, offset); err != nil {
				t.Fatal(err)
			}
			if got := s.Positions()[partition]; got != offset {
				t.Errorf("position %d after seeking to %d", got, offset)
			}
		}
		for _, to := range []int{0, 33, 48, 50, 7, 0} {
			seek(0, int64(to))
			if got := untilCaughtUp(t, s); !slices.Equal(got, numbers(to, 50)) {
				t.Errorf("from %d: got %v", to, got)
			}
		}
		// What was received before a seek is not given any more.
		seek(0, 0)
		synctest.Wait()
		seek(0, 40)
		if got := untilCaughtUp(t, s); !slices.Equal(got, numbers(40, 50)) {
			t.Errorf("got %v", got)
		}
		seek(2, 3) // a partition more
		if p, got, _ := next(t, s); p != 2 || !slices.Equal(got, numbers(3, 5)) {
			t.Errorf("partition %d gave %v", p, got)
		}
		s.Stop(0)
		untilCaughtUp(t, s)
		f.fill(0, 50, 60, 5)
		f.fill(2, 5, 6, 5)
		if p, got, _ := next(t, s); p != 2 || !slices.Equal(got, numbers(5, 6)) {
			t.Errorf("partition %d gave %v", p, got)
		}
		if got := s.Positions(); len(got) != 1 {
			t.Errorf("positions %v", got)
		}
		for _, bad := range [][2]int64{{-1, 0}, {3, 0}, {0, -1}} {
			if err := s.Seek(int32(bad[0]), bad[1]); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("seek %v: %v", bad, err)
			}
		}
	})
}

// A partition that cannot be read ends with an error; the others go on, and so
// does it after a seek.
func TestOffsetOutOfRange(t *testing.T) {
	withCluster(t, 2, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		f.fill(0, 0, 10, 5)
		f.fill(1, 0, 10, 5)
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest(), Starts: map[int32]Start{0: Offset(11)}})
		defer s.Close()
		var failed *PartitionError
		for done := false; failed == nil || !done; {
			fetch, err := s.Poll(t.Context())
			if errors.As(err, &failed) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			done = fetch.CaughtUp && fetch.Partition == 1
		}
		if failed.Partition != 0 || failed.Offset != 11 || !errors.Is(failed, smq.ErrOffsetOutOfRange) {
			t.Errorf("error %v", failed)
		}
		if err := s.Seek(0, 5); err != nil {
			t.Fatal(err)
		}
		if p, got, _ := next(t, s); p != 0 || !slices.Equal(got, numbers(5, 10)) {
			t.Errorf("partition %d gave %v", p, got)
		}
	})
}

func TestSubscriberFollowsItsPartitions(t *testing.T) {
	for name, move := range map[string]func(f *fakeCluster){
		"roll":         func(f *fakeCluster) { f.seal(0) },
		"split":        func(f *fakeCluster) { f.replace(0, 4, 0, 1, 2) },
		"merge":        func(f *fakeCluster) { f.replace(0, 4, 0, 2); f.replace(0, 4, 0) },
		"owner killed": func(f *fakeCluster) { f.startAll(); f.ownerOf(0).kill() },
		"owner silent": func(f *fakeCluster) { f.silence(f.ownerOf(0)) },
		"stream broken": func(f *fakeCluster) {
			n := 0
			f.mu.Lock()
			defer f.mu.Unlock()
			f.feedFault = func(*fakeBroker, int32) (error, bool) { n++; return nil, n == 1 }
			f.touch()
		},
		"overloaded": func(f *fakeCluster) {
			n := 0
			f.mu.Lock()
			defer f.mu.Unlock()
			f.feedFault = func(*fakeBroker, int32) (error, bool) {
				if n++; n < 5 {
					return smq.ErrOverloaded, false
				}
				return nil, false
			}
			f.touch()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, 3, 4, func(t *testing.T, f *fakeCluster, c *Client) {
				s := newSubscriber(t, c, SubscriberOptions{Start: Earliest()})
				defer s.Close()
				for round := range 2 {
					for p := range int32(4) {
						f.fill(p, round*10, round*10+10, 3)
					}
					got := collectFrom(t, s, 40)
					for p := range int32(4) {
						if !slices.Equal(got[p], numbers(round*10, round*10+10)) {
							t.Errorf("partition %d gave %v", p, got[p])
						}
					}
					move(f)
				}
			})
		})
	}
}

// collectFrom polls n messages.
func collectFrom(t *testing.T, s *Subscriber, n int) map[int32][]string {
	t.Helper()
	got := make(map[int32][]string)
	for n > 0 {
		p, values, _ := next(t, s)
		if len(values) > 0 {
			got[p] = append(got[p], values...)
			n -= len(values)
		}
	}
	return got
}

// What is received ahead is bounded; the rest stays with the broker.
func TestPrefetchIsBounded(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		for i := range 200 {
			f.mu.Lock()
			b := record.NewBuilder(record.None)
			if err := b.Append(0, nil, make([]byte, 1<<20), nil); err != nil {
				t.Fatal(err)
			}
			bytes, _ := b.Finish(nil, int64(i), 0, 0)
			if _, _, err := f.log(0).append(bytes, 1); err != nil {
				t.Fatal(err)
			}
			f.mu.Unlock()
		}
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest(), Buffer: 5 << 20})
		defer s.Close()
		most := int64(0)
		for n := 0; n < 200; {
			synctest.Wait()
			s.mu.Lock()
			most = max(most, s.queued)
			s.mu.Unlock()
			_, values, _ := next(t, s)
			n += len(values)
		}
		if most < 4<<20 || most > 8<<20 {
			t.Errorf("up to %d bytes were received ahead", most)
		}
		if s.queued != 0 {
			t.Errorf("%d bytes are still counted", s.queued)
		}
	})
}

func TestTopicDeletedWhileSubscribed(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.fill(0, 0, 5, 5)
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest()})
		defer s.Close()
		synctest.Wait()
		if err := c.DeleteTopic(t.Context(), fakeTopic); err != nil {
			t.Fatal(err)
		}
		if got := untilCaughtUp(t, s); !slices.Equal(got, numbers(0, 5)) {
			t.Errorf("got %v", got)
		}
		if _, err := s.Poll(t.Context()); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("poll: %v", err)
		}
		if err := s.Seek(0, 0); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("seek: %v", err)
		}
		s.Close()
		if _, err := s.Poll(t.Context()); err == nil {
			t.Error("a closed subscriber gives something")
		}
	})
}

func TestSubscribeToManyPartitions(t *testing.T) {
	const partitions = 30_000
	withCluster(t, 2, partitions, func(t *testing.T, f *fakeCluster, c *Client) {
		f.replace(0, partitions, 0, partitions/2)
		for p := range int32(300) {
			f.fill(p*100, 0, 2, 2)
		}
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest()})
		defer s.Close()
		got := collectFrom(t, s, 600)
		if len(got) != 300 {
			t.Errorf("messages of %d partitions", len(got))
		}
		if got := s.Positions(); len(got) != partitions {
			t.Errorf("%d positions", len(got))
		}
	})
}
