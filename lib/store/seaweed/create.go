package seaweed

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// fileMode is the mode of files; folders above them get what it allows, and x.
const fileMode = 0o644

// Create makes the file at path unless something is there.
func (s *Store) Create(ctx context.Context, path string, content []store.Part) error {
	if err := checkArgs(ctx, checkPath(path)); err != nil {
		return err
	}
	_, err := s.write(ctx, path, content, ifAbsent())
	if errors.Is(err, errCondition) {
		err = smq.ErrExists
	}
	return wrap(err, "create %s", path)
}

// Replace makes the file at path hold data if its version is the given one.
func (s *Store) Replace(ctx context.Context, path string, data []byte, version store.Version) (store.Version, error) {
	err := checkPath(path)
	if err == nil && len(data) > store.MaxSmall {
		err = fmt.Errorf("replace %s: %w: %d bytes, the limit is %d", path, smq.ErrTooLarge, len(data), store.MaxSmall)
	}
	if err := checkArgs(ctx, err); err != nil {
		return "", err
	}
	condition := ifVersion(version)
	if version == "" {
		condition = ifAbsent()
	}
	next, err := s.write(ctx, path, store.Bytes(data), condition)
	if errors.Is(err, errCondition) {
		err = fmt.Errorf("%w: its version is not %q", smq.ErrConflict, version)
	}
	if err != nil {
		return "", wrap(err, "replace %s", path)
	}
	return next, nil
}

func ifAbsent() *pb.WriteCondition {
	return &pb.WriteCondition{Clauses: []*pb.WriteCondition_Clause{{Kind: pb.WriteCondition_IF_NOT_EXISTS}}}
}

func ifVersion(v store.Version) *pb.WriteCondition {
	return &pb.WriteCondition{Clauses: []*pb.WriteCondition_Clause{{Kind: pb.WriteCondition_IF_ETAG_MATCH, Etags: []string{string(v)}}}}
}

// write stores content and puts an entry for it at path on the condition. Once
// it is sure that the entry is not made, it takes back what it has stored of
// the content; references stay the caller's.
func (s *Store) write(ctx context.Context, path string, content []store.Part, condition *pb.WriteCondition) (store.Version, error) {
	if err := s.checkFolders(ctx, path); err != nil {
		return "", err
	}
	e, stored, err := s.makeEntry(ctx, content)
	if err != nil {
		if errors.Is(err, smq.ErrNotFound) && s.taken(ctx, path) {
			err = errCondition
		}
		return "", err
	}
	version := newVersion()
	e.Extended = map[string][]byte{versionAttribute: []byte(version)}
	if err := s.transact(ctx, path, put(e), condition); err != nil {
		if !errors.Is(err, store.ErrAmbiguous) {
			s.takeBack(ctx, stored)
		}
		return "", err
	}
	s.sawFolders(path)
	return version, nil
}

// taken reports whether something is at the path, for a create from references
// that are gone: it may be a repeat of one that has succeeded.
func (s *Store) taken(ctx context.Context, path string) bool {
	_, err := s.lookUp(ctx, path)
	return err == nil
}

// newVersion draws a version that no other write has.
func newVersion() store.Version {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand)
	return store.Version(hex.EncodeToString(b))
}

// makeEntry stores what of the content is not yet, and makes an entry without a
// name of it. It also returns the pieces that it has stored.
func (s *Store) makeEntry(ctx context.Context, content []store.Part) (e *pb.Entry, stored []store.Piece, err error) {
	now := time.Now()
	a := &pb.FuseAttributes{
		FileMode: fileMode,
		Mtime:    now.Unix(), MtimeNs: int32(now.Nanosecond()),
		Crtime: now.Unix(), CrtimeNs: int32(now.Nanosecond()),
	}
	e = &pb.Entry{Attributes: a}
	runs := joinRuns(content)
	if inline, ok := runs.inline(); ok {
		sum := md5.Sum(inline) // what the filer's HTTP shows as ETag
		a.Md5, a.FileSize, e.Content = sum[:], uint64(len(inline)), inline
		return e, nil, nil
	}
	pieces, stored, err := s.placeAll(ctx, runs)
	if err != nil {
		return nil, nil, err
	}
	off := int64(0)
	for _, p := range pieces {
		e.Chunks = append(e.Chunks, chunk(p, off, now))
		off += p.Size
	}
	a.FileSize = uint64(off)
	return e, stored, nil
}

func chunk(p store.Piece, off int64, now time.Time) *pb.FileChunk {
	id, _ := parseFileID(p.ID) // placeAll has parsed it before
	return &pb.FileChunk{
		Fid:          &pb.FileId{VolumeId: id.volume, FileKey: id.key, Cookie: id.cookie},
		Offset:       off,
		Size:         uint64(p.Size),
		ModifiedTsNs: now.UnixNano(),
		ETag:         formatCRC(p.CRC32C),
	}
}

// stretch is a part of a content: bytes to store, or pieces that are stored.
type stretch struct {
	bytes  run
	pieces []store.Piece
}

type stretches []stretch

// joinRuns joins adjacent parts of a kind.
func joinRuns(content []store.Part) (all stretches) {
	for _, p := range content {
		var s stretch
		switch {
		case len(p.Bytes) > 0:
			s.bytes = run{p.Bytes}
		case p.Bytes == nil && p.Ref != nil && len(p.Ref.Pieces) > 0:
			s.pieces = p.Ref.Pieces
		default:
			continue
		}
		if last := len(all) - 1; last >= 0 && (all[last].pieces == nil) == (s.pieces == nil) {
			all[last].bytes = append(all[last].bytes, s.bytes...)
			all[last].pieces = append(all[last].pieces[:len(all[last].pieces):len(all[last].pieces)], s.pieces...)
			continue
		}
		all = append(all, s)
	}
	return all
}

// inline returns the content when it goes into the entry.
func (all stretches) inline() ([]byte, bool) {
	switch {
	case len(all) == 0:
		return nil, true
	case len(all) == 1 && all[0].pieces == nil && all[0].bytes.size() <= inlineLimit:
		return all[0].bytes.join(), true
	}
	return nil, false
}

// placeAll returns the content as pieces in order, and which of them it has
// stored itself. The others it verifies.
func (s *Store) placeAll(ctx context.Context, all stretches) (pieces, stored []store.Piece, err error) {
	placed := make([][]store.Piece, len(all))
	g, gctx := errgroup.WithContext(ctx)
	for i, part := range all {
		g.Go(func() (err error) {
			if part.pieces == nil {
				placed[i], err = s.putAll(gctx, part.bytes)
				return err
			}
			placed[i] = part.pieces
			return s.verifyAll(gctx, part.pieces)
		})
	}
	err = g.Wait()
	for i, part := range all {
		pieces = append(pieces, placed[i]...)
		if part.pieces == nil {
			stored = append(stored, placed[i]...)
		}
	}
	if err != nil {
		s.takeBack(ctx, stored)
		return nil, nil, err
	}
	return pieces, stored, nil
}

// verifyAll checks references, which may come from anywhere.
func (s *Store) verifyAll(ctx context.Context, pieces []store.Piece) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, p := range pieces {
		g.Go(func() error {
			id, err := parseFileID(p.ID)
			if err != nil || p.Size <= 0 {
				return fmt.Errorf("%w: the reference has a piece %q of %d bytes", smq.ErrNotFound, p.ID, p.Size)
			}
			return s.verify(gctx, id, p.Size, p.CRC32C)
		})
	}
	return g.Wait()
}
