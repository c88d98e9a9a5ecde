package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// damaged is a store in which the last byte of everything that chunks hold of one
// partition has changed.
type damaged struct {
	store.Store
	partition smq.Partition
}

func (s damaged) ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error) {
	n, err := s.Store.ReadAt(ctx, path, p, off)
	if !strings.HasSuffix(path, ".log") {
		return n, err
	}
	whole, _, readErr := s.Store.Read(ctx, path)
	if readErr != nil {
		return 0, readErr
	}
	chunk, parseErr := seglog.ParseChunk(whole)
	if parseErr != nil {
		return 0, parseErr
	}
	for _, b := range chunk.Footer.Blocks {
		if at := int64(b.Start + b.Length - 1); b.Partition == s.partition && at >= off && at < off+int64(n) {
			p[at-off] ^= 1
		}
	}
	return n, err
}

// A partition that cannot be read stops by itself: the others, which are in the
// same chunks, are read by the same subscriber.
func TestDamageStopsOnePartition(t *testing.T) {
	const partitions, sick = 4, 2
	b := newBed(t, "a")
	b.wrap = func(_ string, st store.Store) store.Store { return damaged{st, sick} }
	c := b.connect(partitions)
	w := b.write(c, partitions)
	w.send(400)
	w.flush()
	if err := b.broker("a:7310").Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	b.kill("a:7310")
	b.start("b") // it has nothing in memory yet

	sub, err := b.connect(0).NewSubscriber(within(t), topicT, client.SubscriberOptions{Start: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	read, failed := make(map[int32]int), 0
	for read[0]+read[1]+read[3] < 300 || failed == 0 {
		f, err := sub.Poll(within(t))
		var stopped *client.PartitionError
		switch {
		case errors.As(err, &stopped) && stopped.Partition == sick && errors.Is(err, smq.ErrCorrupt):
			failed++
		case err != nil:
			t.Fatal(err)
		default:
			for _, ok := f.Next(); ok; _, ok = f.Next() {
				read[f.Partition]++
			}
		}
	}
	if read[sick] != 0 || failed != 1 {
		t.Errorf("partition %d: %d messages, and %d errors", sick, read[sick], failed)
	}
}

// A topic whose layout is damaged does not keep its broker from leaving: what it
// has is sealed, and goes on when the file is mended.
func TestDrainOfADamagedTopic(t *testing.T) {
	b := newBed(t, "a", "b")
	c := b.connect(4)
	w := b.write(c, 4)
	w.send(100)
	w.flush()
	owner := b.owner(0)
	next := map[string]string{"a:7310": "b:7310", "b:7310": "a:7310"}[owner]
	config, _ := b.live(0)
	path := fmt.Sprintf("/topics/default/t/%s/layout/%020d.json", config.GetTopicId(), len(b.versions()))
	whole, v, err := b.st.Read(t.Context(), path)
	if err == nil {
		v, err = b.st.Replace(t.Context(), path, whole[:9], v)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.start("c")
	b.master.lead("c:7310") // which does not know the topic yet
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.broker(owner).Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.st.Replace(t.Context(), path, whole, v); err != nil {
		t.Fatal(err)
	}
	w.send(100)
	w.flush()
	b.read(c).check(w)
	if now := b.owner(0); now != next && now != "c:7310" {
		t.Errorf("the owner is %s, %s has left", now, owner)
	}
}
