package pub

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// show writes a message so that nil and empty differ.
func show(m client.Message) string {
	text := func(b []byte) string {
		if b == nil {
			return "null"
		}
		return fmt.Sprintf("%q", b)
	}
	s := text(m.Key) + ":" + text(m.Value)
	for _, h := range m.Headers {
		s += fmt.Sprintf(" %s=%s", h.Key, text(h.Value))
	}
	if m.Partition != client.AnyPartition {
		s += fmt.Sprintf(" p%d", m.Partition)
	}
	if m.Timestamp != 0 {
		s += fmt.Sprintf(" @%d", m.Timestamp)
	}
	return s
}

// readAll takes an input apart to its end.
func readAll(s source, r io.Reader) ([]string, error) {
	s.reset(r)
	var all []string
	for {
		m := client.Message{Partition: client.AnyPartition}
		if err := s.next(&m); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, show(m))
	}
}

func plain(s source) *shaped { return &shaped{source: s, partition: client.AnyPartition} }

func TestSources(t *testing.T) {
	newline := func() *lines { return &lines{delimiter: []byte("\n")} }
	pattern := func(layout string) source {
		s, err := newTemplate(layout)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	tests := []struct {
		name   string
		source source
		input  string
		want   []string
	}{
		{"lines", plain(newline()), "a\n\nb c\r\n", []string{`null:"a"`, `null:""`, `null:"b c\r"`}},
		{"lines, last one broken", plain(newline()), "a\nb", []string{`null:"a"`, `null:"b"`}},
		{"lines, none", plain(newline()), "", nil},
		{"lines, null", &shaped{source: newline(), partition: client.AnyPartition, null: true}, "\nx\n", []string{`null:null`, `null:"x"`}},
		{"lines, long delimiter", plain(&lines{delimiter: []byte("--")}), "a-b--c---d--", []string{`null:"a-b"`, `null:"c"`, `null:"-d"`}},
		{"lines, keys", plain(&lines{delimiter: []byte("\n"), key: []byte("::")}), "k::v::w\n::v\nv\nk::\n",
			[]string{`"k":"v::w"`, `"":"v"`, `null:"v"`, `"k":""`}},
		{"lines, fixed key and header", &shaped{source: &lines{delimiter: []byte{0}, key: []byte(":")}, key: []byte("f"), partition: 3,
			headers: []record.RecordHeader{{Key: []byte("h"), Value: []byte("1")}}}, "k:a\x00b\x00", []string{`"k":"a" h="1" p3`, `"f":"b" h="1" p3`}},
		{"raw", plain(&whole{}), "a\nb\n", []string{`null:"a\nb\n"`}},
		{"raw, empty", plain(&whole{}), "", []string{`null:""`}},
		{"raw, null", &shaped{source: &whole{}, partition: client.AnyPartition, null: true}, "", []string{`null:null`}},
		{"length", plain(&lengths{}), "\x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x02\n\x00", []string{`null:"a"`, `null:""`, `null:"\n\x00"`}},
		{"json", plain(&envelopes{}), `{"value":"v","key":"","partition":2,"timestamp":7,"offset":9,"headers":[["a",null]]} {"value":null}`,
			[]string{`"":"v" a=null p2 @7`, `null:null`}},
		{"json, anew", &shaped{source: &envelopes{}, partition: client.AnyPartition, anew: true}, `{"value":"v","partition":2}`, []string{`null:"v"`}},
		{"json, partition and key given", &shaped{source: &envelopes{}, partition: 5, key: []byte("f")}, `{"value":"v","partition":2}{"value":"w","key":"k"}`,
			[]string{`"f":"v" p5`, `"k":"w" p5`}},
		{"template", plain(pattern(`%k %v\n`)), "a b\n x y\n", []string{`"a":"b"`, `"":"x y"`}},
		{"template, last end missing", plain(pattern(`%k %v\n`)), "a b\nc d", []string{`"a":"b"`, `"c":"d"`}},
		{"template, half an end", plain(pattern(`%k=%v{hex}\x2d-%%`)), "a=61--%c=62-", []string{`"a":"a"`, `"c":"b"`}},
		{"template, two ends", plain(pattern(`%v\n`)), "a\n\n", []string{`null:"a"`, `null:""`}},
		{"template, empty", plain(pattern(`%v\n`)), "", nil},
		{"template, partition and time", plain(pattern(`%p %d %v{hex}\n`)), "3 99 6162\n", []string{`null:"ab" p3 @99`}},
		{"template, headers", plain(pattern(`%H %h{%k=%v }%v\n`)), "2 a=1 b=2 v\n0 w\n", []string{`null:"v" a="1" b="2"`, `null:"w"`}},
		{"template, NUL", plain(pattern(`%v\0`)), "a\nb\x00c\x00", []string{`null:"a\nb"`, `null:"c"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i, r := range []io.Reader{
				strings.NewReader(test.input),
				iotest.OneByteReader(strings.NewReader(test.input)),
				iotest.DataErrReader(strings.NewReader(test.input)),
			} {
				got, err := readAll(test.source, r)
				if err != nil || strings.Join(got, "|") != strings.Join(test.want, "|") {
					t.Errorf("reader %d: %v\ngot  %s\nwant %s", i, err, got, test.want)
				}
			}
		})
	}
}

func TestSourcesReportBrokenInput(t *testing.T) {
	broken := errors.New("cable cut")
	tests := []struct {
		name   string
		source source
		input  io.Reader
		before int // messages that come first
		want   error
	}{
		{"lines, read error", &lines{delimiter: []byte("\n")}, io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 1, broken},
		{"raw, read error", &whole{}, io.MultiReader(strings.NewReader("a"), iotest.ErrReader(broken)), 0, broken},
		{"length, read error", &lengths{}, io.MultiReader(strings.NewReader("\x00\x00\x00\x02a"), iotest.ErrReader(broken)), 0, broken},
		{"length, cut in the length", &lengths{}, strings.NewReader("\x00\x00\x00\x01a\x00\x00"), 1, smq.ErrInvalid},
		{"length, cut before the value", &lengths{}, strings.NewReader("\x00\x00\x00\x02"), 0, smq.ErrInvalid},
		{"length, cut in the value", &lengths{}, strings.NewReader("\x00\x00\x00\x02a"), 0, smq.ErrInvalid},
		{"length, absurd", &lengths{}, strings.NewReader("\xff\xff\xff\xff"), 0, smq.ErrTooLarge},
		{"json, garbage", &envelopes{}, strings.NewReader("{\"value\":\"\"}\nwhat"), 1, smq.ErrInvalid},
	}
	for _, test := range tests {
		got, err := readAll(test.source, test.input)
		if !errors.Is(err, test.want) || len(got) != test.before {
			t.Errorf("%s: %s, %v; want %d messages, %v", test.name, got, err, test.before, test.want)
		}
	}
}

// endless gives zeros without end and counts them.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.n += len(p)
	return len(p), nil
}

func TestOneMessageNeverFillsTheMemory(t *testing.T) {
	template, err := newTemplate(`%v\n`)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		source source
		most   int
	}{
		"raw":      {&whole{}, smq.MaxMessageSize + 1},
		"lines":    {&lines{delimiter: []byte("\n")}, 2 * (smq.MaxMessageSize + lineBuffer)},
		"template": {template, 2*smq.MaxMessageSize + 1<<20},
	} {
		var input endless
		_, err := readAll(test.source, &input)
		if !errors.Is(err, smq.ErrTooLarge) || !strings.Contains(err.Error(), "16 MiB") {
			t.Errorf("%s: %v", name, err)
		}
		if input.n > test.most {
			t.Errorf("%s: read %d bytes of a message, more than %d", name, input.n, test.most)
		}
	}
}

func TestLargestMessagePasses(t *testing.T) {
	value := bytes.Repeat([]byte("x"), smq.MaxMessageSize)
	for name, test := range map[string]struct {
		source source
		input  []byte
	}{
		"raw":    {&whole{}, value},
		"lines":  {&lines{delimiter: []byte("\n")}, append(value, '\n')},
		"length": {&lengths{}, append(binary.BigEndian.AppendUint32(nil, smq.MaxMessageSize), value...)},
	} {
		test.source.reset(bytes.NewReader(test.input))
		var m client.Message
		if err := test.source.next(&m); err != nil || len(m.Value) != smq.MaxMessageSize {
			t.Errorf("%s: %d bytes, %v", name, len(m.Value), err)
		}
	}
}

// TestLinesAgainstSplit compares with the obvious way, over buffers whose ends
// fall anywhere.
func TestLinesAgainstSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		delimiter := []string{"\n", "ab", "aab", "aaa"}[rng.IntN(4)]
		text := make([]byte, rng.IntN(200))
		for i := range text {
			text[i] = "ab\n"[rng.IntN(3)]
		}
		l := &lines{delimiter: []byte(delimiter), buffer: make([]byte, 1+rng.IntN(8))}
		got, err := readAll(plain(l), iotest.HalfReader(bytes.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		parts := strings.Split(string(text), delimiter)
		if parts[len(parts)-1] == "" {
			parts = parts[:len(parts)-1]
		}
		for _, part := range parts {
			want = append(want, fmt.Sprintf("null:%q", part))
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%q by %q:\ngot  %s\nwant %s", text, delimiter, got, want)
		}
	}
}

func TestTemplateMistakes(t *testing.T) {
	for _, layout := range []string{"%t %v\n", "%T%t%v", "%q", "%v{", "%"} {
		if s, err := newTemplate(layout); err == nil {
			if _, err = readAll(s, strings.NewReader("x")); err == nil {
				t.Errorf("%q: no error", layout)
			}
		}
	}
}

func TestLinesAllocateNothing(t *testing.T) {
	input := bytes.NewReader(bytes.Repeat([]byte("key:a line of the usual length\n"), 1000))
	s := &shaped{source: &lines{delimiter: []byte("\n"), key: []byte(":")}, partition: client.AnyPartition,
		headers: []record.RecordHeader{{Key: []byte("h")}}}
	var m client.Message
	perInput := testing.AllocsPerRun(20, func() {
		input.Seek(0, io.SeekStart)
		s.reset(input)
		for s.next(&m) == nil {
		}
	})
	if perInput > 0 {
		t.Errorf("%v allocations in 1000 lines", perInput)
	}
}

func BenchmarkLines(b *testing.B) {
	line := []byte("key:" + strings.Repeat("x", 95) + "\n")
	text := bytes.Repeat(line, 10000)
	for name, key := range map[string]string{"plain": "", "keyed": ":"} {
		b.Run(name, func(b *testing.B) {
			input := bytes.NewReader(text)
			s := &shaped{source: &lines{delimiter: []byte("\n"), key: []byte(key)}, partition: client.AnyPartition}
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			var m client.Message
			for n := 0; n < b.N; {
				input.Seek(0, io.SeekStart)
				s.reset(input)
				for n < b.N && s.next(&m) == nil {
					n++
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlines/s")
		})
	}
}
