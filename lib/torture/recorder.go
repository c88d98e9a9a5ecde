package torture

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/torture/check"
)

// recorder writes down what happens, and has it checked as it comes. It is safe
// for concurrent use.
type recorder struct {
	start time.Time

	mu         sync.Mutex
	checker    *check.Checker
	file       *os.File
	out        *bufio.Writer
	line       []byte
	err        error // the first one of writing
	publishers uint32
	faults     int
}

func newRecorder(path string, o check.Options) (*recorder, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("write the history: %w", err)
	}
	return &recorder{start: time.Now(), checker: check.New(o), file: file, out: bufio.NewWriterSize(file, 1<<20)}, nil
}

// now is the time since the start in µs, as events have it.
func (r *recorder) now() int64 { return time.Since(r.start).Microseconds() }

// at is a time by the clock on the wall as events have it.
func (r *recorder) at(t time.Time) int64 { return t.Sub(r.start.Round(0)).Microseconds() }

// add notes that something has just happened.
func (r *recorder) add(e check.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(e)
}

func (r *recorder) note(e check.Event) {
	e.At = r.now()
	r.checker.Add(e)
	var err error
	if r.line, err = e.AppendLine(r.line[:0]); err == nil {
		_, err = r.out.Write(r.line)
	}
	if r.err == nil {
		r.err = err
	}
}

// publisher notes a new life of a publisher and gives it its number.
func (r *recorder) publisher(topic string, asked check.Level) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publishers++
	r.note(check.Event{Kind: check.Publisher, Publisher: r.publishers, Topic: topic, Level: asked})
	return r.publishers
}

// fault notes that a fault begins. Call over when it is.
func (r *recorder) fault(name string, parts []string) (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults++
	number := r.faults
	r.note(check.Event{Kind: check.Fault, Fault: number, Text: name, Parts: parts})
	return func() { r.add(check.Event{Kind: check.Lifted, Fault: number}) }
}

// progress is how it stands. What is in doubt is a violation unless the layout
// says, in the end, that it is excused.
func (r *recorder) progress() (s check.Statistics, faults, violations, doubts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.checker.Statistics()
	acked := make(map[check.Level]int, len(s.Acked))
	for level, n := range s.Acked {
		acked[level] = n
	}
	s.Acked, s.Faults = acked, nil // the checker goes on with its own
	return s, r.faults, r.checker.Violations(), r.checker.Doubts()
}

// finish is what the history says, and the end of it.
func (r *recorder) finish() (check.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.err, r.out.Flush(), r.file.Close()); err != nil {
		return check.Result{}, fmt.Errorf("write the history: %w", err)
	}
	return r.checker.Finish(), nil
}
