package seaweed

import (
	"context"
	"strings"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
)

// routePrefix makes the key by which filers agree on a path's owner. It is the
// one that they use themselves, so that whatever else writes the path (a mount,
// the filer's HTTP) meets the same lock.
const routePrefix = "s3.object.write:"

// transaction makes one mutation at a path of the filer, under the path's lock
// and on the condition.
func transaction(full string, m *pb.ObjectMutation, condition *pb.WriteCondition) *pb.ObjectTransactionRequest {
	dir, name := split(full)
	m.Directory, m.Name = dir, name
	if m.Entry != nil {
		m.Entry.Name = name
	}
	return &pb.ObjectTransactionRequest{
		LockKey:   full,
		RouteKey:  routePrefix + full,
		Condition: condition,
		Mutations: []*pb.ObjectMutation{m},
	}
}

// put makes the entry, in the place of one that is there.
func put(e *pb.Entry) *pb.ObjectMutation {
	return &pb.ObjectMutation{Type: pb.ObjectMutation_PUT, Entry: e}
}

// removal deletes an entry that is a file, with its pieces, or an empty folder.
func removal() *pb.ObjectMutation {
	return &pb.ObjectMutation{Type: pb.ObjectMutation_DELETE, IsDeleteData: true}
}

// transact changes one path of the store. errCondition when the condition does
// not hold.
func (s *Store) transact(ctx context.Context, path string, m *pb.ObjectMutation, condition *pb.WriteCondition) error {
	req := transaction(s.config.within(path), m, condition)
	var resp *pb.ObjectTransactionResponse
	err := s.filers.mutate(ctx, func(ctx context.Context, client filerClient) (err error) {
		resp, err = client.ObjectTransaction(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	return transactionError(resp.GetErrorCode(), resp.GetError())
}

// split divides a clean path that is not the root into its folder and name.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}
