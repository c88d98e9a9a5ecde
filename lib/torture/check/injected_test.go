package check

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// world is a system that keeps its promises, in a history of whose use the tests
// then break one.
type world struct {
	history
	random  *rand.Rand
	logs    [2][]Message
	pending []pendingSend
	sent    [4]uint32 // by publisher
	readers map[string]*[2]int64
}

type pendingSend struct {
	message   Message
	partition int32
	offset    int64 // -1: not appended yet
}

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 0)), readers: map[string]*[2]int64{"a": {}, "b": {}}}
	w.add(Event{Kind: Topic, Topic: "t", Partitions: 2, Linear: true})
	for p := range w.sent {
		w.add(Event{Kind: Publisher, Publisher: uint32(p + 1), Topic: "t", Level: Stored})
	}
	for _, r := range []string{"a", "b"} {
		w.from(r, 0, 0).from(r, 1, 0)
	}
	return w
}

// run does so many things at random and lets everything come to its end.
func (w *world) run(steps int) []Event {
	for range steps {
		switch w.random.IntN(5) {
		case 0:
			w.sendOne()
		case 1:
			w.appendOne()
		case 2:
			w.answerOne()
		case 3:
			w.readSome([]string{"a", "b"}[w.random.IntN(2)], int32(w.random.IntN(2)))
		case 4:
			w.askEnd(int32(w.random.IntN(2)))
		}
	}
	for range 10 * steps {
		w.appendOne()
		w.answerOne()
	}
	for p := range w.logs {
		w.finally(int32(p), w.logs[p]...)
	}
	return w.events
}

func (w *world) sendOne() {
	p := w.random.IntN(len(w.sent))
	w.sent[p]++
	m := Message{uint32(p + 1), w.sent[p]}
	w.send(m)
	// A publisher keeps to one partition, so that it has one order.
	w.pending = append(w.pending, pendingSend{m, int32(p % 2), -1})
}

// appendOne appends the first of a publisher's messages that is not appended.
func (w *world) appendOne() {
	publisher := uint32(1 + w.random.IntN(len(w.sent)))
	for i := range w.pending {
		if s := &w.pending[i]; s.message.Publisher == publisher && s.offset < 0 {
			s.offset = int64(len(w.logs[s.partition]))
			w.logs[s.partition] = append(w.logs[s.partition], s.message)
			return
		}
	}
}

// answerOne acks the first message of a publisher, or says that nobody knows
// what became of it.
func (w *world) answerOne() {
	publisher := uint32(1 + w.random.IntN(len(w.sent)))
	i := slices.IndexFunc(w.pending, func(s pendingSend) bool { return s.message.Publisher == publisher })
	if i < 0 || w.pending[i].offset < 0 {
		return
	}
	s := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	if w.random.IntN(20) == 0 {
		w.add(Event{Kind: Unknown, Messages: []Message{s.message}})
		return
	}
	w.ack(s.partition, s.offset, s.message)
}

func (w *world) readSome(who string, partition int32) {
	next := &w.readers[who][partition]
	if w.random.IntN(10) == 0 {
		*next = w.random.Int64N(int64(len(w.logs[partition])) + 1)
		w.from(who, partition, *next)
	}
	end := min(int64(len(w.logs[partition])), *next+1+w.random.Int64N(5))
	if *next < end {
		w.read(who, partition, *next, w.logs[partition][*next:end]...)
		*next = end
	}
}

func (w *world) askEnd(partition int32) {
	called := w.at() - 500
	end := int64(len(w.logs[partition]))
	if end > 0 && w.random.IntN(2) == 0 {
		w.tail(called, partition, end, w.logs[partition][end-1])
		return
	}
	w.tail(called, partition, end)
}

// pick is the index of some event of a kind for which ok holds.
func pick(random *rand.Rand, events []Event, kind EventKind, ok func(Event) bool) int {
	var all []int
	for i, e := range events {
		if e.Kind == kind && ok(e) {
			all = append(all, i)
		}
	}
	return all[random.IntN(len(all))]
}

func anyEvent(Event) bool { return true }

// finalRead is the index of the final read of some partition.
func finalRead(random *rand.Rand, events []Event) int {
	return pick(random, events, Read, func(e Event) bool { return e.Who == Final && len(e.Messages) > 10 })
}

// acked are the messages that have been acked.
func acked(events []Event) map[Message]bool {
	all := make(map[Message]bool)
	for _, e := range events {
		if e.Kind == Acked {
			for _, m := range e.Messages {
				all[m] = true
			}
		}
	}
	return all
}

// injections break one promise somewhere in a history.
var injections = []struct {
	name   string
	inject func(random *rand.Rand, events []Event) []Event
	want   []Violation // one of them at least
}{
	{"lose an acked message, and let the others move up", func(r *rand.Rand, events []Event) []Event {
		i := finalRead(r, events)
		known := acked(events)
		at := slices.IndexFunc(events[i].Messages, func(m Message) bool { return known[m] })
		events[i].Messages = slices.Delete(slices.Clone(events[i].Messages), at, at+1)
		events[i+1].Offset--
		return events
	}, []Violation{LostWrite}},
	{"lose the last messages", func(r *rand.Rand, events []Event) []Event {
		i := finalRead(r, events)
		events[i].Messages = events[i].Messages[:len(events[i].Messages)-5]
		events[i+1].Offset -= 5
		return events
	}, []Violation{LostWrite, VanishedRead}},
	{"store a message twice at the end", func(r *rand.Rand, events []Event) []Event {
		i := finalRead(r, events)
		all := events[i].Messages
		events[i].Messages = append(slices.Clone(all), all[r.IntN(len(all))])
		events[i+1].Offset++
		return events
	}, []Violation{Duplicate}},
	{"let two neighbours of one publisher change places", func(r *rand.Rand, events []Event) []Event {
		i := finalRead(r, events)
		all := slices.Clone(events[i].Messages)
		for at := range len(all) - 1 {
			if all[at].Publisher == all[at+1].Publisher {
				all[at], all[at+1] = all[at+1], all[at]
				break
			}
		}
		events[i].Messages = all
		return events
	}, []Violation{Order}},
	{"ack a message at its neighbour's offset", func(r *rand.Rand, events []Event) []Event {
		events[pick(r, events, Acked, anyEvent)].Offset++
		return events
	}, []Violation{InconsistentOffset, LostWrite}},
	{"ack a message of which it was said that it is not stored", func(r *rand.Rand, events []Event) []Event {
		e := &events[pick(r, events, Acked, anyEvent)]
		e.Kind = NotStored
		return events
	}, []Violation{AbortedRead}},
	{"let a reader skip an offset", func(r *rand.Rand, events []Event) []Event {
		e := &events[pick(r, events, Read, func(e Event) bool { return e.Who != Final && len(e.Messages) > 1 })]
		e.Offset, e.Messages = e.Offset+1, e.Messages[1:]
		return events
	}, []Violation{PollSkip}},
	{"give a reader the same messages twice", func(r *rand.Rand, events []Event) []Event {
		i := pick(r, events, Read, func(e Event) bool { return e.Who != Final })
		return slices.Insert(events, i, events[i])
	}, []Violation{NonMonotonicPoll}},
	{"show a reader another message", func(r *rand.Rand, events []Event) []Event {
		e := &events[pick(r, events, Read, func(e Event) bool { return e.Who != Final })]
		e.Messages = slices.Clone(e.Messages)
		e.Messages[0] = Message{1 + e.Messages[0].Publisher%4, 1}
		return events
	}, []Violation{InconsistentOffset, Phantom}},
	{"show a reader a message before it is sent", func(r *rand.Rand, events []Event) []Event {
		i := pick(r, events, Send, anyEvent)
		e := events[i]
		events = slices.Delete(events, i, i+1)
		return append(events, e)
	}, []Violation{Phantom}},
	{"answer a question for the end with what was true before", func(r *rand.Rand, events []Event) []Event {
		e := &events[pick(r, events, Tail, func(e Event) bool { return e.Offset > 20 })]
		e.Offset, e.Messages = e.Offset-10, nil
		return events
	}, []Violation{NotLinearizable}},
	{"answer a question for the end with what will be", func(r *rand.Rand, events []Event) []Event {
		e := &events[pick(r, events, Tail, func(e Event) bool { return e.Offset < 20 })]
		e.Offset, e.Messages = e.Offset+60, nil
		return events
	}, []Violation{NotLinearizable}},
	{"forget an answer", func(r *rand.Rand, events []Event) []Event {
		i := pick(r, events, Acked, anyEvent)
		return slices.Delete(events, i, i+1)
	}, []Violation{Unresolved}},
}

const (
	worlds = 20
	steps  = 1500
)

func checkAll(events []Event) Result {
	h := history{events: events}
	return h.check()
}

func TestWorldsThatKeepTheirPromises(t *testing.T) {
	for seed := range uint64(worlds) {
		if r := checkAll(newWorld(seed).run(steps)); len(r.Violations)+len(r.Excused)+len(r.Undecided) > 0 {
			t.Errorf("seed %d: %v", seed, r.Violations)
		}
	}
}

func TestInjectedViolationsAreFound(t *testing.T) {
	for _, c := range injections {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(worlds) {
				events := c.inject(rand.New(rand.NewPCG(seed, 1)), newWorld(seed).run(steps))
				r := checkAll(events)
				if !slices.ContainsFunc(c.want, func(v Violation) bool { return r.Violations.Of(v) > 0 }) {
					t.Errorf("seed %d: none of %v, but: %v", seed, c.want, r.Violations)
				}
			}
		})
	}
}

func TestHistoriesAreReadAsTheyAreWritten(t *testing.T) {
	events := newWorld(1).run(steps)
	var lines []byte
	var err error
	for _, e := range events {
		if lines, err = e.AppendLine(lines); err != nil {
			t.Fatal(err)
		}
	}
	var got []Event
	add := func(e Event) { got = append(got, e) }
	if err := ReadHistory(bytes.NewReader(lines), add); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(events) {
		t.Error("another history was read than was written")
	}
	got = nil
	if err := ReadHistory(bytes.NewReader(lines[:len(lines)-5]), add); err != nil || len(got) != len(events)-1 {
		t.Errorf("of a history that is cut off, %d events of %d were read, %v", len(got), len(events), err)
	}
	if err := ReadHistory(bytes.NewReader([]byte("{}\nnonsense\n")), add); err == nil {
		t.Error("nonsense was read")
	}
}
