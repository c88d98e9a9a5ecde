//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// subscriber is an smq-sub whose output is checked as it comes: offsets go on
// one by one in every partition.
type subscriber struct {
	*process
	read chan struct{} // closed when all its output has been taken in
	gate *gate         // its output is taken in through it

	mu       sync.Mutex
	found    map[int]place   // where each numbered message was
	next     map[int32]int64 // offset that is due, by partition
	last     map[string]int  // number of the last message of each key
	problems []string
}

// shape is how subscribers write messages: where they are, and what they are.
const shape = `%p %o %k %v\n`

// subscribe starts a subscriber of all of a topic, from its beginning.
func (c *cluster) subscribe(name, topic string, args ...string) *subscriber {
	c.t.Helper()
	lines, out := io.Pipe()
	s := &subscriber{read: make(chan struct{}), gate: newGate(), found: make(map[int]place), next: make(map[int32]int64), last: make(map[string]int)}
	args = append([]string{topic, "--from", "earliest", "-f", shape, "--master", c.masterList()}, args...)
	s.process = c.start(name, "smq-sub", stdio{out: out}, args...)
	go s.readAll(lines)
	go func() {
		<-s.done
		out.Close()
	}()
	return s
}

func (s *subscriber) readAll(r io.Reader) {
	defer close(s.read)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		s.gate.await()
		s.take(lines.Text())
	}
}

// take checks a line: partition, offset, key, number.
func (s *subscriber) take(line string) {
	fields := strings.Split(line, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(fields) != 4 {
		s.problem("line %q", line)
		return
	}
	partition, err1 := strconv.ParseInt(fields[0], 10, 32)
	offset, err2 := strconv.ParseInt(fields[1], 10, 64)
	key := fields[2]
	number, err3 := strconv.Atoi(fields[3])
	if err1 != nil || err2 != nil || err3 != nil {
		s.problem("line %q", line)
		return
	}
	at := place{int32(partition), offset}
	if due := s.next[at.partition]; due != offset {
		s.problem("partition %d: offset %d came, %d was due", partition, offset, due)
	}
	s.next[at.partition] = offset + 1
	if before, twice := s.found[number]; twice {
		s.problem("message %d is at %v and at %v", number, before, at)
	}
	s.found[number] = at
	if last := s.last[key]; number <= last {
		s.problem("key %q: message %d comes after %d", key, number, last)
	}
	s.last[key] = number
}

// problem notes a problem; the first ones will do.
func (s *subscriber) problem(format string, args ...any) {
	if len(s.problems) < 10 {
		s.problems = append(s.problems, fmt.Sprintf(format, args...))
	}
}

// count is how many messages have come.
func (s *subscriber) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.found)
}

// awaitMessages waits until n messages have come.
func (s *subscriber) awaitMessages(n int) {
	s.t.Helper()
	await(s.t, fmt.Sprintf("%s has %d messages", s.name, n), func() error {
		got := s.count()
		if got >= n {
			return nil
		}
		if s.ended() {
			s.t.Fatalf("%s has ended with exit code %d and %d messages", s.name, s.exit(), got)
		}
		return fmt.Errorf("there are %d", got)
	})
}

// exit waits for the subscriber's end and for the end of its output, and returns
// its exit code.
func (s *subscriber) exit() int {
	s.t.Helper()
	code := s.process.exit()
	<-s.read
	return code
}

// finish waits for n messages and ends the subscriber, which must have nothing
// more and no problems.
func (s *subscriber) finish(n int) {
	s.t.Helper()
	s.awaitMessages(n)
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 143 {
		s.t.Errorf("%s ended with exit code %d after SIGTERM", s.name, code)
	}
	s.check(n)
}

// check says what is wrong with what has come, which should be the messages 1
// to n.
func (s *subscriber) check(n int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.problems {
		s.t.Errorf("%s: %s", s.name, p)
	}
	if len(s.found) != n {
		s.t.Errorf("%s has %d messages, %d were published", s.name, len(s.found), n)
	}
	for i := 1; i <= n; i++ {
		if _, ok := s.found[i]; !ok {
			s.t.Errorf("%s: message %d of %d is missing", s.name, i, n)
			break
		}
	}
}

// readAll reads the topic from beginning to end and checks it as a subscriber
// does.
func (c *cluster) readAll(name, topic string, n int) *subscriber {
	c.t.Helper()
	s := c.subscribe(name, topic, "--until", "end")
	if code := s.exit(); code != 0 {
		c.t.Errorf("%s ended with exit code %d", name, code)
	}
	s.check(n)
	return s
}

// checkAcks compares where messages are with where their acks said.
func (s *subscriber) checkAcks(acks map[int]place) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := 0
	for n, at := range acks {
		found, ok := s.found[n]
		if !ok || found.partition != at.partition || at.offset != unknownOffset && found.offset != at.offset {
			if wrong++; wrong <= 10 {
				s.t.Errorf("message %d was acked at %v; it is at %v (%t)", n, at, found, ok)
			}
		}
	}
	if wrong > 0 {
		s.t.Errorf("%d of %d acks do not hold", wrong, len(acks))
	}
}

// checkKnown says what is wrong with what has come, of which only so much is
// known that nothing is there twice, or out of order.
func (s *subscriber) checkKnown() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.problems {
		s.t.Errorf("%s: %s", s.name, p)
	}
}

// readStored reads all of a topic and compares it with acks. It returns how many
// messages there are: also messages that were not acked may be stored.
func (c *cluster) readStored(name, topic string, p *publisher) int {
	c.t.Helper()
	read := c.subscribe(name, topic, "--until", "end")
	if code := read.exit(); code != 0 {
		c.t.Errorf("%s ended with exit code %d", name, code)
	}
	read.checkKnown()
	read.checkAcks(p.places())
	read.checkNotStored(p.failures())
	return read.count()
}

// checkNotStored says which messages are there though their publisher was told
// that they are not.
func (s *subscriber) checkNotStored(failures map[int]string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, stored := range failures {
		if at, there := s.found[n]; there && stored == "no" {
			s.t.Errorf("message %d failed as not stored; it is at %v", n, at)
		}
	}
}
