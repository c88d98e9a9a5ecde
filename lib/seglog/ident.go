package seglog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seaweedmq/smq/lib/smq"
)

// Ident says which segment is meant: what never changes in its life.
type Ident struct {
	Topic   smq.Topic
	TopicID smq.TopicID
	Segment smq.SegmentID
	Range   smq.Range
}

// String names the segment for people.
func (id Ident) String() string {
	return fmt.Sprintf("segment %v of topic %v", id.Segment, id.Topic)
}

// TopicDir is the folder of one incarnation of a topic.
func TopicDir(topic smq.Topic, id smq.TopicID) string {
	return "/topics/" + topic.Namespace + "/" + topic.Name + "/" + string(id)
}

// Dir is the folder of the segment's chunks.
func (id Ident) Dir() string {
	return TopicDir(id.Topic, id.TopicID) + "/segments/" + number(uint64(id.Segment))
}

// ChunkPath is the path of the segment's chunk n.
func (id Ident) ChunkPath(n uint64) string { return id.Dir() + "/" + chunkName(n) }

const chunkSuffix = ".log"

func chunkName(n uint64) string { return number(n) + chunkSuffix }

// number is n in the 20 digits that make names sort by number.
func number(n uint64) string { return fmt.Sprintf("%020d", n) }

// parseChunkName is the inverse of chunkName.
func parseChunkName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, chunkSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// Seal tells how a segment ended: its last chunk.
type Seal struct {
	Segment  smq.SegmentID
	Range    smq.Range
	Chunk    uint64 // its number
	Hash     []byte // SHA-256 of its footer message
	Unclean  bool   // sealed after every replica was lost
	Messages uint64 // that the segment's chunks hold
	Bytes    uint64 // size of the segment's chunks, as far as known
}
