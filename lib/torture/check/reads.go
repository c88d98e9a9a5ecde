package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

type cursorKey struct {
	who, topic string
	partition  int32
}

// cursor is where a reader stands in a partition.
type cursor struct {
	known bool
	next  int64
}

// move has the reader go on elsewhere; -1: nobody knows where.
func (c *cursor) move(offset int64) { c.known, c.next = offset >= 0, offset }

func (c *Checker) cursor(e Event) *cursor {
	key := cursorKey{e.Who, e.Topic, e.Partition}
	if c.cursors[key] == nil {
		c.cursors[key] = &cursor{}
	}
	return c.cursors[key]
}

// addRead takes in what a reader was given at once.
func (c *Checker) addRead(l *log, e Event) {
	cur := c.cursor(e)
	switch {
	case !cur.known || e.Offset == cur.next:
	case e.Offset > cur.next:
		c.violation(PollSkip, "%s was given %s after offset %d", e.Who, l.name(e.Offset), cur.next-1)
	default:
		c.violation(NonMonotonicPoll, "%s was given %s after offset %d", e.Who, l.name(e.Offset), cur.next-1)
	}
	cur.move(e.Offset + int64(len(e.Messages)))
	c.stats.Read += len(e.Messages)
	for i, m := range e.Messages {
		c.addSight(l, e, e.Offset+int64(i), m)
	}
}

// maxOffset bounds what a reader may be given, so that a wrong offset does not
// take all memory: no run writes as much.
const maxOffset = 1 << 31

// addSight takes in that a reader saw a message at an offset.
func (c *Checker) addSight(l *log, e Event, offset int64, m Message) {
	if offset < 0 || offset > maxOffset {
		c.violation(Phantom, "%s was given %s", e.Who, l.name(offset))
		return
	}
	if e.Who == Final {
		l.final = grown(l.final, offset)
		l.final[offset] = m
	}
	l.seen = grown(l.seen, offset)
	first := &l.seen[offset]
	switch {
	case first.message == (Message{}):
		*first = sight{message: m, who: e.Who, at: e.At}
		c.checkOrigin(l, e, offset, m)
	case first.message != m:
		c.contradicts(l, first.at-lateRead, first.at, InconsistentOffset, "%s: %s saw message %v, %s message %v", l.name(offset), first.who, first.message, e.Who, m)
		c.checkOrigin(l, e, offset, m)
		// Others that see the new one only repeat what is known now.
		*first = sight{message: m, who: e.Who, at: e.At}
	}
}

// grown is a slice that has an element at an index.
func grown[T any](s []T, index int64) []T {
	if missing := int(index) + 1 - len(s); missing > 0 {
		s = append(s, make([]T, missing)...)
	}
	return s
}

// checkOrigin checks that a message was sent there before it is seen.
func (c *Checker) checkOrigin(l *log, e Event, offset int64, m Message) {
	p := c.publishers[m.Publisher]
	if p == nil || p.fate(m.Number) == nil || p.topic == nil || p.topic.name != l.topic {
		c.violation(Phantom, "%s: %s saw message %v, which nobody had sent there", l.name(offset), e.Who, m)
	}
}

// contradicts reports that something does not hold that was written between two
// times. It may be excused in the end.
func (c *Checker) contradicts(l *log, from, to int64, v Violation, format string, args ...any) {
	c.doubts = append(c.doubts, doubt{violation: v, log: l, from: from, to: to, text: fmt.Sprintf(format, args...)})
}

// finishLog checks a partition as the final reader found it.
func (c *Checker) finishLog(l *log) {
	switch {
	case l.end == nil:
		c.violation(Unreadable, "%s/%d: nobody knows its end", l.topic, l.partition)
	case l.end.Text != "":
		c.violation(Unreadable, "%s: %s", l.name(int64(len(l.final))), l.end.Text)
	case int64(len(l.final)) < l.end.Offset:
		c.violation(Unreadable, "%s: it ends at %d", l.name(int64(len(l.final))), l.end.Offset)
	}
	c.stats.Kept += len(l.final)
	for offset, s := range l.seen {
		if s.message != (Message{}) && offset >= len(l.final) && l.whole() {
			c.contradicts(l, s.at-lateRead, s.at, VanishedRead, "%s: %s saw message %v, which is there no more", l.name(int64(offset)), s.who, s.message)
		}
	}
	for _, u := range l.unclean {
		if spared := c.faults.spared(u.Parts, u.Called-hitAround, u.Until+hitAround); spared != "" {
			c.violation(DamagedStore, "%s/%d has an unclean seal of %s, though nothing was done to %s", l.topic, l.partition, clock(u.Until), spared)
		}
	}
	c.checkRepeats(l)
}

// whole reports whether the final reader has read all of the partition.
func (l *log) whole() bool {
	return l.end != nil && l.end.Text == "" && int64(len(l.final)) >= l.end.Offset
}

// checkRepeats checks that publishers' messages are in the partition once, and
// in the order in which they were sent.
func (c *Checker) checkRepeats(l *log) {
	type place struct {
		number uint32
		offset int
	}
	last := make(map[uint32]place) // the greatest, by publisher
	places := make(map[Message]int)
	for offset, m := range l.final {
		if m == (Message{}) {
			continue // the reader has skipped it, and that was found then
		}
		if before, twice := places[m]; twice {
			c.violation(Duplicate, "%s/%d has message %v at offsets %d and %d", l.topic, l.partition, m, before, offset)
			continue
		}
		places[m] = offset
		before := last[m.Publisher]
		if m.Number < before.number {
			c.violation(Order, "%s/%d: message %v at offset %d lies behind %d.%d at %d", l.topic, l.partition, m, offset, m.Publisher, before.number, before.offset)
			continue
		}
		last[m.Publisher] = place{m.Number, offset}
	}
}
