package torture

import (
	"errors"
	"os"
	"testing"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// readHistory reads a history that was written.
func readHistory(t *testing.T, path string) []check.Event {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var events []check.Event
	if err := check.ReadHistory(file, func(e check.Event) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	return events
}

func TestARecorderWritesWhatItChecks(t *testing.T) {
	rec, events := testRecorder(t)
	rec.add(check.Event{Kind: check.Topic, Topic: "t", Partitions: 1})
	first, second := rec.publisher("t", check.Stored), rec.publisher("t", check.Stored)
	if first != 1 || second != 2 {
		t.Errorf("publishers %d and %d", first, second)
	}
	over := rec.fault("kill", []string{"broker-1"})
	over()
	rec.add(check.Event{Kind: check.Send, Messages: []check.Message{{Publisher: 1, Number: 1}}})
	s, faults, violations, doubts := rec.progress()
	if s.Sent != 1 || faults != 1 || violations != 0 || doubts != 0 {
		t.Errorf("%d sent, %d faults, %d violations, %d in doubt", s.Sent, faults, violations, doubts)
	}
	var kinds []check.EventKind
	last := int64(-1)
	for _, e := range events() {
		kinds = append(kinds, e.Kind)
		if e.At < last {
			t.Errorf("%s at %d comes behind %d", e.Kind, e.At, last)
		}
		last = e.At
	}
	want := []check.EventKind{check.Topic, check.Publisher, check.Publisher, check.Fault, check.Lifted, check.Send}
	if len(kinds) != len(want) {
		t.Fatalf("events: %v", kinds)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("event %d is %s, want %s", i, kinds[i], want[i])
		}
	}
}

func TestAnswersAreNoted(t *testing.T) {
	rec, events := testRecorder(t)
	p := &publisher{recorder: rec}
	rec.add(check.Event{Kind: check.Topic, Topic: "t", Partitions: 1})
	n := rec.publisher("t", check.Default)
	tokens := []uint64{1, 2}
	p.answered(n, client.Results{Tokens: tokens, BaseOffset: 7, Level: client.AckReplicated})
	p.answered(n, client.Results{Tokens: tokens, BaseOffset: -1, Err: client.ErrNotStored})
	p.answered(n, client.Results{Tokens: tokens, BaseOffset: -1, Err: errors.Join(client.ErrUnknown, errors.New("cause"))})
	got := events()[2:]
	for i, want := range []check.EventKind{check.Acked, check.NotStored, check.Unknown} {
		if e := got[i]; e.Kind != want || len(e.Messages) != 2 || e.Messages[1] != (check.Message{Publisher: n, Number: 2}) {
			t.Errorf("answer %d: %+v", i, e)
		}
	}
	if e := got[0]; e.Offset != 7 || e.Level != check.Replicated {
		t.Errorf("ack: %+v", e)
	}
}

func TestVariety(t *testing.T) {
	spread, impatient, large := false, false, false
	for i := range 4 {
		o := variety(i, client.AckStored)
		spread = spread || o.Spread
		impatient = impatient || o.DeliveryTimeout > 0
		large = large || o.Linger > client.DefaultLinger
		if o.Acks != client.AckStored || o.Buffer == 0 {
			t.Errorf("publisher %d: %+v", i, o)
		}
	}
	if !spread || !impatient || !large {
		t.Errorf("some spread: %v, some give up: %v, some gather more: %v", spread, impatient, large)
	}
}
