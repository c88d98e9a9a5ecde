package pub

import (
	"bytes"
	"io"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// lineBuffer is how much of the input lines reads at a time, in bytes.
const lineBuffer = 256 << 10

// lines reads messages that end with a delimiter; the last one may lack it.
type lines struct {
	delimiter []byte
	key       []byte // ends the key, which comes first; empty: there are no keys

	reader io.Reader
	buffer []byte
	start  int // of what was not handed out yet
	end    int // of what was read
	err    error
	within bool // a line that is too large and was not handed out
}

func (l *lines) reset(r io.Reader) {
	l.reader, l.start, l.end, l.err, l.within = r, 0, 0, nil, false
	if l.buffer == nil {
		l.buffer = make([]byte, lineBuffer)
	}
}

func (l *lines) next(m *client.Message) error {
	line, err := l.line()
	if err != nil {
		return err
	}
	if len(l.key) > 0 {
		if key, value, found := bytes.Cut(line, l.key); found {
			m.Key, m.Value = key[:len(key):len(key)], value
			return nil
		}
	}
	m.Value = line
	return nil
}

// line returns the next line without its delimiter. When nothing is left, it
// returns why the input ended.
func (l *lines) line() ([]byte, error) {
	if l.within {
		l.skip()
	}
	searched := 0 // bytes from start on that hold no delimiter
	for {
		if at := l.find(l.buffer[l.start+searched : l.end]); at >= 0 {
			line := l.buffer[l.start : l.start+searched+at]
			l.start += searched + at + len(l.delimiter)
			return line, nil
		}
		// A delimiter may have begun at the end of what was searched.
		searched = max(0, l.end-l.start-len(l.delimiter)+1)
		if l.err != nil {
			return l.last()
		}
		if searched > smq.MaxMessageSize+len(l.key) {
			l.within = true
			return nil, badMessage{errTooLarge}
		}
		l.read()
	}
}

// skip goes on behind the next delimiter, or to the end of the input.
func (l *lines) skip() {
	l.within = false
	for {
		if at := l.find(l.buffer[l.start:l.end]); at >= 0 {
			l.start += at + len(l.delimiter)
			return
		}
		if l.err != nil {
			l.start = l.end
			return
		}
		l.start = max(l.start, l.end-len(l.delimiter)+1) // a delimiter may have begun
		l.read()
	}
}

func (l *lines) find(b []byte) int {
	if len(l.delimiter) == 1 {
		return bytes.IndexByte(b, l.delimiter[0])
	}
	return bytes.Index(b, l.delimiter)
}

// last returns what is left before the end of the input. If the input broke
// off, that is no whole line.
func (l *lines) last() ([]byte, error) {
	if l.err != io.EOF || l.start == l.end {
		return nil, l.err
	}
	line := l.buffer[l.start:l.end]
	l.start = l.end
	return line, nil
}

// read reads more behind what is there, which it moves to the front first.
func (l *lines) read() {
	if l.start > 0 {
		copy(l.buffer, l.buffer[l.start:l.end])
		l.start, l.end = 0, l.end-l.start
	}
	if l.end == len(l.buffer) {
		l.buffer = append(l.buffer, make([]byte, len(l.buffer))...)
	}
	n, err := l.reader.Read(l.buffer[l.end:])
	l.end += n
	l.err = err
}

// unfinished is the number of bytes of a line that had no end yet when the
// input broke off.
func (l *lines) unfinished() int { return l.end - l.start }
