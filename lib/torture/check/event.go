package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Message names a message: one life of a publisher, from 1, and which of its
// messages, from 1. The zero Message is none.
type Message struct{ Publisher, Number uint32 }

// String is the form 3.17.
func (m Message) String() string { return fmt.Sprintf("%d.%d", m.Publisher, m.Number) }

// MarshalText gives the form of String.
func (m Message) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the form of String.
func (m *Message) UnmarshalText(text []byte) error {
	publisher, number, _ := strings.Cut(string(text), ".")
	p, err := strconv.ParseUint(publisher, 10, 32)
	if err != nil {
		return fmt.Errorf("message %q: %w", text, err)
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return fmt.Errorf("message %q: %w", text, err)
	}
	*m = Message{uint32(p), uint32(n)}
	return nil
}

// Level is what an ack promises, or what was asked for.
type Level string

// The levels, as lib/client names them.
const (
	Default    Level = "default"
	Stored     Level = "stored"
	Replicated Level = "replicated"
)

// EventKind says what happened.
type EventKind string

// The kinds of events, with the fields that they have besides At and Kind.
const (
	Topic     EventKind = "topic"      // Topic, Partitions, Linear
	Publisher EventKind = "publisher"  // Publisher, Topic, Level asked for
	Send      EventKind = "send"       // Messages: one
	Acked     EventKind = "ack"        // Messages, Partition, Offset of the first or -1, Level
	NotStored EventKind = "not_stored" // Messages, Text
	Unknown   EventKind = "unknown"    // Messages, Partition, Text; Refused
	Position  EventKind = "position"   // Who will read on from Topic, Partition, Offset; -1: from some offset
	Read      EventKind = "read"       // Who, Topic, Partition, Offset of the first, Messages
	Broken    EventKind = "broken"     // Who, Topic, Partition, Offset, Text: what could not be read, or is wrong
	Beyond    EventKind = "beyond"     // Who, Topic, Partition, Offset: it had read up to there, and the partition ends before
	Tail      EventKind = "tail"       // Who asked, at Called, for the end of Topic, Partition: Offset; Messages: the last one, when it was read too
	Fault     EventKind = "fault"      // Text, Parts that were hit, Fault: its number
	Lifted    EventKind = "lifted"     // Fault
	Stuck     EventKind = "stuck"      // Who, Text: it waits in vain, though everything has been mended
	Crashed   EventKind = "crash"      // Who, Text
	End       EventKind = "end"        // Topic, Partition, Offset: the end in the end; Text: why the final reader did not come so far
	Unclean   EventKind = "unclean"    // Topic, Partition: a segment of it that lived from Called to Until has an unclean seal; Parts: its replicas
	Damage    EventKind = "damage"     // Topic, Text: what is wrong in the store
)

// Masters stands among the parts that were hit for the masters, without which
// brokers fall silent.
const Masters = "masters"

// Final is the name of the reader that reads everything when all is mended.
const Final = "final"

// Event is a line of a history.
type Event struct {
	At         int64     `json:"t"` // µs since the start
	Kind       EventKind `json:"e"`
	Who        string    `json:"who,omitempty"`
	Topic      string    `json:"topic,omitempty"`
	Partition  int32     `json:"p,omitempty"`
	Offset     int64     `json:"o,omitempty"`
	Publisher  uint32    `json:"pub,omitempty"`
	Messages   []Message `json:"m,omitempty"`
	Level      Level     `json:"level,omitempty"`
	Called     int64     `json:"called,omitempty"` // µs since the start
	Until      int64     `json:"until,omitempty"`  // µs since the start
	Partitions int32     `json:"partitions,omitempty"`
	Linear     bool      `json:"linear,omitempty"`
	Refused    bool      `json:"refused,omitempty"` // the system gave up, not the client
	Fault      int       `json:"fault,omitempty"`
	Parts      []string  `json:"parts,omitempty"`
	Text       string    `json:"text,omitempty"`
}

// AppendLine appends the event as a line of JSON.
func (e Event) AppendLine(line []byte) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return line, fmt.Errorf("write event: %w", err)
	}
	return append(append(line, text...), '\n'), nil
}

// maxLine bounds a line of a history.
const maxLine = 64 << 20

// ReadHistory gives each event of a history, lines of JSON, to add. A last line
// that is cut off is left out.
func ReadHistory(r io.Reader, add func(Event)) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d of the history: %w", number, err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d is none of a history: %w", number, err)
		}
		add(e)
	}
}

// readLine is the next whole line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("it is longer than %d bytes", maxLine)
		}
	}
}
