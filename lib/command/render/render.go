// Package render shows messages as text: in the formats of smq-sub -f.
package render

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/envelope"
	"github.com/seaweedmq/smq/lib/record"
)

// Formats are the names of the formats; a template is one too.
var Formats = []string{"value", "raw", "length", "json"}

// Func appends a message, as it is shown, to dst. It keeps state and belongs to
// one goroutine at a time.
type Func func(dst []byte, topic string, partition int32, r *record.Record) []byte

// New makes the function of a format; delimiter is for the format value. What
// is wrong with the format is a usage error.
func New(format string, delimiter []byte) (Func, error) {
	switch {
	case format == "value":
		return func(dst []byte, _ string, _ int32, r *record.Record) []byte {
			return append(append(dst, r.Value...), delimiter...)
		}, nil
	case format == "raw":
		return func(dst []byte, _ string, _ int32, r *record.Record) []byte { return append(dst, r.Value...) }, nil
	case format == "length":
		return func(dst []byte, _ string, _ int32, r *record.Record) []byte {
			return append(binary.BigEndian.AppendUint32(dst, uint32(len(r.Value))), r.Value...)
		}, nil
	case format == "json":
		return appendEnvelope, nil
	case strings.ContainsAny(format, `%\`):
		return newTemplate(format)
	}
	return nil, cli.OneOf("format", format, Formats...)
}

func appendEnvelope(dst []byte, topic string, partition int32, r *record.Record) []byte {
	return envelope.Append(dst, &envelope.Message{
		Topic: topic, Partition: partition, Offset: r.Offset, Timestamp: r.Timestamp,
		Key: r.Key, Value: r.Value, Headers: r.Headers,
	})
}

// template renders by a layout as rpk's, with {json} for keys, values and
// topics added. It is a row of parts.
type template struct {
	parts  []func(dst []byte) []byte
	record kgo.Record
	key    []byte // as record has it, but null stays null
	value  []byte
}

func newTemplate(layout string) (Func, error) {
	t := &template{}
	for _, piece := range splitJSON(cli.Layout(layout)) {
		switch piece {
		case "%k{json}":
			t.parts = append(t.parts, func(dst []byte) []byte { return envelope.AppendBytes(dst, t.key) })
		case "%v{json}":
			t.parts = append(t.parts, func(dst []byte) []byte { return envelope.AppendBytes(dst, t.value) })
		case "%t{json}":
			t.parts = append(t.parts, func(dst []byte) []byte { return envelope.AppendString(dst, t.record.Topic) })
		default:
			f, err := kgo.NewRecordFormatter(piece)
			if err != nil {
				return nil, cli.Usagef("template %q: %w", layout, err)
			}
			t.parts = append(t.parts, func(dst []byte) []byte { return f.AppendRecord(dst, &t.record) })
		}
	}
	return t.render, nil
}

// splitJSON takes a layout apart at its verbs with {json}, which are pieces by
// themselves.
func splitJSON(layout string) []string {
	var pieces []string
	start := 0
	for i := 0; i < len(layout); i++ {
		if layout[i] == '\\' {
			i++
			continue
		}
		if layout[i] != '%' || i+1 == len(layout) {
			continue
		}
		if strings.HasPrefix(layout[i+2:], "{json}") && strings.IndexByte("kvt", layout[i+1]) >= 0 {
			end := i + 2 + len("{json}")
			pieces = append(pieces, layout[start:i], layout[i:end])
			start, i = end, end-1
			continue
		}
		i++ // the verb, which may be a percent sign
	}
	pieces = append(pieces, layout[start:])
	return slices.DeleteFunc(pieces, func(p string) bool { return p == "" })
}

func (t *template) render(dst []byte, topic string, partition int32, r *record.Record) []byte {
	headers := t.record.Headers[:0]
	for _, h := range r.Headers {
		headers = append(headers, kgo.RecordHeader{Key: string(h.Key), Value: h.Value})
	}
	t.key, t.value = r.Key, r.Value
	t.record = kgo.Record{
		Topic: topic, Partition: partition, Offset: r.Offset, Timestamp: time.UnixMilli(r.Timestamp),
		Key: r.Key, Value: r.Value, Headers: headers,
	}
	for _, part := range t.parts {
		dst = part(dst)
	}
	return dst
}
