//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"time"
)

// place is where a message is in its topic.
type place struct {
	partition int32
	offset    int64
}

// publisher is an smq-pub that publishes numbered messages. It is fed as acks
// come, so that a bounded number is under way at every moment, whatever happens
// to whom.
type publisher struct {
	*process
	line  func(n int) string
	first int // number of the first message
	feed  *os.File
	read  chan struct{} // closed when all its reports have been taken in

	mu     sync.Mutex
	change *sync.Cond
	fed    int            // how many messages have been written to the feed
	least  int            // how many there have to be
	window int            // how many may be under way
	ending bool           // no more than least
	acks   map[int]place  // by number; the offset may be unknown
	levels map[string]int // acks by level
	gaps   pause          // between two acks
	failed map[int]string // by number: whether it is stored, "no" or "unknown"
	bad    []string       // reports that make no sense
}

// window is how many messages are under way, unless a test says otherwise.
const window = 3000

// unknownOffset is that of an ack which does not tell it: the batch was found
// to be stored already, in part.
const unknownOffset = -1

// publish starts a publisher of messages from number 1 on; line(n) is the line
// of number n.
func (c *cluster) publish(name, topic string, line func(n int) string, args ...string) *publisher {
	c.t.Helper()
	return c.publishFrom(1, name, topic, line, args...)
}

// publishFrom is publish for a topic that has messages before number first.
func (c *cluster) publishFrom(first int, name, topic string, line func(n int) string, args ...string) *publisher {
	c.t.Helper()
	in, feed, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	reports, out := io.Pipe()
	p := &publisher{line: line, first: first, window: window, feed: feed, read: make(chan struct{}), acks: make(map[int]place), levels: make(map[string]int), failed: make(map[int]string)}
	p.change = sync.NewCond(&p.mu)
	args = append([]string{topic, "--report", "--master", c.masterList()}, args...)
	p.process = c.start(name, "smq-pub", stdio{in: in, out: out}, args...)
	in.Close() // the child has it
	go p.write()
	go p.readAll(reports)
	go func() {
		<-p.done
		out.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.change.Broadcast()
	}()
	return p
}

// setWindow changes how many messages are under way.
func (p *publisher) setWindow(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.window = n
	p.change.Broadcast()
}

// write feeds the publisher until there is no more to publish, or it has ended.
func (p *publisher) write() {
	defer p.feed.Close()
	for {
		from, to, more := p.next()
		if !more {
			return
		}
		var lines strings.Builder
		for n := from; n < to; n++ {
			lines.WriteString(p.line(p.first + n))
			lines.WriteByte('\n')
		}
		if _, err := p.feed.WriteString(lines.String()); err != nil {
			return // the publisher has ended
		}
	}
}

// next waits until more may be fed, and says which messages, counted from 0, to
// being the first one that may not. It reports whether there are any.
func (p *publisher) next() (from, to int, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.ended() || p.ending && p.fed >= p.least {
			return 0, 0, false
		}
		to = len(p.acks) + p.window
		if p.ending {
			to = min(to, p.least)
		}
		if to > p.fed {
			from, p.fed = p.fed, to
			return from, to, true
		}
		p.change.Wait()
	}
}

// report is a line of smq-pub --report.
type report struct {
	Message   int
	Partition int32
	Offset    *int64
	Ack       string
	Stored    string // when it has failed
}

func (p *publisher) readAll(reports io.Reader) {
	defer close(p.read)
	lines := bufio.NewScanner(reports)
	for lines.Scan() {
		p.take(lines.Bytes())
	}
}

func (p *publisher) take(line []byte) {
	r := report{}
	err := json.Unmarshal(line, &r)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.change.Broadcast()
	number := p.first + r.Message - 1
	_, acked := p.acks[number]
	_, failed := p.failed[number]
	switch {
	case err != nil || acked || failed:
		p.bad = append(p.bad, string(line))
		return
	case r.Stored == "no" || r.Stored == "unknown":
		p.failed[number] = r.Stored
		return
	case r.Ack != "stored" && r.Ack != "replicated":
		p.bad = append(p.bad, string(line))
		return
	}
	at := place{r.Partition, unknownOffset}
	if r.Offset != nil {
		at.offset = *r.Offset
	}
	p.acks[number] = at
	p.levels[r.Ack]++
	p.gaps.acked(time.Now())
}

// pause is the longest time without an ack.
type pause struct {
	last   time.Time // ack
	length time.Duration
	end    time.Time
}

// acked takes in that there was an ack.
func (p *pause) acked(now time.Time) {
	if gap := now.Sub(p.last); !p.last.IsZero() && gap > p.length {
		p.length, p.end = gap, now
	}
	p.last = now
}

// mark forgets pauses so far.
func (p *publisher) mark() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gaps.length, p.gaps.end = 0, time.Time{}
}

// longestPause is the longest time without an ack since mark.
func (p *publisher) longestPause() pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gaps
}

// ackedAs is how many messages have an ack of the level.
func (p *publisher) ackedAs(level string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.levels[level]
}

// sent is how many messages it has been fed.
func (p *publisher) sent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fed
}

// acked is how many messages are acked.
func (p *publisher) acked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acks)
}

// awaitAcks waits until n messages are acked.
func (p *publisher) awaitAcks(n int) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("%s has %d acks", p.name, n), func() error {
		if got := p.acked(); got < n && p.ended() {
			p.t.Fatalf("%s has ended with exit code %d and %d acks", p.name, p.exit(), got)
		} else if got < n {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
}

// exit waits for the publisher's end and for its last reports, and returns its
// exit code.
func (p *publisher) exit() int {
	p.t.Helper()
	code := p.process.exit()
	<-p.read
	return code
}

// awaitMore waits until n more messages are acked.
func (p *publisher) awaitMore(n int) {
	p.t.Helper()
	p.awaitAcks(p.acked() + n)
}

// end ends the feed once it has been fed at least so many messages.
func (p *publisher) end(least int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending, p.least = true, max(least, p.fed)
	p.change.Broadcast()
}

// finish ends the feed once it has been fed at least so many messages, and
// waits for the publisher's end: a success, with an ack for each message. It
// returns the number of the last one.
func (p *publisher) finish(least int) int {
	p.t.Helper()
	p.end(least)
	if code := p.exit(); code != 0 {
		p.t.Errorf("%s ended with exit code %d", p.name, code)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.acks) != p.fed || len(p.failed) > 0 || len(p.bad) > 0 {
		p.t.Errorf("%s was fed %d messages, %d are acked, %d have failed, other reports: %.10q", p.name, p.fed, len(p.acks), len(p.failed), p.bad)
	}
	return p.first + p.fed - 1
}

// places are the acks so far.
func (p *publisher) places() map[int]place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.acks)
}

// failures are the messages that have failed so far.
func (p *publisher) failures() map[int]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.failed)
}
