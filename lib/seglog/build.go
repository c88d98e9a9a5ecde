package seglog

import (
	"cmp"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// newFooter begins the footer of chunk n.
func (id Ident) newFooter(n uint64, writer []byte, broker smq.BrokerID, now time.Time) *smqpb.ChunkFooter {
	return &smqpb.ChunkFooter{
		Format:    format,
		Topic:     id.Topic.Namespace + "/" + id.Topic.Name,
		TopicId:   string(id.TopicID),
		Segment:   uint64(id.Segment),
		Lo:        id.Range.Lo,
		Hi:        id.Range.Hi,
		Chunk:     n,
		Writer:    writer,
		Broker:    string(broker),
		CreatedMs: now.UnixMilli(),
	}
}

// entry is a batch that has its place: an offset and a position.
type entry struct {
	bytes     []byte
	header    record.Header // as received; its base offset is in offset
	partition smq.Partition
	offset    int64
	position  smq.Position
	appendMs  int64
	came      time.Duration // when, since its log was opened
	id        uint64
	sink      Sink
	level     Level
	acked     bool // as replicated; guarded by Log.mu
}

// byPartition returns the entries' indexes sorted by partition, and in order
// of arrival within each.
func byPartition(entries []entry) []int32 {
	order := make([]int32, len(entries))
	sorted := true
	for i := range entries {
		order[i] = int32(i)
		sorted = sorted && (i == 0 || entries[i-1].partition <= entries[i].partition)
	}
	if !sorted {
		slices.SortStableFunc(order, func(a, b int32) int {
			return cmp.Compare(entries[a].partition, entries[b].partition)
		})
	}
	return order
}

// layOut puts the entries, whose positions start at m.FirstPosition, into
// blocks by partition: their index goes to m, their bytes to the result.
func layOut(m *smqpb.ChunkFooter, entries []entry) (blocks [][][]byte, parts []store.Part) {
	order := byPartition(entries)
	parts = make([]store.Part, 0, len(entries)+1) // the footer follows
	all := make([][]byte, 0, len(entries))
	var end uint64
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && entries[order[j]].partition == entries[order[i]].partition {
			j++
		}
		b := newBlock(m.FirstPosition, entries, order[i:j])
		b.Start = end
		end += b.Length
		from := len(all)
		for _, k := range order[i:j] {
			all = append(all, entries[k].bytes)
			parts = append(parts, store.Part{Bytes: entries[k].bytes})
		}
		blocks = append(blocks, all[from:len(all):len(all)])
		m.Blocks = append(m.Blocks, b)
		i = j
	}
	return blocks, parts
}

// newBlock indexes the batches of one partition.
func newBlock(firstPosition smq.Position, entries []entry, order []int32) *smqpb.PartitionBlock {
	first, last, n := &entries[order[0]], &entries[order[len(order)-1]], len(order)
	b := &smqpb.PartitionBlock{
		Partition:     first.partition,
		FirstOffset:   first.offset,
		EndOffset:     last.offset + int64(last.header.Count),
		AppendMs:      last.appendMs,
		MaxTimestamp:  first.header.MaxTimestamp,
		Lengths:       make([]uint32, n),
		Counts:        make([]uint32, n),
		Crcs:          make([]uint32, n),
		Positions:     make([]uint32, n),
		MaxTimestamps: make([]int64, n),
	}
	for i, k := range order {
		e := &entries[k]
		b.Length += uint64(len(e.bytes))
		b.Lengths[i] = uint32(len(e.bytes))
		b.Counts[i] = uint32(e.header.Count)
		b.Crcs[i] = e.header.CRC
		b.Positions[i] = uint32(e.position - firstPosition)
		b.MaxTimestamp = max(b.MaxTimestamp, e.header.MaxTimestamp)
	}
	for i, k := range order {
		b.MaxTimestamps[i] = entries[k].header.MaxTimestamp - b.MaxTimestamp
	}
	return b
}

// touched lists the producers that the entries belong to.
func touched(entries []entry) []producerKey {
	seen := make(map[producerKey]struct{}, 8)
	for i := range entries {
		if e := &entries[i]; e.header.ProducerID >= 0 {
			seen[producerKey{e.header.ProducerID, e.partition}] = struct{}{}
		}
	}
	keys := make([]producerKey, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	return keys
}
