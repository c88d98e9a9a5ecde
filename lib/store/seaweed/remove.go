package seaweed

import (
	"context"
	"errors"
	"fmt"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

const (
	// removeAtOnce is how many files are deleted by one call.
	removeAtOnce = 256
	// removeRounds is how often RemoveAll looks again at a folder that is
	// being filled meanwhile.
	removeRounds = 10
)

// Remove deletes a file, or an empty folder.
func (s *Store) Remove(ctx context.Context, path string) error {
	if err := checkArgs(ctx, checkPath(path)); err != nil {
		return err
	}
	err := s.transact(ctx, path, removal(), nil)
	s.forgetBelow(path)
	return wrap(err, "remove %s", path)
}

// RemoveAll deletes the folder with all below it. It deletes each file by
// itself, under the file's lock, as a recursive deletion by the filer would not:
// a Replace that is under way there could otherwise make its file anew after
// everything is gone.
func (s *Store) RemoveAll(ctx context.Context, dir string) error {
	err := checkDir(dir)
	if err == nil && dir == "/" {
		err = fmt.Errorf("%w: the root cannot be removed", smq.ErrInvalid)
	}
	if err := checkArgs(ctx, err); err != nil {
		return err
	}
	err = s.removeTree(ctx, dir)
	s.forgetBelow(dir)
	return wrap(err, "remove all of %s", dir)
}

func (s *Store) removeTree(ctx context.Context, dir string) error {
	for range removeRounds {
		if err := s.empty(ctx, dir); err != nil {
			return err
		}
		err := s.transact(ctx, dir, removal(), nil)
		if err == nil || !errors.Is(err, smq.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%w: files are being created in %s", smq.ErrConflict, dir)
}

// empty removes what is in a folder.
func (s *Store) empty(ctx context.Context, dir string) error {
	for {
		infos, err := s.listAll(ctx, dir, removeAtOnce)
		if err != nil || len(infos) == 0 {
			return err
		}
		var files []string
		for _, info := range infos {
			if p := dir + "/" + info.Name; !info.Dir {
				files = append(files, p)
			} else if err := s.removeTree(ctx, p); err != nil {
				return err
			}
		}
		if err := s.removeFiles(ctx, files); err != nil {
			return err
		}
	}
}

// removeFiles deletes files by one call.
func (s *Store) removeFiles(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	req := &pb.ObjectTransactionBatchRequest{}
	for _, p := range paths {
		req.Transactions = append(req.Transactions, transaction(s.config.within(p), removal(), nil))
	}
	var resp *pb.ObjectTransactionBatchResponse
	err := s.filers.mutate(ctx, func(ctx context.Context, client filerClient) (err error) {
		resp, err = client.ObjectTransactionBatch(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	if n := len(resp.GetResponses()); n != len(paths) {
		return fmt.Errorf("%w: the filer answered to %d of %d deletions", store.ErrAmbiguous, n, len(paths))
	}
	for i, r := range resp.GetResponses() {
		if err := transactionError(r.GetErrorCode(), r.GetError()); err != nil {
			return wrap(err, "remove %s", paths[i])
		}
	}
	return nil
}
