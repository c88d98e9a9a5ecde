package sub

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// fakeFinder is a topic of three partitions that begin at 0, 5 and 0, end at
// 10, 8 and 0, and whose messages have their offsets as timestamps, in
// seconds.
type fakeFinder struct{}

func (fakeFinder) Offsets(_ context.Context, _ smq.Topic, partitions []int32, kind smqpb.OffsetsRequest_Kind, at time.Time) ([]client.PartitionOffset, error) {
	if len(partitions) == 0 {
		partitions = []int32{0, 1, 2}
	}
	earliest, end := []int64{0, 5, 0}, []int64{10, 8, 0}
	var found []client.PartitionOffset
	for _, p := range partitions {
		if p > 2 {
			return nil, fmt.Errorf("%w partition %d", smq.ErrInvalid, p)
		}
		o := client.PartitionOffset{Partition: p, Offset: end[p]}
		switch kind {
		case smqpb.OffsetsRequest_EARLIEST:
			o.Offset = earliest[p]
		case smqpb.OffsetsRequest_TIME:
			o.Offset = min(max(at.Unix(), earliest[p]), end[p])
		}
		found = append(found, o)
	}
	return found, nil
}

func TestMakePlan(t *testing.T) {
	now := time.Unix(100, 0)
	at := func(s int64) place { return place{kind: placeTime, time: time.Unix(s, 0)} }
	end := place{kind: placeLatest}
	tests := []struct {
		name        string
		partitions  []int32
		from, until place
		want        plan
	}{
		{"follow", nil, place{kind: placeLatest}, place{}, plan{start: client.Latest()}},
		{"all there is", nil, place{kind: placeEarliest}, end,
			plan{partitions: []int32{0, 1}, start: client.Earliest(), ends: map[int32]int64{0: 10, 1: 8}}},
		{"the last two, of what there is now", nil, place{kind: placeLast, n: 9}, end,
			plan{partitions: []int32{0, 1}, start: client.Last(9), ends: map[int32]int64{0: 10, 1: 8}, starts: map[int32]client.Start{0: client.Offset(1), 1: client.Offset(0)}}},
		{"the last two, and follow", []int32{1}, place{kind: placeLast, n: 2}, place{}, plan{partitions: []int32{1}, start: client.Last(2)}},
		{"from an offset", nil, place{kind: placeOffset, n: 3}, place{},
			plan{first: 3, starts: map[int32]client.Start{0: client.Offset(3), 1: client.Earliest(), 2: client.Offset(0)}}},
		{"nothing", []int32{2}, place{kind: placeOffset, n: 3}, end, plan{partitions: []int32{}, first: 3, ends: map[int32]int64{}}},
		{"up to an offset", []int32{0}, place{kind: placeEarliest}, place{kind: placeOffset, n: 99},
			plan{partitions: []int32{0}, start: client.Earliest(), ends: map[int32]int64{0: 99}}},
		{"up to an offset that has passed", nil, place{kind: placeLatest}, place{kind: placeOffset, n: 8},
			plan{partitions: []int32{2}, start: client.Latest(), ends: map[int32]int64{2: 8}}},
		{"the last ones, up to an offset", []int32{0, 1}, place{kind: placeLast, n: 3}, place{kind: placeOffset, n: 6},
			plan{partitions: []int32{1}, start: client.Last(3), ends: map[int32]int64{1: 6}}},
		{"since a time, up to an offset", nil, at(6), place{kind: placeOffset, n: 6},
			plan{partitions: []int32{2}, start: client.Time(time.Unix(6, 0)), ends: map[int32]int64{2: 6}}},
		{"from behind an offset", []int32{0}, place{kind: placeOffset, n: 7}, place{kind: placeOffset, n: 7},
			plan{partitions: []int32{}, first: 7, ends: map[int32]int64{}, starts: map[int32]client.Start{0: client.Offset(7)}}},
		{"between times", nil, at(2), at(6), plan{partitions: []int32{0, 1}, start: client.Time(time.Unix(2, 0)), ends: map[int32]int64{0: 6, 1: 6}}},
		{"up to a time in the future", nil, place{kind: placeLatest}, at(200), plan{start: client.Latest(), endsAt: time.Unix(200, 0)}},
	}
	for _, test := range tests {
		got, err := makePlan(t.Context(), fakeFinder{}, smq.Topic{}, test.partitions, test.from, test.until, now)
		if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", test.want) {
			t.Errorf("%s: %v\ngot  %#v\nwant %#v", test.name, err, got, test.want)
		}
	}
	if _, err := makePlan(t.Context(), fakeFinder{}, smq.Topic{}, []int32{3}, place{}, end, now); err == nil {
		t.Error("a partition that does not exist: no error")
	}
}
