package record_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestKeySource(t *testing.T) {
	key := []byte("the key")
	headers := []record.RecordHeader{
		{Key: []byte("front"), Value: []byte("f")},
		{Key: []byte("tenant"), Value: []byte("first")},
		{Key: []byte("tenant"), Value: []byte("last")},
		{Key: []byte("null"), Value: nil},
		{Key: []byte("empty"), Value: []byte{}},
		{Key: []byte("a:b"), Value: []byte("colon")},
	}
	const none = "(none)"
	const object = `{"id": 7, "n": 1.50, "s": "é\n\"q\"", "e": "", "yes": true, "no": false, "null": null,
		"user": {"id": "u1", "tags": ["x", {"y": "z"}]}, "a.b": {"c\\d": "dotted"}, "0": "zero",
		"@this": "at", "#": "hash", "a*": "star", "ab": "not the star", "p|q": "pipe", "!x": "bang", "{z}": "brace", "ключ": "utf8"}`
	tests := []struct{ source, value, want string }{
		{"key", "", "the key"},
		{"header:tenant", "", "last"},
		{"header:front", "", "f"},
		{"header:null", "", none},
		{"header:empty", "", ""},
		{"header:a:b", "", "colon"},
		{"header:Tenant", "", none},
		{"json:id", object, "7"},
		{"json:n", object, "1.50"},
		{"json:s", object, "é\n\"q\""},
		{"json:e", object, ""},
		{"json:yes", object, "true"},
		{"json:no", object, "false"},
		{"json:null", object, none},
		{"json:missing", object, none},
		{"json:user", object, none},
		{"json:user.id", object, "u1"},
		{"json:user.tags", object, none},
		{"json:user.tags.0", object, "x"},
		{"json:user.tags.1.y", object, "z"},
		{"json:user.tags.2", object, none},
		{"json:user.tags.#", object, none},
		{"json:0", object, "zero"},
		{"json:1", `["a", "b"]`, "b"},
		{`json:a\.b.c\\d`, object, "dotted"},
		{"json:@this", object, "at"},
		{"json:@this.id", object, none},
		{"json:#", object, "hash"},
		{"json:#", `[1,2,3]`, none},
		{"json:a*", object, "star"},
		{"json:p|q", object, "pipe"},
		{"json:!x", object, "bang"},
		{"json:{z}", object, "brace"},
		{"json:ключ", object, "utf8"},
		{"json:id", `"a string"`, none},
		{"json:id", `{"id": "cut short"`, none},
		{"json:id", `text {"id": 1}`, none},
		{"json:id", ``, none},
	}
	for _, tt := range tests {
		s, err := record.ParseKeySource(tt.source)
		if err != nil {
			t.Errorf("%s: %v", tt.source, err)
			continue
		}
		b, ok := s.Key(key, []byte(tt.value), headers)
		got := string(b)
		if !ok {
			got = none
		}
		if got != tt.want {
			t.Errorf("%s of %.30s: %q, want %q", tt.source, tt.value, got, tt.want)
		}
		if s.String() != tt.source {
			t.Errorf("%s prints %s", tt.source, s)
		}
	}
	var zero record.KeySource
	if b, ok := zero.Key([]byte{}, nil, nil); !ok || len(b) != 0 {
		t.Error("an empty key counts as none")
	}
	if _, ok := zero.Key(nil, nil, nil); ok {
		t.Error("a null key counts as one")
	}
}

func TestParseKeySourceErrors(t *testing.T) {
	for _, s := range []string{
		"", "Key", "value", "header", "header:", "json", "json:", "json:.", "json:a.", "json:.a", "json:a..b", `json:a\`, `json:a\b`,
	} {
		if k, err := record.ParseKeySource(s); !errors.Is(err, smq.ErrInvalid) || k != (record.KeySource{}) {
			t.Errorf("%q: %v, %v", s, k, err)
		}
	}
}

func TestKeySourceText(t *testing.T) {
	for _, s := range []string{"key", "header:tenant", `json:a\\.b`} {
		want, err := record.ParseKeySource(s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got record.KeySource
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	got, err := record.ParseKeySource("header:x")
	if err != nil {
		t.Fatal(err)
	}
	if err := got.UnmarshalText([]byte("nope")); !errors.Is(err, smq.ErrInvalid) || got.String() != "header:x" {
		t.Errorf("%v, %v", got, err)
	}
}
