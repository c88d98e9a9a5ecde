package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// mutant is a world in which one thing is done wrong. A search that does not
// notice searches nothing.
type mutant struct {
	name   string
	build  func(w *world)
	budget budget
	breaks string // the promise
}

var mutants = []mutant{
	{
		name:   "a store whose create overwrites",
		budget: budget{turns: anyTurns},
		breaks: "P8",
		build: func(w *world) {
			failover(w)
			w.gate.apply = func(path string, content []store.Part) error {
				if err := w.gate.st.Remove(context.Background(), path); err != nil {
					return err
				}
				return w.gate.st.Create(context.Background(), path, content)
			}
		},
	},
	{
		name:   "a store that says yes to a name that is taken",
		budget: budget{turns: anyTurns},
		breaks: "P1",
		build: func(w *world) {
			failover(w)
			apply := w.gate.apply
			w.gate.apply = func(path string, content []store.Part) error {
				if err := apply(path, content); !errors.Is(err, smq.ErrExists) {
					return err
				}
				return nil
			}
		},
	},
	{
		name:   "a store that says yes and keeps nothing",
		budget: budget{},
		breaks: "P1",
		build: func(w *world) {
			failover(w)
			apply := w.gate.apply
			w.gate.apply = func(path string, content []store.Part) error {
				if strings.HasSuffix(path, chunkName(2)) {
					return nil
				}
				return apply(path, content)
			}
		},
	},
	{
		name:   "a store that applies again what it applied before",
		budget: budget{faults: 1, turns: anyTurns},
		breaks: "P8",
		build: func(w *world) {
			failover(w)
			w.gate.stubborn = true
			w.gate.applyLate = func(path string, content []store.Part) error {
				if err := w.gate.st.Remove(context.Background(), path); err != nil {
					return err
				}
				return w.gate.st.Create(context.Background(), path, content)
			}
		},
	},
	{
		name:   "a sealer that leaves a number out",
		budget: budget{},
		breaks: "P2",
		build: func(w *world) {
			failover(w)
			w.nodeOf("S").create = func(ctx context.Context, _ string, content []store.Part) error {
				path, content := renumber(content, 1)
				return w.nodeOf("S").process.Create(ctx, path, content)
			}
		},
	},
	{
		name:   "an owner that writes on behind a seal",
		budget: budget{turns: anyTurns},
		breaks: "P5",
		build: func(w *world) {
			failover(w)
			a := w.nodeOf("A")
			a.create = func(ctx context.Context, path string, content []store.Part) error {
				err := a.process.Create(ctx, path, content)
				if !errors.Is(err, smq.ErrExists) {
					return err
				}
				path, content = renumber(content, 1)
				return a.process.Create(ctx, path, content)
			}
		},
	},
	{
		name:   "a client that sends other bytes again",
		budget: budget{retries: 1, turns: anyTurns},
		breaks: "P1",
		build: func(w *world) {
			failover(w)
			w.clients()[0].rename = func(k Key) []byte {
				other := k
				other.Producer++
				b := NewBatch(other, 1)
				binary.BigEndian.PutUint64(b[43:], uint64(k.Producer))
				binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[crcFrom:], crc32.MakeTable(crc32.Castagnoli)))
				return b
			}
		},
	},
	{
		name:   "a client that takes a new sequence to send again",
		budget: budget{retries: 1, turns: anyTurns},
		breaks: "P7",
		build: func(w *world) {
			w.broker("A", 1, one)
			c := w.client("c", 7, messages{0, 1}, messages{0, 1})
			c.rename = func(k Key) []byte {
				k.Sequence++
				return slices.Clone(batchOf(k, 1))
			}
		},
	},
	{
		name:   "an owner that acks what it has not stored",
		budget: budget{},
		breaks: "P1",
		build: func(w *world) {
			failover(w)
			w.wrap = func(sink seglog.Sink, batches []seglog.Batch, _ *openLog) seglog.Sink {
				sink.Acked([]seglog.Ack{{ID: batches[0].ID, Partition: batches[0].Partition}})
				return deaf{}
			}
		},
	},
	{
		name:   "an owner that serves what it has not stored",
		budget: budget{},
		breaks: "P4",
		build: func(w *world) {
			failover(w)
			w.wrap = func(sink seglog.Sink, batches []seglog.Batch, _ *openLog) seglog.Sink {
				w.ledger.Seen("an eager reader", batches[0].Partition, 0, batches[0].Bytes, false)
				return sink
			}
		},
	},
	{
		name:   "a successor that continues nothing",
		budget: budget{},
		breaks: "P2",
		build: func(w *world) {
			w.broker("A", 1, one)
			w.sealer("S", 1, one)
			w.broker("B", 2, one).after = []smq.SegmentID{1}
			w.client("c", 7, messages{0, 1})
		},
	},
	{
		name:   "a successor that continues from an older seal",
		budget: budget{},
		breaks: "P2",
		build: func(w *world) {
			w.broker("A", 1, one)
			w.sealer("S", 1, one)
			w.broker("B", 2, one, 1)
			w.sealer("T", 2, one, 1)
			w.broker("C", 3, one, 1).after = []smq.SegmentID{2}
			w.client("c", 7, messages{0, 1})
		},
	},
	{
		name:   "an owner that never answers",
		budget: budget{},
		breaks: "answers",
		build: func(w *world) {
			failover(w)
			w.wrap = func(seglog.Sink, []seglog.Batch, *openLog) seglog.Sink { return deaf{} }
		},
	},
	{
		name:   "a follower that says that it holds what it does not",
		budget: budget{crashes: 1, turns: anyTurns},
		breaks: "P1",
		build: func(w *world) {
			withFollower(w)
			w.brokers()[0].followers[0].answer = func(_ smq.Position, o seglog.Outgoing, _ error) (smq.Position, error) {
				return o.First + uint64(len(o.Batches)) + 1, nil
			}
		},
	},
	{
		name:   "a follower that does not refuse once it is fenced",
		budget: budget{turns: anyTurns},
		breaks: "P1",
		build: func(w *world) {
			withFollower(w)
			w.brokers()[0].followers[0].answer = func(_ smq.Position, o seglog.Outgoing, _ error) (smq.Position, error) {
				return o.First + uint64(len(o.Batches)), nil
			}
		},
	},
	{
		name:   "a leader that seals from the store while a replica lives",
		budget: budget{turns: anyTurns},
		breaks: "P1",
		build: func(w *world) {
			withFollower(w)
			w.sealer("S", 1, one)
		},
	},
}

func TestMutantsAreFound(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := newSearch(scenario{name: m.name, faults: []mishap{unknown}, build: m.build}, m.budget)
			f := s.all(t)
			if f == nil {
				t.Fatalf("nothing was found in %v", s.stats)
			}
			if f.promise() != m.breaks {
				t.Errorf("found a breach of %q, expected one of %q: %v", f.promise(), m.breaks, f)
			}
			small := s.shrink(t, f)
			if again := s.replay(t, small.labels); again == nil || again.promise() != f.promise() {
				t.Errorf("%v\nit cannot be repeated: %v", small, again)
			}
			t.Logf("in %d runs: %v", s.stats.runs, small)
		})
	}
}

// deaf is a sink that loses the acks.
type deaf struct{}

func (deaf) Acked([]seglog.Ack) {}

// renumber gives a chunk a number that is higher by n, as its writer could
// have, and returns its path too.
func renumber(content []store.Part, n uint64) (string, []store.Part) {
	data := bytes.Join(bytesOf(content), nil)
	chunk, err := seglog.ParseChunk(data)
	if err != nil {
		panic(err)
	}
	f := chunk.Footer
	f.Chunk += n
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
	if err != nil {
		panic(err)
	}
	var blocks uint64
	for _, block := range f.Blocks {
		blocks += block.Length
	}
	size, sum := uint32(len(b)), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	b = binary.BigEndian.AppendUint32(b, size)
	b = binary.BigEndian.AppendUint32(b, sum)
	b = append(b, data[len(data)-8:]...)
	return ident(smq.SegmentID(f.Segment), smq.Range{}).ChunkPath(f.Chunk), store.Bytes(data[:blocks:blocks], b)
}
