package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		message Message
		want    string
	}{
		{Message{Topic: "t", Partition: 0, Offset: 0, Timestamp: 5, Key: []byte("k"), Value: []byte("v"),
			Headers: []record.RecordHeader{{Key: []byte("a"), Value: []byte("b")}, {Key: []byte(""), Value: nil}}},
			`{"topic":"t","partition":0,"offset":0,"timestamp":5,"key":"k","value":"v","headers":[["a","b"],["",null]]}`},
		{Message{Partition: Unset, Offset: Unset}, `{"key":null,"value":null,"headers":[]}`},
		{Message{Partition: Unset, Offset: Unset, Key: []byte{}, Value: []byte("null")}, `{"key":"","value":"null","headers":[]}`},
		{Message{Partition: Unset, Offset: Unset, Value: []byte("\"\\/\x00\x1f\n\t\r\x7f é 😀 <&> ")},
			`{"key":null,"value":"\"\\/\u0000\u001f\n\t\r\u007f é 😀 <&> ","headers":[]}`},
		{Message{Partition: Unset, Offset: Unset, Key: []byte{0xff}, Value: []byte{0xc3}, Headers: []record.RecordHeader{{Key: []byte{0xfe}}}, Error: "x: \"y\""},
			`{"key":{"base64":"/w=="},"value":{"base64":"ww=="},"headers":[[{"base64":"/g=="},null]],"error":"x: \"y\""}`},
	}
	for _, test := range tests {
		got := Append(nil, &test.message)
		if string(got) != test.want+"\n" {
			t.Errorf("got  %swant %s", got, test.want)
		}
		if !json.Valid(got) {
			t.Errorf("not JSON: %s", got)
		}
	}
}

func TestDecode(t *testing.T) {
	tests := []struct {
		text string
		want Message
	}{
		{`{"value":"v"}`, Message{Partition: Unset, Offset: Unset, Value: []byte("v")}},
		{`{"value":null,"key":""}`, Message{Partition: Unset, Offset: Unset, Key: []byte{}}},
		{`{"value":"null","later":{"a":[1]},"ref":null,"partition":null,"timestamp":null,"headers":null}`, Message{Partition: Unset, Offset: Unset, Value: []byte("null")}},
		{`{"value":"\u00e9\ud83d\ude00\/\b\f\u0000"}`, Message{Partition: Unset, Offset: Unset, Value: []byte("é😀/\b\f\x00")}},
		{"\n {\"partition\":3,\n\"offset\":9,\"timestamp\":12,\"topic\":\"a/b\",\"value\":{\"base64\":\"\\/w==\"},\"headers\":[[\"a\",null],[{\"base64\":\"\"},\"\"]]} \n",
			Message{Topic: "a/b", Partition: 3, Offset: 9, Timestamp: 12, Value: []byte{0xff},
				Headers: []record.RecordHeader{{Key: []byte("a")}, {Key: []byte{}, Value: []byte{}}}}},
	}
	for _, test := range tests {
		d := NewDecoder(strings.NewReader(test.text))
		var got Message
		if err := d.Decode(&got); err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if len(got.Headers) == 0 {
			got.Headers = nil
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.text, got, test.want)
		}
		if err := d.Decode(&got); err != io.EOF {
			t.Errorf("%s: then %v", test.text, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"key":"k"}`:                            `invalid envelope: it has no "value" (null is one)`,
		`{"value":3}`:                            `envelope, "value": invalid: 3 is none of null, a string and {"base64":"…"}`,
		`{"value":{"b64":"x"}}`:                  `envelope, "value": invalid: {"b64":"x"} is none of null`,
		`{"value":{"base64":"x"}}`:               `envelope, "value": invalid base64: illegal base64 data`,
		`{"value":"\ud800"}`:                     `envelope, "value": invalid: half of a surrogate pair, \ud800`,
		`{"value":"\ud800\u0041"}`:               `half of a surrogate pair`,
		"{\"value\":\"\xff\"}":                   `envelope, "value": invalid: it is not UTF-8`,
		`{"value":"","headers":{"a":"b"}}`:       `envelope, "headers": invalid: {"a":"b"} is not a list`,
		`{"value":"","headers":[["a"]]}`:         `envelope, "headers": invalid: ["a"] is not ["name","value"]`,
		`{"value":"","headers":[["a","b","c"]]}`: `is not ["name","value"]`,
		`{"value":"","headers":[[null,"b"]]}`:    `is not ["name","value"]`,
		`{"value":"","headers":[["a",1]]}`:       `1 is none of null`,
		`{"value":"","partition":2147483648}`:    `envelope, "partition": invalid: 2147483648 is not a whole number in range`,
		`{"value":"","partition":"1"}`:           `is not a whole number`,
		`{"value":"","timestamp":1.5}`:           `is not a whole number`,
		`{"value":"","ref":{"path":"/x"}}`:       `envelope, "ref": invalid: references are not taken`,
		`["value"]`:                              `invalid envelope: ["value"] is not a JSON object`,
		`"` + strings.Repeat("é", 50) + `"`:      `é… is not a JSON object`,
		`{"value":"v"`:                           `invalid JSON: the input ends in the middle of an envelope`,
		`value`:                                  `invalid JSON: invalid character 'v'`,
	} {
		err := NewDecoder(strings.NewReader(text)).Decode(new(Message))
		if !errors.Is(err, smq.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// endless is an envelope whose value never ends.
type endless struct {
	prefix string
	begun  bool
}

func (e *endless) Read(p []byte) (int, error) {
	if !e.begun {
		e.begun = true
		return copy(p, e.prefix), nil
	}
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestDecodeBoundsMemory(t *testing.T) {
	for _, prefix := range []string{`{"value":"`, "{\n\"value\":\""} {
		err := NewDecoder(&endless{prefix: prefix}).Decode(new(Message))
		if !errors.Is(err, smq.ErrTooLarge) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestDecodeAnyWhiteSpace(t *testing.T) {
	text := "{\"value\":\"a\"}\n\n  {\"value\":\n\"b\"}{\"value\":\"c\"}\n" + `{"value":"` + strings.Repeat("d", 200<<10) + `"}`
	d := NewDecoder(strings.NewReader(text))
	var m Message
	for _, want := range []string{"a", "b", "c", strings.Repeat("d", 200<<10)} {
		if err := d.Decode(&m); err != nil || string(m.Value) != want {
			t.Fatalf("got %.9q, %v, want %.9q", m.Value, err, want)
		}
	}
	if err := d.Decode(&m); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestRoundTrip writes random messages and reads them back, all in one stream.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() []byte {
		switch rng.IntN(6) {
		case 0:
			return nil
		case 1:
			return []byte{}
		case 2:
			return []byte("null")
		case 3:
			return []byte(fmt.Sprintf("ü%c\"\\%d", rune(rng.IntN(0xd7ff)), rng.IntN(1000)))
		}
		b := make([]byte, rng.IntN(50))
		for i := range b {
			b[i] = byte(rng.UintN(256))
		}
		return b
	}
	var want []Message
	var text []byte
	for range 2000 {
		m := Message{Topic: "t", Partition: rng.Int32N(10), Offset: rng.Int64N(100), Timestamp: 1 + rng.Int64N(1e12), Key: random(), Value: random()}
		for range rng.IntN(3) {
			m.Headers = append(m.Headers, record.RecordHeader{Key: append([]byte{}, random()...), Value: random()})
		}
		want = append(want, m)
		text = Append(text, &m)
	}
	d := NewDecoder(bytes.NewReader(text))
	for i := range want {
		var got Message
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if len(got.Headers) == 0 {
			got.Headers = nil
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Fatalf("message %d\ngot  %+v\nwant %+v", i, got, want[i])
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"topic":"t","partition":1,"offset":2,"timestamp":3,"key":"k","value":{"base64":"AA=="},"headers":[["a",null]]}`))
	f.Add([]byte(`{"value":"\ud83d\ude00"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d := NewDecoder(bytes.NewReader(text))
		var first, second Message
		if d.Decode(&first) != nil {
			return
		}
		line := Append(nil, &first)
		if err := NewDecoder(bytes.NewReader(line)).Decode(&second); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if again := Append(nil, &second); !bytes.Equal(line, again) {
			t.Fatalf("%s became %s", line, again)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	line := Append(nil, &Message{Topic: "t", Partition: 1, Offset: 2, Timestamp: 3, Key: []byte("key"), Value: bytes.Repeat([]byte("v"), 100)})
	text := bytes.Repeat(line, 1000)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var m Message
	for n := 0; n < b.N; {
		d := NewDecoder(bytes.NewReader(text))
		for d.Decode(&m) == nil && n < b.N {
			n++
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	m := Message{Topic: "t", Partition: 1, Offset: 2, Timestamp: 3, Key: []byte("key"), Value: bytes.Repeat([]byte("v"), 100)}
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		line = Append(line[:0], &m)
	}
	b.SetBytes(int64(len(line)))
}

func BenchmarkDecodeLarge(b *testing.B) {
	value := make([]byte, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range value {
		value[i] = byte(rng.UintN(256))
	}
	line := Append(nil, &Message{Topic: "t", Partition: 1, Offset: 2, Timestamp: 3, Value: value})
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var m Message
	for b.Loop() {
		if err := NewDecoder(bytes.NewReader(line)).Decode(&m); err != nil {
			b.Fatal(err)
		}
	}
}
