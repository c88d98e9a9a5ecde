package leader

import (
	"context"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Sizes of a page of layout versions: when none is asked for, and at most. A
// page ends earlier when it gets larger than maxVersionBytes.
const (
	defaultVersions = 100
	maxVersions     = 1000
	maxVersionBytes = 4 << 20
)

// ListVersions returns a page of a topic's layout versions, oldest first, as the
// store has them. Those that are damaged are told apart.
func (l *Leader) ListVersions(ctx context.Context, req *smqpb.ListVersionsRequest) (*smqpb.ListVersionsResponse, error) {
	t, err := l.requested(ctx, req.GetTopic(), req.GetTopicId())
	if err != nil {
		return nil, err
	}
	limit := min(int(req.GetLimit()), maxVersions)
	if limit <= 0 {
		limit = defaultVersions
	}
	page, err := catalog.Versions(ctx, l.Store, t.Topic, t.ID, req.GetAfter(), limit)
	if err != nil {
		return nil, err
	}
	resp := &smqpb.ListVersionsResponse{Config: t.config().Proto(), More: page.More}
	size, cut := 0, uint64(math.MaxUint64)
	for _, v := range page.Versions {
		one := layout.ToProto(v)
		if size += proto.Size(one); size > maxVersionBytes && len(resp.Versions) > 0 {
			resp.More, cut = true, v.Version
			break
		}
		resp.Versions = append(resp.Versions, one)
	}
	for _, d := range page.Damaged {
		if d.Version < cut {
			resp.Damaged = append(resp.Damaged, &smqpb.DamagedVersion{Version: d.Version, Error: rpc.ErrorInfo(d.Err)})
		}
	}
	return resp, nil
}
