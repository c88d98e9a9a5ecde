package layout_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestPolicyWithDefaults(t *testing.T) {
	d := layout.DefaultPolicy()
	if got := (layout.Policy{}).WithDefaults(d); got != d {
		t.Errorf("an empty policy became %+v", got)
	}
	own := layout.Policy{
		Mode: layout.Manual, Split: layout.Load{Messages: 5, Bytes: 6}, MinSegments: 2, MaxSegments: 3,
		CoolDown: time.Second, SplitAfter: 4 * time.Second, MergeAfter: 5 * time.Second,
	}
	if got := own.WithDefaults(d); got != own {
		t.Errorf("a whole policy became %+v", got)
	}
	for _, test := range []struct{ min, max, dMin, dMax, wantMin, wantMax int }{
		{0, 0, 1, 64, 1, 64},
		{100, 0, 1, 64, 100, 100},
		{0, 2, 4, 64, 2, 2},
		{0, 0, 4, 0, 4, 0},
		{2, 3, 4, 64, 2, 3},
	} {
		got := layout.Policy{MinSegments: test.min, MaxSegments: test.max}.
			WithDefaults(layout.Policy{MinSegments: test.dMin, MaxSegments: test.dMax})
		if got.MinSegments != test.wantMin || got.MaxSegments != test.wantMax {
			t.Errorf("%+v: got %d to %d", test, got.MinSegments, got.MaxSegments)
		}
	}
}

func TestPolicyValidate(t *testing.T) {
	for _, good := range []layout.Policy{
		{},
		layout.DefaultPolicy(),
		{Mode: layout.Off, MinSegments: 5},
		{MinSegments: 5, MaxSegments: 5},
		{MaxSegments: layout.MostSegments},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, test := range []struct {
		p    layout.Policy
		want string
	}{
		{layout.Policy{Mode: "on"}, `invalid scaling: the mode "on" is none of off, manual, auto`},
		{layout.Policy{Split: layout.Load{Bytes: -1}}, "invalid scaling: a threshold of -1 bytes per second"},
		{layout.Policy{Split: layout.Load{Bytes: math.NaN()}}, "bytes per second"},
		{layout.Policy{Split: layout.Load{Messages: math.Inf(1)}}, "invalid scaling: a threshold of +Inf messages per second"},
		{layout.Policy{MinSegments: -1}, "at least -1 segments"},
		{layout.Policy{MinSegments: layout.MostSegments + 1}, "at least 4097 segments"},
		{layout.Policy{MaxSegments: -1}, "at most -1 segments"},
		{layout.Policy{MaxSegments: smq.MaxPartitions + 1}, "at most 1000001 segments"},
		{layout.Policy{MinSegments: 3, MaxSegments: 2}, "invalid scaling: at least 3 segments and at most 2"},
		{layout.Policy{CoolDown: -1}, "a negative time"},
		{layout.Policy{SplitAfter: -1}, "a negative time"},
		{layout.Policy{MergeAfter: -1}, "a negative time"},
	} {
		err := test.p.Validate()
		if !errors.Is(err, smq.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %s", test.p, err, test.want)
		}
	}
}

func TestLoadString(t *testing.T) {
	for _, test := range []struct {
		load layout.Load
		want string
	}{
		{layout.Load{}, "0B/s, 0msg/s"},
		{layout.Load{Messages: 1234.4, Bytes: 999.4}, "999B/s, 1234msg/s"},
		{layout.Load{Bytes: 999.6}, "1kB/s, 0msg/s"},
		{layout.Load{Bytes: 20e6}, "20MB/s, 0msg/s"},
		{layout.Load{Bytes: 1.2345e9}, "1.23GB/s, 0msg/s"},
	} {
		if got := test.load.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestLoadArithmetic(t *testing.T) {
	a, b := layout.Load{Messages: 1, Bytes: 10}, layout.Load{Messages: 3, Bytes: 4}
	if got := a.Add(b); got != (layout.Load{Messages: 4, Bytes: 14}) {
		t.Errorf("sum: %v", got)
	}
	if got := a.Sub(b); got != (layout.Load{Bytes: 6}) {
		t.Errorf("difference: %v", got)
	}
	if got := b.Scale(2); got != (layout.Load{Messages: 6, Bytes: 8}) {
		t.Errorf("twice: %v", got)
	}
	if a.IsZero() || !(layout.Load{}).IsZero() {
		t.Error("zero is not told from what is not")
	}
	if got := a.Cost(); got != 110 {
		t.Errorf("cost: %v", got)
	}
}

func TestExpect(t *testing.T) {
	part := func(p smq.Partition, bytes float64) layout.PartitionLoad {
		return layout.PartitionLoad{Partition: p, Load: layout.Load{Bytes: bytes}}
	}
	right := layout.SegmentLoad{Segment: 3, Known: true, Partitions: []layout.PartitionLoad{part(8, 1), part(11, 2)}}
	left := layout.SegmentLoad{Segment: 2, Known: true, Partitions: []layout.PartitionLoad{part(1, 4), part(4, 8), part(7, 16)}}
	got := layout.Expect(9, smq.Range{Lo: 4, Hi: 11}, right, left, layout.SegmentLoad{Segment: 4})
	if got.Segment != 9 || got.Known || got.Bytes != 25 || len(got.Partitions) != 3 {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []layout.PartitionLoad{part(4, 8), part(7, 16), part(8, 1)} {
		if got.Partitions[i] != want {
			t.Errorf("partitions: %+v", got.Partitions)
		}
	}
}

func TestSplitPoint(t *testing.T) {
	for _, test := range []struct {
		name string
		r    smq.Range
		base float64
		hot  map[smq.Partition]float64
		want smq.Partition // 0: refused
	}{
		{"nothing measured", smq.Range{Lo: 10, Hi: 20}, 0, nil, 15},
		{"two partitions", smq.Range{Lo: 10, Hi: 12}, 0, nil, 11},
		{"one partition", smq.Range{Lo: 10, Hi: 11}, 1, nil, 0},
		{"even", smq.Range{Lo: 0, Hi: 64}, 1, nil, 32},
		{"one busy partition says nothing", smq.Range{Lo: 0, Hi: 64}, 0, hot1(3, 5), 32},
		{"all at the end", smq.Range{Lo: 0, Hi: 64}, 0.01, hot1(63, 5), 63},
		{"all at the beginning", smq.Range{Lo: 0, Hi: 64}, 0.01, hot1(0, 5), 1},
		{"the heaviest goes with the lighter side", smq.Range{Lo: 0, Hi: 5}, 0, map[smq.Partition]float64{0: 1, 2: 5, 4: 2}, 3},
		{"a gap is shared", smq.Range{Lo: 0, Hi: 64}, 0, map[smq.Partition]float64{0: 1, 20: 1}, 10},
	} {
		s := layout.Segment{ID: 1, Range: test.r}
		got, err := layout.SplitPoint(s, measured(s, test.base, test.hot))
		if test.want == 0 {
			if !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("%s: got %d, %v", test.name, got, err)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s: got %d, %v; want %d", test.name, got, err, test.want)
		}
	}
}
