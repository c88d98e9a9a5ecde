package pub

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/envelope"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// source takes an input apart into messages.
type source interface {
	// next fills in key, value and whatever else the input says of a message.
	// The slices are valid until the following call. io.EOF ends the input.
	next(m *client.Message) error
	// reset begins a new input.
	reset(r io.Reader)
}

// partial is a source that knows how much it holds of a message that had no end
// yet when the input broke off, in bytes.
type partial interface{ unfinished() int }

// errTooLarge is what is said of an input whose message would not be taken.
// The bytes of such a message are never gathered beyond the limit.
var errTooLarge = fmt.Errorf("%w: a message has at most %d MiB; split it (-d, or several files), "+
	"or store it elsewhere and publish where it is", smq.ErrTooLarge, smq.MaxMessageSize>>20)

// badMessage is what is wrong with a message that can be left out: the source
// goes on behind it.
type badMessage struct{ err error }

func (e badMessage) Error() string { return e.err.Error() }
func (e badMessage) Unwrap() error { return e.err }

// whole makes one message of all the input.
type whole struct {
	reader io.Reader
	buffer []byte
	done   bool
	held   int // of a message without an end
}

func (w *whole) reset(r io.Reader) { w.reader, w.done, w.held = r, false, 0 }

func (w *whole) unfinished() int { return w.held }

func (w *whole) next(m *client.Message) error {
	if w.done {
		return io.EOF
	}
	w.done = true
	w.buffer = w.buffer[:0]
	for {
		if len(w.buffer) == cap(w.buffer) {
			// One byte more than a message may have tells that it is too large.
			grown := min(max(64<<10, 2*cap(w.buffer)), smq.MaxMessageSize+1)
			w.buffer = append(make([]byte, 0, grown), w.buffer...)
		}
		n, err := w.reader.Read(w.buffer[len(w.buffer):cap(w.buffer)])
		w.buffer = w.buffer[:len(w.buffer)+n]
		switch {
		case len(w.buffer) > smq.MaxMessageSize:
			return errTooLarge
		case err == io.EOF:
			m.Value = w.buffer
			return nil
		case err != nil:
			w.held = len(w.buffer)
			return err
		}
	}
}

// lengths reads messages that follow their length, 4 bytes big-endian.
type lengths struct {
	reader io.Reader
	buffer []byte
	held   int // of a message without an end
}

func (l *lengths) reset(r io.Reader) { l.reader, l.held = r, 0 }

func (l *lengths) unfinished() int { return l.held }

func (l *lengths) next(m *client.Message) error {
	var prefix [4]byte
	if n, err := io.ReadFull(l.reader, prefix[:]); err != nil {
		l.held = n
		return cutShort(err)
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > smq.MaxMessageSize {
		return fmt.Errorf("length %d: %w", n, errTooLarge)
	}
	// Memory is taken as bytes come, not as the length claims.
	l.buffer = l.buffer[:0]
	for len(l.buffer) < int(n) {
		part := min(int(n)-len(l.buffer), max(64<<10, len(l.buffer)))
		l.buffer = append(l.buffer, make([]byte, part)...)
		if got, err := io.ReadFull(l.reader, l.buffer[len(l.buffer)-part:]); err != nil {
			l.held = len(prefix) + len(l.buffer) - part + got
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return cutShort(err)
		}
	}
	if l.buffer == nil {
		l.buffer = []byte{}
	}
	m.Value = l.buffer
	return nil
}

func cutShort(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w input: it ends in the middle of a message", smq.ErrInvalid)
	}
	return err
}

// envelopes reads the JSON form of messages.
type envelopes struct {
	decoder *envelope.Decoder
	message envelope.Message
}

func (e *envelopes) reset(r io.Reader) { e.decoder = envelope.NewDecoder(r) }

func (e *envelopes) unfinished() int { return e.decoder.Unfinished() }

func (e *envelopes) next(m *client.Message) error {
	err := e.decoder.Decode(&e.message)
	switch {
	case errors.Is(err, smq.ErrInvalid) && !errors.As(err, new(*envelope.SyntaxError)):
		return badMessage{err}
	case err != nil:
		return err
	}
	m.Key, m.Value, m.Timestamp = e.message.Key, e.message.Value, e.message.Timestamp
	m.Headers = append(m.Headers[:0], e.message.Headers...)
	if e.message.Partition != envelope.Unset {
		m.Partition = e.message.Partition
	}
	return nil
}

// shaped gives the messages of a source what the flags say of them.
type shaped struct {
	source
	key       []byte // for messages without one
	headers   []record.RecordHeader
	partition int32 // client.AnyPartition: as the source says, or chosen
	anew      bool  // whatever partition the source says is ignored
	null      bool  // empty values are null
}

func (s *shaped) next(m *client.Message) error {
	*m = client.Message{Headers: m.Headers[:0], Partition: client.AnyPartition}
	if err := s.source.next(m); err != nil {
		return err
	}
	if s.anew || s.partition != client.AnyPartition {
		m.Partition = s.partition
	}
	if m.Key == nil {
		m.Key = s.key
	}
	if s.null && len(m.Value) == 0 {
		m.Value = nil
	}
	m.Headers = append(m.Headers, s.headers...)
	return nil
}

// unfinished is 0 where the source does not know.
func (s *shaped) unfinished() int {
	if p, ok := s.source.(partial); ok {
		return p.unfinished()
	}
	return 0
}
