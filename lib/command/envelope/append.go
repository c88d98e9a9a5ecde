package envelope

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"github.com/seaweedmq/smq/lib/record"
)

// Unset is a partition or an offset that is not known.
const Unset = -1

// Message is what an envelope holds. A nil Key or Value is null.
type Message struct {
	Topic     string // may be empty
	Partition int32  // or Unset
	Offset    int64  // or Unset
	Timestamp int64  // ms since 1970; 0: none
	Key       []byte
	Value     []byte
	Headers   []record.RecordHeader
	Error     string // why it could not be delivered; written only, and if not empty
}

// Append appends m as one line of JSON to dst. What is unset is left out.
func Append(dst []byte, m *Message) []byte {
	dst = append(dst, '{')
	if m.Topic != "" {
		dst = append(dst, `"topic":`...)
		dst = append(appendString(dst, []byte(m.Topic)), ',')
	}
	if m.Partition != Unset {
		dst = append(dst, `"partition":`...)
		dst = append(strconv.AppendInt(dst, int64(m.Partition), 10), ',')
	}
	if m.Offset != Unset {
		dst = append(dst, `"offset":`...)
		dst = append(strconv.AppendInt(dst, m.Offset, 10), ',')
	}
	if m.Timestamp != 0 {
		dst = append(dst, `"timestamp":`...)
		dst = append(strconv.AppendInt(dst, m.Timestamp, 10), ',')
	}
	dst = append(dst, `"key":`...)
	dst = AppendBytes(dst, m.Key)
	dst = append(dst, `,"value":`...)
	dst = AppendBytes(dst, m.Value)
	dst = append(dst, `,"headers":`...)
	dst = appendHeaders(dst, m.Headers)
	if m.Error != "" {
		dst = append(dst, `,"error":`...)
		dst = appendString(dst, []byte(m.Error))
	}
	return append(dst, "}\n"...)
}

func appendHeaders(dst []byte, headers []record.RecordHeader) []byte {
	dst = append(dst, '[')
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		if h.Key == nil {
			dst = append(dst, `""`...) // a name is never null
		} else {
			dst = AppendBytes(dst, h.Key)
		}
		dst = append(dst, ',')
		dst = AppendBytes(dst, h.Value)
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// AppendBytes appends b as JSON: null, a string, or {"base64":"…"}.
func AppendBytes(dst, b []byte) []byte {
	switch {
	case b == nil:
		return append(dst, "null"...)
	case utf8.Valid(b):
		return appendString(dst, b)
	}
	dst = append(dst, `{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, `"}`...)
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 are
// replaced, so it is for text that is only shown.
func AppendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	return appendString(dst, []byte(s))
}

// appendString appends s, which is UTF-8, as a JSON string.
func appendString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	plain := 0 // start of what needs no escaping
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		dst = append(dst, s[plain:i]...)
		plain = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}
