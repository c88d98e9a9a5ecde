package envelope

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// maxDocument bounds one envelope, in bytes of JSON: a message of the largest
// size, each byte of it written as \u00xx.
const maxDocument = 6*smq.MaxMessageSize + 1<<20

var errTooLarge = fmt.Errorf("envelope: %w: no message is larger than %d MiB", smq.ErrTooLarge, smq.MaxMessageSize>>20)

// Decoder reads envelopes from a stream, one JSON object after the other,
// whatever white space is between them.
type Decoder struct {
	input   *bufio.Reader
	line    []byte
	json    *json.Decoder // once the input was found not to be one object a line
	bound   *boundedReader
	bytes   []byte // holds the decoded keys, values and headers
	headers []record.RecordHeader
}

// NewDecoder reads from r.
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{input: bufio.NewReaderSize(r, 64<<10)}
}

// Decode reads the next envelope into m, whose slices are valid until the next
// call. It returns io.EOF at the end. An smq.ErrInvalid that is no *SyntaxError
// tells of JSON that is no envelope; the next call goes on behind it. Any other
// error ends the stream: a *SyntaxError, an smq.ErrTooLarge, or the reader's own.
func (d *Decoder) Decode(m *Message) error {
	text, err := d.document()
	if err != nil {
		return err
	}
	if text[0] != '{' {
		return fmt.Errorf("%w envelope: %s is not a JSON object", smq.ErrInvalid, excerpt(string(text)))
	}
	*m = Message{Partition: Unset, Offset: Unset}
	// Nothing decodes to more bytes than its text has, so what m points to
	// is never moved.
	if cap(d.bytes) < len(text) {
		d.bytes = make([]byte, 0, 2*len(text))
	}
	d.bytes = d.bytes[:0]
	return d.members(text, m)
}

// Unfinished is how many bytes of an envelope without an end Decode had read when
// it returned the reader's error.
func (d *Decoder) Unfinished() int {
	rest := d.line
	if d.json != nil {
		rest, _ = io.ReadAll(d.json.Buffered()) // it is in memory, and gives no error
	}
	return len(bytes.TrimSpace(rest))
}

// document returns the text of the next JSON value, without white space around
// it. Lines that are whole documents, the usual case, take the short way.
func (d *Decoder) document() ([]byte, error) {
	for d.json == nil {
		line, err := d.nextLine()
		if err != nil && (err != io.EOF || len(line) == 0) {
			return nil, err
		}
		text := bytes.TrimSpace(line)
		if len(text) > 0 && gjson.ValidBytes(text) {
			return text, nil
		}
		if len(text) > 0 {
			d.bound = &boundedReader{reader: io.MultiReader(bytes.NewReader(line), d.input)}
			d.json = json.NewDecoder(d.bound)
		}
	}
	d.bound.left = maxDocument
	var text json.RawMessage
	err := d.json.Decode(&text)
	return text, explain(err)
}

// nextLine reads up to the end of a line, or of the input.
func (d *Decoder) nextLine() ([]byte, error) {
	d.line = d.line[:0]
	for {
		part, err := d.input.ReadSlice('\n')
		d.line = append(d.line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return d.line, err
		}
		if len(d.line) > maxDocument {
			return nil, errTooLarge
		}
	}
}

// SyntaxError says that a text is no JSON, an smq.ErrInvalid. Where it goes on
// behind that nobody can tell.
type SyntaxError struct{ text string }

// Error says what is wrong with the text.
func (e *SyntaxError) Error() string { return smq.ErrInvalid.Error() + " JSON: " + e.text }

// Unwrap gives smq.ErrInvalid.
func (e *SyntaxError) Unwrap() error { return smq.ErrInvalid }

func explain(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return &SyntaxError{syntax.Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &SyntaxError{"the input ends in the middle of an envelope"}
	}
	return err
}

func (d *Decoder) members(text []byte, m *Message) error {
	var err error
	found := false
	gjson.ParseBytes(text).ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "topic":
			m.Topic = v.String()
		case "partition":
			var n int64
			n, err = integer(v, 32)
			m.Partition = int32(n)
		case "offset":
			m.Offset, err = integer(v, 64)
		case "timestamp":
			m.Timestamp, err = integer(v, 64)
			m.Timestamp = max(m.Timestamp, 0)
		case "key":
			m.Key, err = d.value(v)
		case "value":
			found = true
			m.Value, err = d.value(v)
		case "headers":
			m.Headers, err = d.headerList(v)
		case "ref":
			if v.Type != gjson.Null {
				err = fmt.Errorf("%w: references are not taken", smq.ErrInvalid)
			}
		}
		if err != nil {
			err = fmt.Errorf("envelope, %q: %w", name.Str, err)
		}
		return err == nil
	})
	if err == nil && !found {
		err = fmt.Errorf(`%w envelope: it has no "value" (null is one)`, smq.ErrInvalid)
	}
	return err
}

// integer reads a whole number of 0 or more; null and -1 are Unset.
func integer(v gjson.Result, bits int) (int64, error) {
	if v.Type == gjson.Null {
		return Unset, nil
	}
	n, err := strconv.ParseInt(v.Raw, 10, bits)
	if err != nil || n < Unset {
		return 0, fmt.Errorf("%w: %s is not a whole number in range", smq.ErrInvalid, excerpt(v.Raw))
	}
	return n, nil
}

// value reads null, a string or {"base64":"…"}.
func (d *Decoder) value(v gjson.Result) ([]byte, error) {
	switch {
	case v.Type == gjson.Null:
		return nil, nil
	case v.Type == gjson.String:
		return d.unquote(v.Raw)
	case v.IsObject():
		if text := v.Get("base64"); text.Type == gjson.String {
			start := len(d.bytes)
			b, err := base64.StdEncoding.AppendDecode(d.bytes, []byte(text.Str))
			if err != nil {
				return nil, fmt.Errorf("%w base64: %w", smq.ErrInvalid, err)
			}
			d.bytes = b
			return b[start:len(b):len(b)], nil
		}
	}
	return nil, fmt.Errorf(`%w: %s is none of null, a string and {"base64":"…"}`, smq.ErrInvalid, excerpt(v.Raw))
}

func (d *Decoder) headerList(v gjson.Result) ([]record.RecordHeader, error) {
	if v.Type == gjson.Null {
		return nil, nil
	}
	if !v.IsArray() {
		return nil, fmt.Errorf(`%w: %s is not a list of ["name","value"]`, smq.ErrInvalid, excerpt(v.Raw))
	}
	d.headers = d.headers[:0]
	var err error
	v.ForEach(func(_, pair gjson.Result) bool {
		var h record.RecordHeader
		if h, err = d.header(pair); err == nil {
			d.headers = append(d.headers, h)
		}
		return err == nil
	})
	return d.headers, err
}

func (d *Decoder) header(pair gjson.Result) (record.RecordHeader, error) {
	var parts [2][]byte
	count := 0
	var err error
	if pair.IsArray() {
		pair.ForEach(func(_, v gjson.Result) bool {
			if count < len(parts) {
				parts[count], err = d.value(v)
			}
			count++
			return err == nil
		})
	}
	switch {
	case err != nil:
		return record.RecordHeader{}, err
	case count != len(parts) || parts[0] == nil:
		return record.RecordHeader{}, fmt.Errorf(`%w: %s is not ["name","value"]`, smq.ErrInvalid, excerpt(pair.Raw))
	}
	return record.RecordHeader{Key: parts[0], Value: parts[1]}, nil
}

// unquote decodes a string of valid JSON. What JSON can spell but UTF-8 cannot
// hold is refused rather than replaced: the message would be another one.
func (d *Decoder) unquote(quoted string) ([]byte, error) {
	s := quoted[1 : len(quoted)-1]
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%w: it is not UTF-8 (bytes go into {\"base64\":…})", smq.ErrInvalid)
	}
	start := len(d.bytes)
	for {
		next := strings.IndexByte(s, '\\')
		if next < 0 {
			break
		}
		d.bytes = append(d.bytes, s[:next]...)
		s = s[next:]
		r, size := escape(s)
		if size < 0 {
			return nil, fmt.Errorf("%w: half of a surrogate pair, %s", smq.ErrInvalid, excerpt(s))
		}
		d.bytes = utf8.AppendRune(d.bytes, r)
		s = s[size:]
	}
	d.bytes = append(d.bytes, s...)
	return d.bytes[start:len(d.bytes):len(d.bytes)], nil
}

var escapes = map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape decodes the escape sequence at the start of s, and tells its length,
// which is negative when it is half of a surrogate pair.
func escape(s string) (r rune, size int) {
	if s[1] != 'u' {
		if r, ok := escapes[s[1]]; ok {
			return r, 2
		}
		return rune(s[1]), 2
	}
	r = hexRune(s[2:6])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if r = utf16.DecodeRune(r, hexRune(s[8:12])); r != utf8.RuneError {
			return r, 12
		}
	}
	return utf8.RuneError, -1
}

func hexRune(digits string) rune {
	n, err := strconv.ParseUint(digits, 16, 16)
	if err != nil {
		return utf8.RuneError // cannot be: the text is valid JSON
	}
	return rune(n)
}

// excerpt is the start of a text, for error messages.
func excerpt(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// boundedReader fails once more has been read than one envelope may need.
type boundedReader struct {
	reader io.Reader
	left   int
}

// Read reads on, up to the bound.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.reader.Read(p)
	b.left -= n
	return n, err
}
