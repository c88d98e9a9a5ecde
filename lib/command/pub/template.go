package pub

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// template reads messages by a layout as rpk's.
type template struct {
	records *kgo.RecordReader
	bound   *bounded
	record  kgo.Record

	ending      []byte // the text that the layout ends with
	keyed       bool   // the layout has a key
	partitioned bool   // the layout has the partition
}

// newTemplate checks a layout.
func newTemplate(layout string) (*template, error) {
	layout = cli.Layout(layout)
	records, err := kgo.NewRecordReader(strings.NewReader(""), layout)
	if err != nil {
		return nil, cli.Usagef("template %q: %w", layout, err)
	}
	if verb(layout, 't') || verb(layout, 'T') {
		return nil, cli.Usagef("template %q: %%t: the topic is named by the argument", layout)
	}
	return &template{records: records, ending: ending(layout), keyed: verb(layout, 'k'), partitioned: verb(layout, 'p')}, nil
}

// verb reports whether layout has the verb outside of a specification in
// braces.
func verb(layout string, letter byte) bool {
	depth := 0
	for i := 0; i < len(layout); i++ {
		switch layout[i] {
		case '{':
			depth++
		case '}':
			depth--
		case '%':
			i++
			if i < len(layout) && depth == 0 && layout[i] == letter {
				return true
			}
		}
	}
	return false
}

// ending is the text behind the last verb of a layout, which ends each message.
func ending(layout string) []byte {
	var text []byte
	for i := 0; i < len(layout); i++ {
		switch c := layout[i]; {
		case c == '\\' && i+1 < len(layout):
			n := 2
			if layout[i+1] == 'x' {
				n = 4
			}
			raw, err := cli.Unescape(layout[i:min(i+n, len(layout))])
			if err != nil {
				return nil // the layout was checked, so this is none of its escapes
			}
			text = append(text, raw...)
			i += n - 1
		case c != '%' || i+1 == len(layout):
			text = append(text, c)
		case strings.IndexByte("%{}", layout[i+1]) >= 0:
			i++
			text = append(text, layout[i])
		default:
			i += 1 + braces(layout[i+2:])
			text = nil
		}
	}
	return text
}

// braces is the length of the specification in braces that s begins with.
func braces(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			if s[0] != '{' {
				return 0
			}
			return i + 1
		}
	}
	return 0
}

func (t *template) reset(r io.Reader) {
	t.bound = &bounded{reader: &completed{reader: r, ending: t.ending}}
	t.records.SetReader(t.bound)
}

func (t *template) next(m *client.Message) error {
	t.bound.left = smq.MaxMessageSize + templateSlack
	t.record = kgo.Record{}
	err := t.records.ReadRecordInto(&t.record)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return cutShort(err)
	case err != nil:
		return err
	}
	m.Key, m.Value = t.record.Key, t.record.Value
	if m.Value == nil {
		m.Value = []byte{} // a layout cannot say null
	}
	if m.Key == nil && t.keyed {
		m.Key = []byte{}
	}
	if t.partitioned {
		m.Partition = t.record.Partition
	}
	if !t.record.Timestamp.IsZero() {
		m.Timestamp = t.record.Timestamp.UnixMilli()
	}
	for _, h := range t.record.Headers {
		m.Headers = append(m.Headers, record.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return nil
}

// templateSlack is what a template may read beyond one message: encodings,
// sizes and what is read ahead.
const templateSlack = smq.MaxMessageSize

// bounded fails once more is read than one message may need.
type bounded struct {
	reader io.Reader
	left   int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.reader.Read(p)
	b.left -= n
	return n, err
}

// completed reads an input as if its last message ended as the others do: the
// last line of a file often lacks its newline.
type completed struct {
	reader io.Reader
	ending []byte
	tail   []byte // the last bytes that were read, at most as many as ending has
	added  []byte // what of ending is still to be read; the input has ended
	ended  bool
}

func (c *completed) Read(p []byte) (int, error) {
	if c.ended {
		if len(c.added) == 0 {
			return 0, io.EOF
		}
		n := copy(p, c.added)
		c.added = c.added[n:]
		return n, nil
	}
	n, err := c.reader.Read(p)
	c.tail = append(c.tail, p[max(0, n-len(c.ending)):n]...)
	c.tail = c.tail[max(0, len(c.tail)-len(c.ending)):]
	if err != io.EOF {
		return n, err
	}
	c.ended = true
	if len(c.tail) > 0 {
		c.added = c.ending[overlap(c.tail, c.ending):]
	}
	return n, nil
}

// overlap is how much of the beginning of text the end of tail is.
func overlap(tail, text []byte) int {
	for n := min(len(tail), len(text)); n > 0; n-- {
		if bytes.HasSuffix(tail, text[:n]) {
			return n
		}
	}
	return 0
}
