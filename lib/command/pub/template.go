package pub

import (
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

	keyed       bool // the layout has a key
	partitioned bool // the layout has the partition
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
	return &template{records: records, keyed: verb(layout, 'k'), partitioned: verb(layout, 'p')}, nil
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

func (t *template) reset(r io.Reader) {
	t.bound = &bounded{reader: r}
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
