package layout_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// What a version tells people about a change survives in both forms.
func TestAVersionTellsWhy(t *testing.T) {
	before := assigned(t)
	c := layout.Replace(layout.Failover, []layout.Sealed{sealOf(before.Segments[0])}, []layout.Member{bob})
	c.Reason, c.PauseMS = "alice is dead", 123
	c.Loads = []layout.SegmentLoad{{Segment: 2, Load: layout.Load{Messages: 1.25, Bytes: 2.5}, Partitions: []layout.PartitionLoad{
		{Partition: 3, Load: layout.Load{Messages: 0.5, Bytes: 1}}, {Partition: 7, Load: layout.Load{Messages: 0.75, Bytes: 1.5}},
	}}}
	l := must(t)(before.Next(c, layout.Stamp{Leader: "00000000000000aa", Term: 3, NowMS: 5}))
	for form, back := range map[string]layout.Layout{
		"stored": must(t)(layout.Decode(layout.Encode(l))),
		"wire":   must(t)(layout.FromProto(layout.ToProto(l))),
	} {
		if back.Reason != "alice is dead" || back.PauseMS != 123 || !reflect.DeepEqual(back, l) {
			t.Errorf("%s: got %+v, want %+v", form, back, l)
		}
	}
}

func TestLoadsThatDoNotFitTogether(t *testing.T) {
	before := assigned(t)
	c := layout.Replace(layout.Roll, []layout.Sealed{sealOf(before.Segments[0])}, []layout.Member{bob})
	c.Loads = []layout.SegmentLoad{{Segment: 2, Partitions: []layout.PartitionLoad{{Partition: 3}}}}
	l := must(t)(before.Next(c, layout.Stamp{}))
	stored := strings.Replace(string(layout.Encode(l)), `"partition_bytes":[0]`, `"partition_bytes":[]`, 1)
	if _, err := layout.Decode([]byte(stored)); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("stored: got %v", err)
	}
	wire := layout.ToProto(l)
	wire.Loads[0].PartitionMessages = nil
	if _, err := layout.FromProto(wire); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("wire: got %v", err)
	}
}

// Versions that were stored before there were reasons are read as before.
func TestAVersionWithoutReason(t *testing.T) {
	l := assigned(t)
	stored := string(layout.Encode(l))
	for _, field := range []string{"reason", "pause_ms", "loads"} {
		if strings.Contains(stored, field) {
			t.Errorf("%s is stored though there is none: %s", field, stored)
		}
	}
	if back := must(t)(layout.Decode([]byte(stored))); !reflect.DeepEqual(back, l) {
		t.Errorf("got %+v, want %+v", back, l)
	}
}
