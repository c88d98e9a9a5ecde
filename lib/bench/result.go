package bench

import (
	"time"
)

// Result is what a run has found. What began in the warm-up is in none of it.
type Result struct {
	// Messages and Bytes (of values) are those that arrived: acked when
	// publishing, received otherwise.
	Messages int64
	Bytes    int64
	Elapsed  time.Duration // from the end of the warm-up to the last arrival

	Ack      Latency // from due or offered to acked
	Delivery Latency // from due or offered to received; zero when only publishing

	Stored, Replicated int64 // acks by their level
	Failed             int64 // messages that were not acked
	Unsent             int64 // messages that were due and given up: the rate was too high
	Missing            int64 // acked ones that were not received in time
	FirstErr           error // of those that failed
}

// MessagesPerSecond is the rate at which messages arrived.
func (r Result) MessagesPerSecond() float64 { return perSecond(r.Messages, r.Elapsed) }

// BytesPerSecond is the rate at which their values' bytes arrived.
func (r Result) BytesPerSecond() float64 { return perSecond(r.Bytes, r.Elapsed) }

// Errors are the messages that did not arrive.
func (r Result) Errors() int64 { return r.Failed + r.Unsent + r.Missing }

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
