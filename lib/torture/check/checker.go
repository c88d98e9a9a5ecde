package check

import (
	"fmt"
	"time"
)

// Options say what to check by.
type Options struct {
	// LinearTimeout bounds the search of one partition for an order that
	// explains it; 0: a minute.
	LinearTimeout time.Duration
}

// Checker takes in a history. It belongs to one goroutine at a time.
type Checker struct {
	options    Options
	topics     map[string]*topic
	publishers map[uint32]*publisher
	cursors    map[cursorKey]*cursor
	faults     faults
	found      Findings
	excused    Findings
	doubts     []doubt
	stats      Statistics
	pictures   []Picture
}

// doubt is a violation unless it is excused, which only the end tells.
type doubt struct {
	violation Violation
	log       *log
	from, to  int64 // when what does not hold may have been written
	text      string
}

// New makes a checker of an empty history.
func New(o Options) *Checker {
	if o.LinearTimeout == 0 {
		o.LinearTimeout = time.Minute
	}
	return &Checker{
		options: o,
		topics:  make(map[string]*topic), publishers: make(map[uint32]*publisher), cursors: make(map[cursorKey]*cursor),
		stats: Statistics{Acked: make(map[Level]int), Faults: make(map[string]int)},
	}
}

// topic is one that the history has created.
type topic struct {
	name   string
	linear bool
	logs   []*log
	found  map[Message]location // filled by locate
}

// log is a partition, as it is seen from outside.
type log struct {
	topic     string
	partition int32
	seen      []sight   // by offset, as it was first read by anybody, or read otherwise
	final     []Message // by offset, as the final reader found it
	end       *Event    // the partition's end
	unclean   []Event
	tails     []Event
	lastAck   int64 // when it came
}

// sight is a message as it was first seen at an offset.
type sight struct {
	message Message
	who     string
	at      int64
}

// kept is what the final reader found at an offset, none if it is nothing.
func (l *log) kept(offset int64) Message {
	if offset < 0 || offset >= int64(len(l.final)) {
		return Message{}
	}
	return l.final[offset]
}

// name is the partition's, with an offset.
func (l *log) name(offset int64) string {
	return fmt.Sprintf("%s/%d at offset %d", l.topic, l.partition, offset)
}

// fate is what became of a message.
type fate struct {
	sent, answered int64
	outcome        EventKind // empty while there is no answer
	level          Level
	partition      int32
	offset         int64 // -1: not known
}

// publisher is one life of a publisher.
type publisher struct {
	topic  *topic
	asked  Level
	fates  []fate            // by number, from 1 on
	latest map[int32]Message // by partition, of the acked ones with a known offset
}

func (p *publisher) fate(number uint32) *fate {
	if number == 0 || int(number) > len(p.fates) {
		return nil
	}
	return &p.fates[number-1]
}

// Violations is how many have been found so far.
func (c *Checker) Violations() int { return c.found.Count() }

// Doubts is how many more there are that may be excused in the end.
func (c *Checker) Doubts() int { return len(c.doubts) }

// Statistics are those so far.
func (c *Checker) Statistics() Statistics { return c.stats }

func (c *Checker) violation(v Violation, format string, args ...any) {
	c.found.add(v, fmt.Sprintf(format, args...))
}

// Add takes in the next event.
func (c *Checker) Add(e Event) {
	switch e.Kind {
	case Topic:
		c.addTopic(e)
	case Publisher:
		c.publishers[e.Publisher] = &publisher{topic: c.topics[e.Topic], asked: e.Level, latest: make(map[int32]Message)}
	case Send, Acked, NotStored, Unknown:
		c.addMessages(e)
	case Position, Read, Broken, Beyond, Tail, End, Unclean:
		c.addToLog(e)
	case Fault, Lifted:
		c.faults.add(e)
		if e.Kind == Fault {
			c.stats.Faults[e.Text]++
		}
	case Stuck:
		c.violation(Unresolved, "%s: %s", e.Who, e.Text)
	case Crashed:
		c.violation(Crash, "%s: %s", e.Who, e.Text)
	case Damage:
		c.violation(DamagedStore, "topic %s: %s", e.Topic, e.Text)
	}
}

func (c *Checker) addTopic(e Event) {
	t := &topic{name: e.Topic, linear: e.Linear}
	for p := range e.Partitions {
		t.logs = append(t.logs, &log{topic: e.Topic, partition: p})
	}
	c.topics[e.Topic] = t
}

// log is the partition of an event; nil when there is none.
func (c *Checker) log(topic string, partition int32) *log {
	t := c.topics[topic]
	if t == nil || partition < 0 || int(partition) >= len(t.logs) {
		return nil
	}
	return t.logs[partition]
}

func (c *Checker) addToLog(e Event) {
	l := c.log(e.Topic, e.Partition)
	if l == nil {
		c.violation(Phantom, "%s: there is no partition %d of topic %q", e.Who, e.Partition, e.Topic)
		return
	}
	switch e.Kind {
	case Position:
		c.cursor(e).move(e.Offset)
	case Read:
		c.addRead(l, e)
	case Broken:
		c.violation(Corrupt, "%s: %s: %s", e.Who, l.name(e.Offset), e.Text)
	case Beyond:
		c.contradicts(l, e.At-awayFor, e.At, VanishedRead, "%s: %s had read up to there, and nothing is there any more", l.name(e.Offset), e.Who)
	case Tail:
		c.stats.Tails++
		l.tails = append(l.tails, e)
	case End:
		l.end = &e
	case Unclean:
		l.unclean = append(l.unclean, e)
	}
}

// Complete reports whether the history goes to its end: every partition was read
// back, or it is said why not.
func (c *Checker) Complete() bool {
	for _, t := range c.topics {
		for _, l := range t.logs {
			if l.end == nil {
				return false
			}
		}
	}
	return len(c.topics) > 0
}

// Finish is what the whole history says. Nothing may be added afterwards.
func (c *Checker) Finish() Result {
	for _, name := range sortedKeys(c.topics) {
		for _, l := range c.topics[name].logs {
			c.finishLog(l)
		}
		c.topics[name].locate()
	}
	for _, id := range sortedKeys(c.publishers) {
		c.finishPublisher(id, c.publishers[id])
	}
	for _, d := range c.doubts {
		if c.excuses(d.log, d.from, d.to) {
			c.excused.add(d.violation, d.text)
		} else {
			c.found.add(d.violation, d.text)
		}
	}
	r := Result{}
	for _, name := range sortedKeys(c.topics) {
		if t := c.topics[name]; t.linear {
			r.Undecided = append(r.Undecided, c.checkLinear(t)...)
		}
	}
	r.Violations, r.Excused, r.Statistics, r.Pictures = c.found, c.excused, c.stats, c.pictures
	return r
}
