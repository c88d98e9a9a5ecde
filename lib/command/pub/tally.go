package pub

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/envelope"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// totals count what became of the messages.
type totals struct {
	sent    int64 // handed to the publisher
	bytes   int64 // of their keys and values
	acked   int64
	failed  int64
	unknown int64 // those of failed that may be stored all the same
	left    int64 // those of failed that could not be read, and are kept nowhere
	unsent  int64 // those of failed for which no time was left after a signal
}

// line is the last line that is printed.
func (t totals) line(elapsed time.Duration) string {
	text := fmt.Sprintf("sent %d, acked %d, failed %d, %s, %v", t.sent, t.acked, t.failed, smq.Count(t.bytes, "byte"), roundTime(elapsed))
	if t.unknown > 0 {
		text += fmt.Sprintf(" (%d of the failed may be stored)", t.unknown)
	}
	if t.left > 0 {
		text += fmt.Sprintf(" (%d of the failed could not be read and are not kept)", t.left)
	}
	if t.unsent > 0 {
		text += fmt.Sprintf(" (%d of the failed were read and not sent)", t.unsent)
	}
	if seconds := elapsed.Seconds(); seconds >= 0.1 && t.acked > 0 {
		text += ", " + smq.MessageRate(float64(t.acked)/seconds)
	}
	return text
}

func roundTime(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond / 10)
	}
	return d.Round(time.Millisecond)
}

// tally learns the fate of every message and keeps account. The publisher
// calls results from one goroutine; the other methods may be called from any.
type tally struct {
	failures *bufio.Writer // --failed-to, or nil
	report   *bufio.Writer // --report, or nil
	line     []byte
	enough   chan struct{} // closed when nothing more is to be read

	sent, bytes atomic.Int64

	mu                     sync.Mutex // guards what follows
	acked, failed, unknown int64
	left                   int64                       // of failed: what could not be read
	waiting                []unsent                    // what was not sent, until that is told
	unsent                 int64                       // of failed: what was not sent
	held                   map[uint64]envelope.Message // with failures: copies of what is not acked yet
	err                    error                       // the first failure
	ended                  bool                        // enough is closed
}

func newTally(failures, report io.Writer) *tally {
	t := &tally{enough: make(chan struct{})}
	if failures != nil {
		t.failures = bufio.NewWriterSize(failures, 64<<10)
		t.held = map[uint64]envelope.Message{}
	}
	if report != nil {
		t.report = bufio.NewWriterSize(report, 64<<10)
	}
	return t
}

// sending counts a message that is about to be handed to the publisher.
func (t *tally) sending(m *client.Message) {
	t.sent.Add(1)
	t.bytes.Add(int64(len(m.Key) + len(m.Value)))
	if t.failures != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.held[m.Token] = hold(m)
	}
}

func hold(m *client.Message) envelope.Message {
	copied := envelope.Message{
		Partition: m.Partition, Offset: envelope.Unset, Timestamp: m.Timestamp,
		Key: copyBytes(m.Key), Value: copyBytes(m.Value),
	}
	for _, h := range m.Headers {
		copied.Headers = append(copied.Headers, record.RecordHeader{Key: copyBytes(h.Key), Value: copyBytes(h.Value)})
	}
	return copied
}

// copyBytes keeps nil and empty apart.
func copyBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// refused tells of a message that the publisher did not take.
func (t *tally) refused(m *client.Message, err error) {
	t.results(client.Results{Partition: m.Partition, Tokens: []uint64{m.Token}, BaseOffset: -1, Err: fmt.Errorf("%w: %w", client.ErrNotStored, err)})
}

// unsent is a message for which no time was left.
type unsent struct {
	token     uint64
	partition int32
}

// notSent takes note of a message that is not sent after all.
func (t *tally) notSent(m *client.Message) {
	t.sent.Add(-1)
	t.bytes.Add(-int64(len(m.Key) + len(m.Value)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, unsent{m.Token, m.Partition})
}

// settle tells of what was not sent because of the signal. By then the publisher
// has told of everything that was, so that what --failed-to keeps is in order.
func (t *tally) settle(signal error) {
	t.mu.Lock()
	waiting := t.waiting
	t.waiting = nil
	t.unsent += int64(len(waiting))
	t.mu.Unlock()
	for _, u := range waiting {
		err := fmt.Errorf("%w: %w before it was sent", client.ErrNotStored, signal)
		t.results(client.Results{Partition: u.partition, Tokens: []uint64{u.token}, BaseOffset: -1, Err: err})
	}
}

// keeps reports whether messages that fail are kept, so that others may follow.
func (t *tally) keeps() bool { return t.failures != nil }

// unreadable counts a message that cannot be read, and returns how many those
// are.
func (t *tally) unreadable(err error) int64 {
	t.sent.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
	t.left++
	t.end(err, false)
	return t.left
}

// results is told by the publisher.
func (t *tally) results(r client.Results) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int64(len(r.Tokens))
	switch {
	case r.Err == nil:
		t.acked += n
	case errors.Is(r.Err, client.ErrUnknown):
		t.unknown += n
		fallthrough
	default:
		t.failed += n
		t.end(r.Err, t.failures == nil)
	}
	t.keep(r)
	t.tell(r)
}

// keep writes failed messages as envelopes, and lets go of those acked.
func (t *tally) keep(r client.Results) {
	if t.held == nil {
		return
	}
	for _, token := range r.Tokens {
		if r.Err != nil {
			m := t.held[token]
			m.Partition, m.Error = r.Partition, r.Err.Error()
			t.line = envelope.Append(t.line[:0], &m)
			_, err := t.failures.Write(t.line)
			t.broke(err)
		}
		delete(t.held, token)
	}
	if r.Err != nil {
		t.broke(t.failures.Flush())
	}
}

// tell writes a line for each message to standard output.
func (t *tally) tell(r client.Results) {
	if t.report == nil {
		return
	}
	for i, token := range r.Tokens {
		t.line = reportLine(t.line[:0], r, i, token)
		_, err := t.report.Write(t.line)
		t.broke(err)
	}
	t.broke(t.report.Flush())
}

// reportLine is the line of --report for the i-th message of r. Messages are
// numbered from 1.
func reportLine(b []byte, r client.Results, i int, token uint64) []byte {
	b = append(b, `{"message":`...)
	b = strconv.AppendUint(b, token+1, 10)
	if r.Partition >= 0 {
		b = append(b, `,"partition":`...)
		b = strconv.AppendInt(b, int64(r.Partition), 10)
	}
	if r.Err != nil {
		b = append(b, `,"stored":`...)
		if errors.Is(r.Err, client.ErrUnknown) {
			b = append(b, `"unknown"`...)
		} else {
			b = append(b, `"no"`...)
		}
		b = append(b, `,"error":`...)
		b = envelope.AppendString(b, r.Err.Error())
		return append(b, "}\n"...)
	}
	if r.BaseOffset >= 0 {
		b = append(b, `,"offset":`...)
		b = strconv.AppendInt(b, r.BaseOffset+int64(i), 10)
	}
	b = append(b, `,"ack":"`...)
	b = append(b, r.Level.String()...)
	return append(b, "\"}\n"...)
}

// broke notes that an output cannot be written to.
func (t *tally) broke(err error) {
	if err != nil {
		t.end(err, true)
	}
}

// end notes the first thing that went wrong, and whether it ends the reading:
// what fails can be gone over with only when it is kept.
func (t *tally) end(err error, enough bool) {
	if t.err == nil {
		t.err = err
	}
	if enough && !t.ended {
		t.ended = true
		close(t.enough)
	}
}

// state is the account so far, and the first thing that went wrong.
func (t *tally) state() (totals, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return totals{sent: t.sent.Load(), bytes: t.bytes.Load(), acked: t.acked, failed: t.failed, unknown: t.unknown, left: t.left, unsent: t.unsent}, t.err
}
