package seaweed

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/store"
)

// listPage is how many entries one call asks for.
const listPage = 1024

// List returns up to limit entries of the folder whose names sort after the
// given one.
func (s *Store) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	if err := checkArgs(ctx, checkDir(dir)); err != nil {
		return nil, err
	}
	var infos []store.Info
	for from := after; ; {
		want := listPage
		if limit > 0 {
			want = min(want, limit-len(infos))
		}
		page, err := s.page(ctx, dir, sendable(from), want)
		if err != nil {
			return nil, wrap(err, "list %s", dir)
		}
		for _, info := range page {
			from = info.Name
			if info.Name > after && !strings.HasPrefix(info.Name, ".") {
				infos = append(infos, info)
			}
		}
		if len(page) < want || limit > 0 && len(infos) == limit {
			return infos, nil
		}
	}
}

// listAll returns up to limit entries from the beginning, whatever their names.
func (s *Store) listAll(ctx context.Context, dir string, limit int) ([]store.Info, error) {
	infos, err := s.page(ctx, dir, "", limit)
	return infos, wrap(err, "list %s", dir)
}

// sendable is the longest beginning of a name that protobuf can carry: it sorts
// before all that sorts after the name.
func sendable(name string) string {
	for i, r := range name {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(name[i:]); size == 1 {
			return name[:i]
		}
	}
	return name
}

// page makes one call.
func (s *Store) page(ctx context.Context, dir, after string, limit int) (infos []store.Info, err error) {
	req := &pb.ListEntriesRequest{
		Directory:         s.config.within(dir),
		StartFromFileName: after,
		Limit:             uint32(limit),
		OmitChunks:        true,
	}
	err = s.filers.read(ctx, func(ctx context.Context, client filerClient) error {
		infos = infos[:0] // of an attempt before
		stream, err := client.ListEntries(ctx, req)
		if err != nil {
			return err
		}
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if e := resp.GetEntry(); e != nil {
				infos = append(infos, parseInfo(e))
			}
		}
	})
	return infos, err
}
