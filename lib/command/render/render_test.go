package render

import (
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/record"
)

func TestRender(t *testing.T) {
	full := record.Record{Offset: 7, Timestamp: 1500, Key: []byte("k"), Value: []byte("v\xff"),
		Headers: []record.RecordHeader{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b")}}}
	empty := record.Record{Offset: 8, Timestamp: 1600}
	tests := []struct{ format, wantFull, wantEmpty string }{
		{"value", "v\xff|", "|"},
		{"raw", "v\xff", ""},
		{"length", "\x00\x00\x00\x02v\xff", "\x00\x00\x00\x00"},
		{"json", `{"topic":"n/t","partition":3,"offset":7,"timestamp":1500,"key":"k","value":{"base64":"dv8="},"headers":[["a","1"],["b",null]]}` + "\n",
			`{"topic":"n/t","partition":3,"offset":8,"timestamp":1600,"key":null,"value":null,"headers":[]}` + "\n"},
		{`%t %p %o %k %v %d\n`, "n/t 3 7 k v\xff 1500\n", "n/t 3 8   1600\n"},
		{`%v{hex} %v{base64}\t%%\x41\0`, "76ff dv8=\t%A\x00", " \t%A\x00"},
		{`%h{%k=%v;}%H`, "a=1;b=;2", "0"},
		{`%k{json},%v{json},%t{json}`, `"k",{"base64":"dv8="},"n/t"`, `null,null,"n/t"`},
		{`%%k{json} %i %i`, "%k{json} 1 1", "%k{json} 2 2"},
		{`%d{strftime[%F %T]}`, "1970-01-01 00:00:01", "1970-01-01 00:00:01"},
		{`x\n`, "x\n", "x\n"},
	}
	for _, test := range tests {
		r, err := New(test.format, []byte("|"))
		if err != nil {
			t.Errorf("%s: %v", test.format, err)
			continue
		}
		if got := string(r(nil, "n/t", 3, &full)); got != test.wantFull {
			t.Errorf("%s: got %q, want %q", test.format, got, test.wantFull)
		}
		if got := string(r([]byte("before "), "n/t", 3, &empty)); got != "before "+test.wantEmpty {
			t.Errorf("%s: got %q, want %q", test.format, got, test.wantEmpty)
		}
	}
}

func TestRenderMistakes(t *testing.T) {
	for _, format := range []string{"", "valu", "%", "%q", "%v{", "%v{jso}", `\q`, "%h{%v{json}}"} {
		if _, err := New(format, nil); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("%q: %v, want a usage error", format, err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	r := record.Record{Offset: 7, Timestamp: 1500, Key: []byte("key"), Value: make([]byte, 100)}
	for i := range r.Value {
		r.Value[i] = 'x'
	}
	for _, format := range []string{"value", "json", `%p %o %k=%v\n`} {
		b.Run(format, func(b *testing.B) {
			render, err := New(format, []byte("\n"))
			if err != nil {
				b.Fatal(err)
			}
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = render(dst[:0], "topic", 3, &r)
			}
		})
	}
}
