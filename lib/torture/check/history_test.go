package check

// history is a history that a test makes by hand. Every event comes 1 ms after
// the one before.
type history struct{ events []Event }

func (h *history) add(e Event) *history {
	e.At = int64(len(h.events)+1) * 1000
	h.events = append(h.events, e)
	return h
}

// at is the time of the event that comes next.
func (h *history) at() int64 { return int64(len(h.events)+1) * 1000 }

// twoPublishers is a topic t of two partitions, and publishers 1 and 2 that ask
// for a level of ack.
func twoPublishers(level Level) *history {
	h := &history{}
	h.add(Event{Kind: Topic, Topic: "t", Partitions: 2, Linear: true})
	h.add(Event{Kind: Publisher, Publisher: 1, Topic: "t", Level: level})
	return h.add(Event{Kind: Publisher, Publisher: 2, Topic: "t", Level: level})
}

func (h *history) send(messages ...Message) *history {
	for _, m := range messages {
		h.add(Event{Kind: Send, Messages: []Message{m}})
	}
	return h
}

func (h *history) ack(partition int32, offset int64, messages ...Message) *history {
	return h.ackAt(Stored, partition, offset, messages...)
}

func (h *history) ackAt(level Level, partition int32, offset int64, messages ...Message) *history {
	return h.add(Event{Kind: Acked, Level: level, Partition: partition, Offset: offset, Messages: messages})
}

func (h *history) from(who string, partition int32, offset int64) *history {
	return h.add(Event{Kind: Position, Who: who, Topic: "t", Partition: partition, Offset: offset})
}

func (h *history) read(who string, partition int32, offset int64, messages ...Message) *history {
	return h.add(Event{Kind: Read, Who: who, Topic: "t", Partition: partition, Offset: offset, Messages: messages})
}

// finally is what the final reader finds, from offset 0 on.
func (h *history) finally(partition int32, messages ...Message) *history {
	h.from(Final, partition, 0)
	if len(messages) > 0 {
		h.read(Final, partition, 0, messages...)
	}
	return h.add(Event{Kind: End, Topic: "t", Partition: partition, Offset: int64(len(messages))})
}

func (h *history) tail(called int64, partition int32, end int64, last ...Message) *history {
	return h.add(Event{Kind: Tail, Who: "asker", Called: called, Topic: "t", Partition: partition, Offset: end, Messages: last})
}

func (h *history) fault(number int, parts ...string) *history {
	return h.add(Event{Kind: Fault, Fault: number, Text: "kill", Parts: parts})
}

func (h *history) check() Result {
	c := New(Options{})
	for _, e := range h.events {
		c.Add(e)
	}
	return c.Finish()
}

// m names a message.
func m(publisher, number uint32) Message { return Message{publisher, number} }
