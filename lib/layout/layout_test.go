package layout_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

var (
	alice = layout.Member{Broker: "000000000000000a", Address: "a:7310"}
	bob   = layout.Member{Broker: "000000000000000b", Address: "b:7310"}
)

func must(t *testing.T) func(layout.Layout, error) layout.Layout {
	return func(l layout.Layout, err error) layout.Layout {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// assigned is version 2 of a topic of eight partitions: segment 2 is alice's.
func assigned(t *testing.T) layout.Layout {
	first := must(t)(layout.New(8, layout.Stamp{}))
	c := layout.Replace(layout.Assign, []layout.Sealed{layout.EmptyOf(first.Segments[0])}, []layout.Member{alice})
	return must(t)(first.Next(c, layout.Stamp{}))
}

func sealOf(s layout.Segment) layout.Sealed {
	return layout.Sealed{Segment: s.ID, Range: s.Range, Chunk: 7, Hash: layout.Hash{byte(s.ID)}}
}

func TestAssignmentMakesANewSegment(t *testing.T) {
	l := assigned(t)
	s, ok := l.Find(7)
	if !ok || s.ID != 2 || s.Owner != alice || len(s.Predecessors) != 0 {
		t.Fatalf("got %+v", s)
	}
	if len(l.Sealed) != 1 || !l.Sealed[0].Empty || l.Sealed[0].Segment != 1 {
		t.Fatalf("sealed: %+v", l.Sealed)
	}
	if _, ok := l.Find(8); ok {
		t.Fatal("partition 8 of 8 was found")
	}
	if _, ok := l.Find(-1); ok {
		t.Fatal("partition -1 was found")
	}
}

func TestAnUnassignedSuccessorPassesItsPredecessorsOn(t *testing.T) {
	l := assigned(t)
	seal := sealOf(l.Segments[0])
	orphan := must(t)(l.Next(layout.Replace(layout.Drain, []layout.Sealed{seal}, []layout.Member{{}}), layout.Stamp{}))
	back := must(t)(orphan.Next(layout.Replace(layout.Assign, []layout.Sealed{layout.EmptyOf(orphan.Segments[0])}, []layout.Member{bob}), layout.Stamp{}))
	got := back.Segments[0].Predecessors
	if len(got) != 1 || got[0].Segment != 2 || got[0].Chunk != 7 {
		t.Fatalf("predecessors: %+v", got)
	}
}

func TestNextRefuses(t *testing.T) {
	l := assigned(t)
	live := l.Segments[0]
	all := []layout.Successor{{Range: live.Range, Owner: bob}}
	other := sealOf(live)
	other.Range.Hi--
	gone := sealOf(live)
	gone.Segment = 1
	tests := []struct {
		name   string
		change layout.Change
		want   error
	}{
		{"nothing sealed", layout.Change{Cause: layout.Roll, Successors: all}, smq.ErrInvalid},
		{"a cause unknown", layout.Change{Cause: "whim", Sealed: []layout.Sealed{sealOf(live)}, Successors: all}, smq.ErrInvalid},
		{"no successor", layout.Change{Cause: layout.Roll, Sealed: []layout.Sealed{sealOf(live)}}, smq.ErrInvalid},
		{"a segment gone before", layout.Change{Cause: layout.Roll, Sealed: []layout.Sealed{gone}, Successors: all}, smq.ErrConflict},
		{"a seal of another range", layout.Change{Cause: layout.Roll, Sealed: []layout.Sealed{other}, Successors: all}, smq.ErrInvalid},
		{"no seal of an owned one", layout.Change{Cause: layout.Roll, Sealed: []layout.Sealed{layout.EmptyOf(live)}, Successors: all}, smq.ErrInvalid},
		{"a gap", layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{sealOf(live)}, Successors: []layout.Successor{
			{Range: smq.Range{Lo: 0, Hi: 3}}, {Range: smq.Range{Lo: 4, Hi: 8}}}}, smq.ErrInvalid},
		{"an overlap", layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{sealOf(live)}, Successors: []layout.Successor{
			{Range: smq.Range{Lo: 0, Hi: 5}}, {Range: smq.Range{Lo: 4, Hi: 8}}}}, smq.ErrInvalid},
		{"more partitions", layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{sealOf(live)}, Successors: []layout.Successor{
			{Range: smq.Range{Lo: 0, Hi: 9}}}}, smq.ErrInvalid},
		{"fewer partitions", layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{sealOf(live)}, Successors: []layout.Successor{
			{Range: smq.Range{Lo: 0, Hi: 7}}}}, smq.ErrInvalid},
		{"an owner without address", layout.Change{Cause: layout.Roll, Sealed: []layout.Sealed{sealOf(live)}, Successors: []layout.Successor{
			{Range: live.Range, Owner: layout.Member{Broker: "000000000000000b"}}}}, smq.ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := l.Next(test.change, layout.Stamp{}); !errors.Is(err, test.want) {
				t.Fatalf("got %+v, %v; want %v", got, err, test.want)
			}
		})
	}
}

// An empty segment and its neighbour may continue from the same seal; joined
// they would not say which of the two a partition continues from.
func TestNextRefusesTwoPredecessorsOfOnePartition(t *testing.T) {
	l := assigned(t)
	l = must(t)(l.Next(layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{sealOf(l.Segments[0])}, Successors: []layout.Successor{
		{Range: smq.Range{Lo: 0, Hi: 4}}, {Range: smq.Range{Lo: 4, Hi: 8}, Owner: bob}}}, layout.Stamp{}))
	_, err := l.Next(layout.Change{
		Cause:      layout.Merge,
		Sealed:     []layout.Sealed{layout.EmptyOf(l.Segments[0]), sealOf(l.Segments[1])},
		Successors: []layout.Successor{{Range: smq.Range{Lo: 0, Hi: 8}, Owner: bob}},
	}, layout.Stamp{})
	if !errors.Is(err, smq.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
}

func TestNewRefusesSizes(t *testing.T) {
	for _, n := range []int32{-1, 0, smq.MaxPartitions + 1} {
		if _, err := layout.New(n, layout.Stamp{}); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("New(%d): %v", n, err)
		}
	}
	if _, err := layout.New(smq.MaxPartitions, layout.Stamp{}); err != nil {
		t.Error(err)
	}
}

func TestOverlapping(t *testing.T) {
	l := assigned(t)
	l = must(t)(l.Next(layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{sealOf(l.Segments[0])}, Successors: []layout.Successor{
		{Range: smq.Range{Lo: 0, Hi: 4}}, {Range: smq.Range{Lo: 4, Hi: 8}}}}, layout.Stamp{}))
	for _, test := range []struct {
		ask  []smq.Partition
		want int
	}{{nil, 2}, {[]int32{7, 5, 7}, 1}, {[]int32{7, 0}, 2}} {
		if got, err := l.Overlapping(test.ask); err != nil || len(got) != test.want {
			t.Errorf("Overlapping(%v) = %v, %v; want %d segments", test.ask, got, err, test.want)
		}
	}
	if _, err := l.Overlapping([]int32{8}); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("partition 8 of 8: %v", err)
	}
}

func TestHistoryRefusesWhatDoesNotFollow(t *testing.T) {
	first := must(t)(layout.New(8, layout.Stamp{}))
	second := assigned(t)
	h, err := layout.History{}.Add(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Add(first); !errors.Is(err, smq.ErrConflict) {
		t.Errorf("the same version twice: %v", err)
	}
	for name, spoil := range map[string]func(*layout.Layout){
		"seals what was not live": func(l *layout.Layout) { l.Sealed = nil },
		"ids fall":                func(l *layout.Layout) { l.Segments[0].ID, l.Sealed = 1, nil },
		"another size":            func(l *layout.Layout) { l.Segments[0].Range.Hi = 7; l.Sealed = nil },
	} {
		bad := second
		bad.Segments = append([]layout.Segment(nil), second.Segments...)
		spoil(&bad)
		if _, err := h.Add(bad); !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := string(layout.Encode(assigned(t)))
	if _, err := layout.Decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		old, new string
		want     error
	}{
		"torn":                {`}`, ``, smq.ErrCorrupt},
		"a newer form":        {`"format":1`, `"format":2`, smq.ErrInvalid},
		"no version":          {`"version":2`, `"version":0`, smq.ErrCorrupt},
		"a hole":              {`"lo":0`, `"lo":1`, smq.ErrCorrupt},
		"an id not given yet": {`"next_segment":3`, `"next_segment":2`, smq.ErrCorrupt},
		"an unknown cause":    {`"assign"`, `"whim"`, smq.ErrCorrupt},
		"half an owner":       {`"a:7310"`, `""`, smq.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.ReplaceAll(good, test.old, test.new)
			if bad == good {
				t.Fatalf("%s does not occur in %s", test.old, good)
			}
			if _, err := layout.Decode([]byte(bad)); !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	first, err := layout.New(8, layout.Stamp{Leader: "00000000000000aa", Term: 3, NowMS: 5})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(layout.Encode(first))
	f.Add([]byte(`{"format":1,"version":1,"cause":"create","next_segment":2,"segments":[{"id":1,"lo":0,"hi":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := layout.Decode(data)
		if err != nil {
			return
		}
		again, err := layout.Decode(layout.Encode(l))
		if err != nil || string(layout.Encode(again)) != string(layout.Encode(l)) {
			t.Fatalf("what was accepted does not survive: %v", err)
		}
	})
}
