package check

import "fmt"

// addMessages takes in that messages were sent, or answered.
func (c *Checker) addMessages(e Event) {
	for i, m := range e.Messages {
		p := c.publishers[m.Publisher]
		if p == nil || p.topic == nil {
			c.violation(Phantom, "an answer to message %v, whose publisher does not exist", m)
			continue
		}
		if e.Kind == Send {
			c.addSend(p, e, m)
			continue
		}
		f := p.fate(m.Number)
		switch {
		case f == nil:
			c.violation(Phantom, "an answer to message %v, which was not sent", m)
		case f.outcome != "":
			c.violation(Duplicate, "message %v was answered twice, with %s and %s", m, f.outcome, e.Kind)
		default:
			offset := e.Offset
			if offset >= 0 {
				offset += int64(i)
			}
			c.addAnswer(p, f, e, m, offset)
		}
	}
}

func (c *Checker) addSend(p *publisher, e Event, m Message) {
	if int(m.Number) != len(p.fates)+1 {
		c.violation(Phantom, "message %v was sent after %d others", m, len(p.fates))
		return
	}
	p.fates = append(p.fates, fate{sent: e.At, partition: -1, offset: -1})
	c.stats.Sent++
}

func (c *Checker) addAnswer(p *publisher, f *fate, e Event, m Message, offset int64) {
	f.answered, f.outcome = e.At, e.Kind
	switch e.Kind {
	case NotStored:
		c.stats.NotStored++
		return
	case Unknown:
		c.stats.Unknown++
		if l := c.log(p.topic.name, e.Partition); l != nil && e.Refused {
			// What was lost may be from any time of the publisher's life.
			c.contradicts(l, 0, e.At, Disowned, "message %v to %s/%d: %s", m, l.topic, l.partition, e.Text)
		}
		return
	}
	f.level, f.partition, f.offset = e.Level, e.Partition, offset
	c.stats.Acked[e.Level]++
	c.stats.SlowestAck = max(c.stats.SlowestAck, f.answered-f.sent)
	if p.asked == Stored && e.Level != Stored {
		c.violation(WeakAck, "message %v: a %s ack, a stored one was asked for", m, e.Level)
	}
	l := c.log(p.topic.name, e.Partition)
	if l == nil {
		c.violation(Phantom, "message %v was acked in partition %d, which does not exist", m, e.Partition)
		return
	}
	c.noteOutage(l, f)
	if offset < 0 {
		return
	}
	if before, any := p.latest[e.Partition]; any {
		if b := p.fate(before.Number); (m.Number > before.Number) != (offset > b.offset) {
			c.acksDiffer(l, b, "%s/%d: message %v was acked at offset %d, message %v at %d", l.topic, l.partition, before, b.offset, m, offset)
		}
	}
	p.latest[e.Partition] = m
}

// acksDiffer reports that an ack does not go with an earlier one, which may not
// hold any more.
func (c *Checker) acksDiffer(l *log, earlier *fate, format string, args ...any) {
	if earlier.level == Replicated {
		from, to := earlier.written()
		c.contradicts(l, from, to, NonMonotonicSend, format, args...)
		return
	}
	c.violation(NonMonotonicSend, format, args...)
}

// noteOutage measures how long the partition had given no ack although this
// message waited for one.
func (c *Checker) noteOutage(l *log, f *fate) {
	from := max(l.lastAck, f.sent)
	l.lastAck = max(l.lastAck, f.answered)
	if o := (Outage{Topic: l.topic, Partition: l.partition, From: from, To: f.answered}); o.Length() > c.stats.Outage.Length() {
		o.Faults = c.faults.during(o.From, o.To)
		c.stats.Outage = o
	}
}

// finishPublisher checks what a publisher was told against what is there.
func (c *Checker) finishPublisher(id uint32, p *publisher) {
	if p.topic == nil {
		c.violation(Phantom, "publisher %d belongs to no topic", id)
		return
	}
	for i := range p.fates {
		m, f := Message{id, uint32(i + 1)}, &p.fates[i]
		at, there := p.topic.found[m]
		if there && at.repeated {
			c.violation(Duplicate, "message %v is in more than one partition of topic %s", m, p.topic.name)
		}
		switch f.outcome {
		case "":
			c.stats.Unresolved++
			c.violation(Unresolved, "message %v to topic %s, sent at %s", m, p.topic.name, clock(f.sent))
		case NotStored:
			if there {
				c.violation(AbortedRead, "%s/%d has at offset %d message %v, which is not stored by what its publisher was told", p.topic.name, at.partition, at.offset, m)
			}
		case Acked:
			c.checkAcked(p, f, m, at, there)
		}
	}
}

// location is where the final reader found a message.
type location struct {
	partition int32
	offset    int64
	repeated  bool // in another partition too
}

// locate notes where the final reader found every message.
func (t *topic) locate() {
	t.found = make(map[Message]location)
	for _, l := range t.logs {
		for offset, m := range l.final {
			at, there := t.found[m]
			if !there {
				at = location{partition: l.partition, offset: int64(offset)}
			}
			at.repeated = at.repeated || at.partition != l.partition
			t.found[m] = at
		}
	}
	delete(t.found, Message{}) // what the reader has skipped
}

// checkAcked checks that an acked message is where its ack says.
func (c *Checker) checkAcked(p *publisher, f *fate, m Message, at location, there bool) {
	l := c.log(p.topic.name, f.partition)
	if l == nil {
		return // found when it was acked
	}
	switch {
	case !there && (l.end == nil || !l.whole()) && f.offset >= int64(len(l.final)):
		c.violation(Unseen, "%s: message %v was acked at %s, and cannot be read", l.name(f.offset), m, clock(f.answered))
	case !there:
		c.lost(l, f, LostWrite, "%s: message %v was acked (%s) at %s and is not there", l.name(f.offset), m, f.level, clock(f.answered))
	case at.partition != f.partition || f.offset >= 0 && l.kept(f.offset) != m:
		c.lost(l, f, InconsistentOffset, "%s: message %v was acked (%s) there, and is in partition %d at offset %d", l.name(f.offset), m, f.level, at.partition, at.offset)
	}
}

// lost reports that an ack does not hold, unless it is excused.
func (c *Checker) lost(l *log, f *fate, v Violation, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	from, to := f.written()
	if f.level == Replicated && c.excuses(l, from, to) {
		c.excused.add(v, text)
	} else {
		c.found.add(v, text)
	}
}

// clock is a time of the history for people.
func clock(us int64) string { return fmt.Sprintf("%.3fs", float64(us)/1e6) }
