package layout_test

import (
	"testing"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestChooseOwner(t *testing.T) {
	brokers := []layout.Broker{
		{ID: "4", BytesPerSecond: 5e6},
		{ID: "3", BytesPerSecond: 1e6, Draining: true},
		{ID: "2", BytesPerSecond: 1e6, Segments: 2},
		{ID: "1", BytesPerSecond: 1e6, MessagesPerSecond: 1e6},
		{ID: "0", Dead: true},
	}
	for _, test := range []struct{ prefer, avoid, want smq.BrokerID }{
		{"", "", "2"},
		{"4", "", "4"},
		{"3", "", "2"}, // draining
		{"0", "", "2"}, // dead
		{"", "2", "4"},
		{"2", "2", "4"},
		{"gone", "gone", "2"},
	} {
		got, ok := layout.ChooseOwner(brokers, test.prefer, test.avoid)
		if !ok || got.ID != test.want {
			t.Errorf("prefer %q, avoid %q: got %q, %v; want %q", test.prefer, test.avoid, got.ID, ok, test.want)
		}
	}
	if got, ok := layout.ChooseOwner(brokers[4:], "0", ""); ok {
		t.Errorf("nobody lives, got %v", got)
	}
	same := []layout.Broker{{ID: "b"}, {ID: "a"}}
	if got, _ := layout.ChooseOwner(same, "", ""); got.ID != "a" {
		t.Errorf("among equals: got %q", got.ID)
	}
}

func TestChooseFollowersSpreadsOverRacks(t *testing.T) {
	brokers := []layout.Broker{
		{ID: "1", Rack: "x"}, {ID: "2", Rack: "x"}, {ID: "3", Rack: "y", BytesPerSecond: 1e9}, {ID: "4", Rack: "z", Dead: true},
	}
	got := layout.ChooseFollowers(brokers, brokers[0], "", 5)
	if len(got) != 2 || got[0].ID != "3" || got[1].ID != "2" {
		t.Fatalf("got %v", got)
	}
	if got := layout.ChooseFollowers(brokers, brokers[0], "3", 1); len(got) != 1 || got[0].ID != "2" {
		t.Fatalf("avoiding 3: got %v", got)
	}
}

// What becomes one segment goes to whoever carries most of it.
func TestCarrier(t *testing.T) {
	for name, test := range map[string]struct {
		owners string // of the segments, a letter each; -: none
		loads  []float64
		want   smq.BrokerID
	}{
		"one carries most":              {"ab", []float64{1, 5}, "b"},
		"together it is another":        {"abcb", []float64{0, 3, 5, 3}, "b"},
		"all are silent":                {"abb", []float64{0, 0, 0}, "b"},
		"the first among equals":        {"cab", []float64{2, 2, 2}, "c"},
		"load goes before number":       {"abb", []float64{3, 1, 1}, "a"},
		"who takes nothing is left out": {"xab", []float64{9, 1, 2}, "b"},
		"without owner":                 {"-a-", []float64{9, 1, 9}, "a"},
		"nobody":                        {"-x", []float64{1, 1}, ""},
	} {
		var segments []layout.Segment
		for _, o := range test.owners {
			var s layout.Segment
			if o != '-' {
				s.Owner = layout.Member{Broker: smq.BrokerID(o), Address: string(o)}
			}
			segments = append(segments, s)
		}
		load := func(i int) layout.Load { return layout.Load{Bytes: test.loads[i]} }
		takes := func(id smq.BrokerID) bool { return id != "x" }
		if got := layout.Carrier(segments, load, takes); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
