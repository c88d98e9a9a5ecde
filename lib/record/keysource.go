package record

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/seaweedmq/smq/lib/smq"
)

type keyKind int8

const (
	fromKey keyKind = iota
	fromHeader
	fromJSON
)

const (
	headerPrefix = "header:"
	jsonPrefix   = "json:"
)

// KeySource tells which part of a message decides on its partition. The zero
// value is the message's key. Two of them are equal if their texts are.
type KeySource struct {
	kind keyKind
	arg  string // as written: a header's name or a path
	path string // the path for gjson, where nothing but the dots is special
}

// ParseKeySource reads one of
//
//	key           the message's key
//	header:NAME   the value of its last header of this name
//	json:PATH     a field of its value, which is JSON
//
// A PATH is field names joined by dots; in an array, a number counts from 0. A
// backslash takes the meaning from a dot or a backslash. The error is an
// smq.ErrInvalid.
func ParseKeySource(s string) (KeySource, error) {
	if s == "key" {
		return KeySource{}, nil
	}
	if name, ok := strings.CutPrefix(s, headerPrefix); ok && name != "" {
		return KeySource{kind: fromHeader, arg: name}, nil
	}
	if arg, ok := strings.CutPrefix(s, jsonPrefix); ok {
		path, err := jsonPath(arg)
		if err != nil {
			return KeySource{}, fmt.Errorf("key source %q: %w", s, err)
		}
		return KeySource{kind: fromJSON, arg: arg, path: path}, nil
	}
	return KeySource{}, fmt.Errorf("%w key source %q: use key, header:NAME or json:PATH", smq.ErrInvalid, s)
}

// jsonPath turns a path into one of gjson without its queries, wildcards and
// modifiers.
func jsonPath(arg string) (string, error) {
	var names []string
	var name strings.Builder
	for i := 0; i < len(arg); i++ {
		switch arg[i] {
		case '.':
			names = append(names, name.String())
			name.Reset()
			continue
		case '\\':
			if i++; i == len(arg) || arg[i] != '.' && arg[i] != '\\' {
				return "", fmt.Errorf("%w path: a backslash stands before a dot or a backslash only", smq.ErrInvalid)
			}
		}
		name.WriteByte(arg[i])
	}
	names = append(names, name.String())
	for i, n := range names {
		if n == "" {
			return "", fmt.Errorf("%w path: it has an empty name", smq.ErrInvalid)
		}
		names[i] = gjson.Escape(n)
	}
	return strings.Join(names, "."), nil
}

// String is the form that ParseKeySource reads back.
func (s KeySource) String() string {
	switch s.kind {
	case fromHeader:
		return headerPrefix + s.arg
	case fromJSON:
		return jsonPrefix + s.arg
	}
	return "key"
}

// MarshalText is String.
func (s KeySource) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseKeySource.
func (s *KeySource) UnmarshalText(text []byte) error {
	parsed, err := ParseKeySource(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Key gives the bytes that decide on a message's partition, for Partition. ok
// is false if the message has none: a null key, no such header or a null one,
// a value that is not valid JSON, no such field or one that is null, an object
// or an array (equal ones can be written in many ways). A JSON string counts by
// its content; a number, true and false by their text. The result may alias
// the message.
func (s KeySource) Key(key, value []byte, headers []RecordHeader) (b []byte, ok bool) {
	switch s.kind {
	case fromHeader:
		return lastHeader(headers, s.arg)
	case fromJSON:
		return jsonField(value, s.path)
	}
	return key, key != nil
}

func lastHeader(headers []RecordHeader, name string) ([]byte, bool) {
	for i := len(headers) - 1; i >= 0; i-- {
		if string(headers[i].Key) == name {
			return headers[i].Value, headers[i].Value != nil
		}
	}
	return nil, false
}

func jsonField(value []byte, path string) ([]byte, bool) {
	if !gjson.ValidBytes(value) {
		return nil, false
	}
	field := gjson.GetBytes(value, path)
	switch field.Type {
	case gjson.String:
		return []byte(field.Str), true
	case gjson.Number, gjson.True, gjson.False:
		return []byte(field.Raw), true
	}
	return nil, false
}
