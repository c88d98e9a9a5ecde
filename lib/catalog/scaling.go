package catalog

import (
	"fmt"
	"math"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// storedScaling is what topic.json says of a topic's scaling; what is absent is
// the cluster's default.
type storedScaling struct {
	Mode        layout.Mode `json:"mode,omitempty"`
	Bytes       float64     `json:"split_bytes_per_second,omitempty"`
	Messages    float64     `json:"split_messages_per_second,omitempty"`
	MinSegments int         `json:"min_segments,omitempty"`
	MaxSegments int         `json:"max_segments,omitempty"`
	CoolDownMS  int64       `json:"cool_down_ms,omitempty"`
}

func encodeScaling(p layout.Policy) *storedScaling {
	s := storedScaling{
		Mode: p.Mode, Bytes: p.Split.Bytes, Messages: p.Split.Messages,
		MinSegments: p.MinSegments, MaxSegments: p.MaxSegments, CoolDownMS: p.CoolDown.Milliseconds(),
	}
	if s == (storedScaling{}) {
		return nil
	}
	return &s
}

func (s *storedScaling) decode() (layout.Policy, error) {
	if s == nil {
		return layout.Policy{}, nil
	}
	coolDown, err := milliseconds(s.CoolDownMS)
	return layout.Policy{
		Mode: s.Mode, Split: layout.Load{Messages: s.Messages, Bytes: s.Bytes},
		MinSegments: s.MinSegments, MaxSegments: s.MaxSegments, CoolDown: coolDown,
	}, err
}

func milliseconds(ms int64) (time.Duration, error) {
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, fmt.Errorf("%w time of %d ms", smq.ErrInvalid, ms)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// ScalingProto is a policy's form on the wire; nil when it leaves everything to
// the default.
func ScalingProto(p layout.Policy) *smqpb.Scaling {
	s := encodeScaling(p)
	if s == nil {
		return nil
	}
	return &smqpb.Scaling{
		Mode: string(s.Mode), SplitBytesPerSecond: s.Bytes, SplitMessagesPerSecond: s.Messages,
		MinSegments: int32(s.MinSegments), MaxSegments: int32(s.MaxSegments), CoolDownMs: s.CoolDownMS,
	}
}

// ParseScaling reads what ScalingProto makes. smq.ErrInvalid for what no topic
// can have.
func ParseScaling(in *smqpb.Scaling) (layout.Policy, error) {
	if in == nil {
		return layout.Policy{}, nil
	}
	s := storedScaling{
		Mode: layout.Mode(in.GetMode()), Bytes: in.GetSplitBytesPerSecond(), Messages: in.GetSplitMessagesPerSecond(),
		MinSegments: int(in.GetMinSegments()), MaxSegments: int(in.GetMaxSegments()), CoolDownMS: in.GetCoolDownMs(),
	}
	p, err := s.decode()
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return layout.Policy{}, err
	}
	return p, nil
}
