package check

import (
	"slices"
	"testing"
)

// good is a history with everything in it that may happen, and nothing wrong.
func good() *history {
	h := twoPublishers(Stored)
	h.from("tail", 0, 0).from("tail", 1, -1)
	h.send(m(1, 1), m(1, 2), m(2, 1)).ack(0, 0, m(1, 1), m(1, 2)).read("tail", 0, 0, m(1, 1), m(1, 2))
	h.tail(h.at()-500, 0, 2, m(1, 2))
	h.ack(0, 2, m(2, 1))
	h.send(m(1, 3), m(1, 4), m(1, 5), m(1, 6))
	h.add(Event{Kind: NotStored, Messages: []Message{m(1, 3)}, Text: "given up"})
	h.add(Event{Kind: Unknown, Messages: []Message{m(1, 4), m(1, 5)}, Text: "no answer"})
	h.ack(0, -1, m(1, 6)) // a repeat of which nobody knows the place any more
	h.read("tail", 0, 2, m(2, 1), m(1, 5))
	h.from("tail", 0, 1).read("tail", 0, 1, m(1, 2), m(2, 1)) // it went back
	h.from("tail", 0, -1).read("tail", 0, 4, m(1, 6))         // it went somewhere
	h.fault(1, "broker-1").add(Event{Kind: Lifted, Fault: 1})
	h.send(m(2, 2)).ack(1, 0, m(2, 2)).read("tail", 1, 0, m(2, 2))
	return h.finally(0, m(1, 1), m(1, 2), m(2, 1), m(1, 5), m(1, 6)).finally(1, m(2, 2))
}

func TestAGoodHistory(t *testing.T) {
	r := good().check()
	if len(r.Violations)+len(r.Excused)+len(r.Undecided) > 0 {
		t.Errorf("violations: %v\nexcused: %v\nundecided: %v", r.Violations, r.Excused, r.Undecided)
	}
	s := r.Statistics
	if s.Sent != 8 || s.Acked[Stored] != 5 || s.NotStored != 1 || s.Unknown != 2 || s.Unresolved != 0 || s.Read != 8+6 || s.Kept != 6 || s.Tails != 1 || s.Faults["kill"] != 1 {
		t.Errorf("statistics: %+v", s)
	}
	if s.Operations() != 8+14+1 || s.Linear != 6+1 {
		t.Errorf("%d operations, %d checked for linearizability", s.Operations(), s.Linear)
	}
}

// bad are histories with one promise broken each.
var bad = []struct {
	name    string
	history func() *history
	want    Violation
}{
	{"an acked message is gone, another lies behind it", func() *history {
		return twoPublishers(Stored).send(m(1, 1), m(2, 1)).ack(0, 0, m(1, 1)).finally(0, m(2, 1)).finally(1)
	}, LostWrite},
	{"an acked message is gone from the end", func() *history {
		return twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1)).finally(0).finally(1)
	}, LostWrite},
	{"a message that was acked without its place is gone", func() *history {
		return twoPublishers(Stored).send(m(1, 1)).ack(0, -1, m(1, 1)).finally(0).finally(1)
	}, LostWrite},
	{"an acked message cannot be read in the end", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(1, 2)).ack(0, 0, m(1, 1), m(1, 2))
		h.from(Final, 0, 0).read(Final, 0, 0, m(1, 1))
		return h.add(Event{Kind: End, Topic: "t", Partition: 0, Offset: 2}).finally(1)
	}, Unseen},
	{"a message that a reader saw is gone", func() *history {
		h := twoPublishers(Stored).send(m(1, 1)).read("tail", 0, 0, m(1, 1))
		return h.add(Event{Kind: Unknown, Messages: []Message{m(1, 1)}}).finally(0).finally(1)
	}, VanishedRead},
	{"a reader stands where nothing is any more", func() *history {
		h := good()
		return h.add(Event{Kind: Beyond, Who: "tail", Topic: "t", Partition: 0, Offset: 9})
	}, VanishedRead},
	{"two readers see two messages at an offset", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(2, 1)).ack(0, 0, m(1, 1)).ack(0, 1, m(2, 1)).read("tail", 0, 0, m(2, 1))
		return h.finally(0, m(1, 1), m(2, 1)).finally(1)
	}, InconsistentOffset},
	{"an acked message lies elsewhere", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(2, 1)).ack(0, 0, m(1, 1)).ack(0, 1, m(2, 1))
		return h.finally(0, m(2, 1), m(1, 1)).finally(1)
	}, InconsistentOffset},
	{"an acked message lies in another partition", func() *history {
		return twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1)).finally(0).finally(1, m(1, 1))
	}, InconsistentOffset},
	{"a message is there twice", func() *history {
		h := twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1))
		return h.finally(0, m(1, 1), m(1, 1)).finally(1)
	}, Duplicate},
	{"a message is in two partitions", func() *history {
		h := twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1))
		return h.finally(0, m(1, 1)).finally(1, m(1, 1))
	}, Duplicate},
	{"a message is answered twice", func() *history {
		h := twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1)).ack(0, 0, m(1, 1))
		return h.finally(0, m(1, 1)).finally(1)
	}, Duplicate},
	{"a reader is not given a message", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(1, 2)).ack(0, 0, m(1, 1), m(1, 2))
		h.from("tail", 0, 0).read("tail", 0, 1, m(1, 2))
		return h.finally(0, m(1, 1), m(1, 2)).finally(1)
	}, PollSkip},
	{"a reader is given a message again", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(1, 2)).ack(0, 0, m(1, 1), m(1, 2))
		h.from("tail", 0, 0).read("tail", 0, 0, m(1, 1), m(1, 2)).read("tail", 0, 1, m(1, 2))
		return h.finally(0, m(1, 1), m(1, 2)).finally(1)
	}, NonMonotonicPoll},
	{"a later message is acked at a smaller offset", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(1, 2)).ack(0, 1, m(1, 1)).ack(0, 0, m(1, 2))
		return h.finally(0, m(1, 1), m(1, 2)).finally(1)
	}, NonMonotonicSend},
	{"a later message lies before an earlier one", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(1, 2))
		h.add(Event{Kind: Unknown, Messages: []Message{m(1, 1), m(1, 2)}})
		return h.finally(0, m(1, 2), m(1, 1)).finally(1)
	}, Order},
	{"a message is there that is not stored, as was said", func() *history {
		h := twoPublishers(Stored).send(m(1, 1))
		h.add(Event{Kind: NotStored, Messages: []Message{m(1, 1)}})
		return h.finally(0, m(1, 1)).finally(1)
	}, AbortedRead},
	{"a message is there that nobody has sent", func() *history {
		return twoPublishers(Stored).finally(0, m(1, 1)).finally(1)
	}, Phantom},
	{"a message is seen before it is sent", func() *history {
		return twoPublishers(Stored).read("tail", 0, 0, m(1, 1)).send(m(1, 1)).ack(0, 0, m(1, 1)).finally(0, m(1, 1)).finally(1)
	}, Phantom},
	{"a message is there at an impossible offset", func() *history {
		return good().from("tail", 0, -1).read("tail", 0, 1<<40, m(1, 1))
	}, Phantom},
	{"a partition that does not exist is read", func() *history {
		return good().read("tail", 2, 0, m(1, 1))
	}, Phantom},
	{"a message is damaged", func() *history {
		return good().add(Event{Kind: Broken, Who: "tail", Topic: "t", Partition: 0, Offset: 1, Text: "checksum"})
	}, Corrupt},
	{"a replicated ack where a stored one was asked for", func() *history {
		return twoPublishers(Stored).send(m(1, 1)).ackAt(Replicated, 0, 0, m(1, 1)).finally(0, m(1, 1)).finally(1)
	}, WeakAck},
	{"an end that lies before what had been acked", func() *history {
		h := twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1))
		return h.tail(h.at()-500, 0, 0).finally(0, m(1, 1)).finally(1)
	}, NotLinearizable},
	{"an end that lies before one that was given earlier", func() *history {
		h := twoPublishers(Stored).send(m(1, 1))
		h.tail(h.at()-500, 0, 1, m(1, 1)).tail(h.at()-500, 0, 0)
		return h.ack(0, 0, m(1, 1)).finally(0, m(1, 1)).finally(1)
	}, NotLinearizable},
	{"another message at the end than the one that is there", func() *history {
		h := twoPublishers(Stored).send(m(1, 1), m(2, 1)).ack(0, 0, m(1, 1)).ack(0, 1, m(2, 1))
		return h.tail(h.at()-500, 0, 2, m(1, 1)).finally(0, m(1, 1), m(2, 1)).finally(1)
	}, NotLinearizable},
	{"a message gets a smaller offset than one that was acked before it was sent", func() *history {
		h := twoPublishers(Stored).send(m(1, 1)).ack(0, 1, m(1, 1)).send(m(2, 1)).ack(0, 0, m(2, 1))
		return h.finally(0, m(2, 1), m(1, 1)).finally(1)
	}, NotLinearizable},
	{"a publisher is told nothing", func() *history {
		return twoPublishers(Stored).send(m(1, 1)).finally(0, m(1, 1)).finally(1)
	}, Unresolved},
	{"a publisher waits in vain", func() *history {
		return good().add(Event{Kind: Stuck, Who: "publisher-1", Text: "timed out"})
	}, Unresolved},
	{"a publisher is refused though it would wait", func() *history {
		h := twoPublishers(Replicated).send(m(1, 1)).fault(1, "broker-1", "broker-2")
		return h.add(Event{Kind: Unknown, Messages: []Message{m(1, 1)}, Refused: true}).finally(0).finally(1)
	}, Disowned},
	{"a partition's end is not found", func() *history {
		return twoPublishers(Stored).finally(0)
	}, Unreadable},
	{"a partition cannot be read to its end", func() *history {
		h := twoPublishers(Stored).from(Final, 1, 0)
		return h.add(Event{Kind: End, Topic: "t", Partition: 1, Offset: 0, Text: "timed out"}).finally(0)
	}, Unreadable},
	{"the store is damaged", func() *history {
		return good().add(Event{Kind: Damage, Topic: "t", Text: "segment 1: the chain of hashes breaks"})
	}, DamagedStore},
	{"a process crashes", func() *history {
		return good().add(Event{Kind: Crashed, Who: "broker-1", Text: "exit code 2"})
	}, Crash},
}

func TestBadHistories(t *testing.T) {
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			r := c.history().check()
			if r.Violations.Of(c.want) == 0 {
				t.Errorf("no %s, but: %v", c.want, r.Violations)
			}
			if len(r.Excused) > 0 {
				t.Errorf("excused: %v", r.Excused)
			}
		})
	}
}

func TestEveryViolationHasABadHistory(t *testing.T) {
	all := []Violation{
		LostWrite, Unseen, VanishedRead, InconsistentOffset, Duplicate, PollSkip, NonMonotonicPoll, NonMonotonicSend, Order,
		AbortedRead, Phantom, Corrupt, WeakAck, NotLinearizable, Unresolved, Disowned, Unreadable, DamagedStore, Crash,
	}
	for _, c := range bad {
		all = slices.DeleteFunc(all, func(v Violation) bool { return v == c.want })
	}
	if len(all) > 0 {
		t.Errorf("none for %v", all)
	}
}

// lostReplicated is a replicated ack that is lost with what a reader saw, while
// brokers were killed. The segment, of broker-1 and broker-2, has an unclean seal
// or none.
func lostReplicated(level Level, unclean bool, killed ...string) *history {
	h := twoPublishers(Replicated).send(m(1, 1), m(1, 2))
	h.fault(1, killed...).ackAt(level, 0, 0, m(1, 1)).add(Event{Kind: Lifted, Fault: 1})
	until := h.at()
	h.read("tail", 0, 0, m(1, 1)).ack(0, 0, m(1, 2))
	h.add(Event{Kind: Beyond, Who: "tail", Topic: "t", Partition: 0, Offset: 1})
	h.finally(0, m(1, 2)).finally(1)
	if unclean {
		h.unclean(0, until)
	}
	return h
}

// unclean is an unclean seal of broker-1 and broker-2.
func (h *history) unclean(from, until int64) *history {
	return h.add(Event{Kind: Unclean, Topic: "t", Partition: 0, Parts: []string{"broker-1", "broker-2"}, Called: from, Until: until})
}

func TestWhatIsExcused(t *testing.T) {
	r := lostReplicated(Replicated, true, "broker-1", "broker-2").check()
	if len(r.Violations) > 0 || r.Excused.Of(LostWrite) != 1 || r.Excused.Of(InconsistentOffset) != 1 || r.Excused.Of(VanishedRead) != 1 || r.Excused.Of(NonMonotonicSend) != 1 {
		t.Errorf("violations: %v\nexcused: %v", r.Violations, r.Excused)
	}
	if len(r.Undecided) > 0 || r.Excused.Of(NotLinearizable) > 0 {
		t.Errorf("what is left is linearizable; undecided: %v, excused: %v", r.Undecided, r.Excused)
	}
	h := twoPublishers(Replicated).send(m(1, 1)).fault(1, "broker-1", "broker-2")
	h.add(Event{Kind: Unknown, Messages: []Message{m(1, 1)}, Refused: true}).finally(0).finally(1).unclean(0, h.at())
	if r := h.check(); len(r.Violations) > 0 || r.Excused.Of(Disowned) != 1 {
		t.Errorf("a publisher of whom nothing is left; violations: %v, excused: %v", r.Violations, r.Excused)
	}
	for name, h := range map[string]*history{
		"one broker was hit":                    lostReplicated(Replicated, true, "broker-1"),
		"another broker was hit":                lostReplicated(Replicated, true, "broker-1", "broker-3"),
		"no seal is unclean":                    lostReplicated(Replicated, false, "broker-1", "broker-2"),
		"the ack said that it was stored":       lostReplicated(Stored, true, "broker-1", "broker-2"),
		"one broker was hit, the ack is stored": lostReplicated(Stored, true, "broker-1"),
	} {
		if r := h.check(); r.Violations.Of(LostWrite) != 1 || r.Violations.Of(NonMonotonicSend) != 1 {
			t.Errorf("%s: %v", name, r.Violations)
		}
	}
}

func TestWhatIsLostMayLeaveNoOrder(t *testing.T) {
	h := lostReplicated(Replicated, true, "broker-1", "broker-2")
	h.tail(h.at()-500, 0, 2) // an end that was true before the loss
	if r := h.check(); len(r.Violations) > 0 || r.Excused.Of(NotLinearizable) != 1 {
		t.Errorf("violations: %v\nexcused: %v", r.Violations, r.Excused)
	}
}

func TestAnUncleanSealNeedsAllReplicasToBeHit(t *testing.T) {
	for other, want := range map[string]int{"broker-3": 1, "broker-2": 0, Masters: 0} {
		h := good().fault(2, "broker-1").fault(3, other)
		if r := h.unclean(0, h.at()).check(); r.Violations.Of(DamagedStore) != want {
			t.Errorf("broker-1 and %s were hit: %v", other, r.Violations)
		}
	}
}

// wait lets time pass, in which nothing happens.
func (h *history) wait(us int64) *history {
	for until := h.at() + us; h.at() < until; {
		h.from("tail", 0, -1)
	}
	return h
}

func TestExcusesOfOtherTimesCountNothing(t *testing.T) {
	kill := func(h *history) *history {
		return h.fault(1, "broker-1", "broker-2").add(Event{Kind: Lifted, Fault: 1})
	}
	write := func(h *history) *history { return h.send(m(1, 1)).ackAt(Replicated, 0, 0, m(1, 1)) }
	for name, h := range map[string]*history{
		"the fault was long ago":          write(kill(twoPublishers(Replicated)).wait(hitBefore+second)).unclean(0, 100*second),
		"the segment began long after":    write(kill(twoPublishers(Replicated))).unclean(50*second, 100*second),
		"the segment ended before":        write(kill(twoPublishers(Replicated)).wait(2*lateAck)).unclean(0, 3*1000),
		"the fault came after its end":    kill(write(twoPublishers(Replicated)).wait(2*second)).unclean(0, second/10),
		"the fault came before its start": write(kill(twoPublishers(Replicated)).wait(3*second)).unclean(5*second/2, 100*second),
	} {
		if r := h.finally(0).finally(1).check(); r.Violations.Of(LostWrite) != 1 {
			t.Errorf("%s: %v", name, r.Violations)
		}
	}
	h := write(kill(twoPublishers(Replicated)).wait(second)).unclean(0, 100*second)
	if r := h.finally(0).finally(1).check(); len(r.Violations) > 0 {
		t.Errorf("a fault shortly before: %v", r.Violations)
	}
}

func TestOutage(t *testing.T) {
	h := twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1))
	for range 50 { // nobody publishes: no outage
		h.from("tail", 0, -1)
	}
	h.send(m(1, 2))
	from := h.at() - 1000
	h.fault(1, "broker-1").from("tail", 0, -1).send(m(2, 1))
	h.ack(0, 1, m(1, 2))
	to := h.at() - 1000
	h.ack(0, 2, m(2, 1)).finally(0, m(1, 1), m(1, 2), m(2, 1)).finally(1)
	got := h.check().Statistics
	if o := got.Outage; o.From != from || o.To != to || o.Topic != "t" || o.Partition != 0 || !slices.Equal(o.Faults, []string{"kill"}) {
		t.Errorf("%+v, want it from %d to %d", o, from, to)
	}
	if got.SlowestAck != to-from {
		t.Errorf("the slowest ack took %d, not %d", got.SlowestAck, to-from)
	}
}

func TestPictures(t *testing.T) {
	h := twoPublishers(Stored).send(m(1, 1)).ack(0, 0, m(1, 1))
	r := h.tail(h.at()-500, 0, 0).finally(0, m(1, 1)).finally(1).check()
	if len(r.Pictures) != 1 || r.Pictures[0].Name != "t/0" {
		t.Fatalf("pictures: %v", r.Pictures)
	}
	var page size
	if err := r.Pictures[0].Draw(&page); err != nil || page == 0 {
		t.Errorf("a page of %d bytes, %v", page, err)
	}
}

type size int

func (s *size) Write(b []byte) (int, error) {
	*s += size(len(b))
	return len(b), nil
}
