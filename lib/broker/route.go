package broker

import (
	"sync/atomic"

	"github.com/seaweedmq/smq/lib/seglog"
)

// route is the way of a stream's batches to a log. It is the log's sink for
// them.
type route struct {
	p   *publishing
	log *seglog.Log
	err error        // why there is no log
	out atomic.Int64 // batches without an ack
}

// append hands the batches, whose memory is reserved, to the log.
func (r *route) append(batches []seglog.Batch) {
	r.out.Add(int64(len(batches)))
	r.log.Append(batches, r)
}

// Acked passes acks on.
func (r *route) Acked(acks []seglog.Ack) {
	r.p.answers.Acked(acks)
	r.out.Add(-int64(len(acks)))
}

// spent reports whether the log has stopped and has acked everything, so that
// nothing depends on its order any more.
func (r *route) spent() bool {
	if r.log == nil || r.out.Load() > 0 {
		return false
	}
	select {
	case <-r.log.Done():
		return true
	default:
		return false
	}
}
