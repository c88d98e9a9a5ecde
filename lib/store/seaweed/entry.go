package seaweed

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// versionAttribute is the attribute of an entry that compare conditions look
// at first.
const versionAttribute = "Seaweed-X-Amz-ETag"

// unversioned is the version of an entry that others made and that has no MD5:
// it matches nothing.
const unversioned = "none"

// file is what an entry says.
type file struct {
	info    store.Info
	version store.Version
	content []byte   // when it is inline
	extents []extent // else: in order, without gaps
}

// extent is a run of a file's bytes: a piece, whole.
type extent struct {
	off, size int64
	id        fileID
	crc       uint32
	checked   bool // crc is known
	list      bool // the piece is not bytes of the file, but a list of extents
}

func (e extent) end() int64 { return e.off + e.size }

// parseEntry reads an entry of a filer.
func parseEntry(e *pb.Entry) (file, error) {
	f := file{info: parseInfo(e), version: parseVersion(e), content: e.GetContent()}
	if f.info.Dir || len(f.content) > 0 {
		return f, nil
	}
	var err error
	f.extents, err = parseExtents(e.GetChunks())
	return f, err
}

// inline reports whether the content came with the entry.
func (f *file) inline() bool { return len(f.extents) == 0 && int64(len(f.content)) == f.info.Size }

// complete checks that the extents are the whole file.
func (f *file) complete() error {
	end := int64(0)
	for _, x := range f.extents {
		if x.off != end || x.size <= 0 {
			return fmt.Errorf("%w: the entry has a gap or an overlap at byte %d", smq.ErrCorrupt, end)
		}
		end = x.end()
	}
	if end != f.info.Size {
		return fmt.Errorf("%w: the entry says %d bytes, its pieces hold %d", smq.ErrCorrupt, f.info.Size, end)
	}
	return nil
}

func parseExtents(chunks []*pb.FileChunk) ([]extent, error) {
	extents := make([]extent, 0, len(chunks))
	for _, c := range chunks {
		x, err := parseExtent(c)
		if err != nil {
			return nil, err
		}
		extents = append(extents, x)
	}
	inOrder(extents)
	return extents, nil
}

func inOrder(extents []extent) {
	slices.SortFunc(extents, func(a, b extent) int { return cmp.Compare(a.off, b.off) })
}

func parseExtent(c *pb.FileChunk) (extent, error) {
	if c.GetSize() > math.MaxInt64 {
		return extent{}, fmt.Errorf("%w: a piece of %d bytes", smq.ErrCorrupt, c.GetSize())
	}
	x := extent{off: c.GetOffset(), size: int64(c.GetSize()), list: c.GetIsChunkManifest()}
	if fid := c.GetFid(); fid != nil {
		x.id = fileID{volume: fid.GetVolumeId(), key: fid.GetFileKey(), cookie: fid.GetCookie()}
	} else {
		var err error
		if x.id, err = parseFileID(c.GetFileId()); err != nil {
			return extent{}, fmt.Errorf("%w: %w", smq.ErrCorrupt, err)
		}
	}
	// What others write there is longer: an MD5.
	if sum, err := strconv.ParseUint(c.GetETag(), 16, 32); err == nil && len(c.GetETag()) == 8 {
		x.crc, x.checked = uint32(sum), true
	}
	return x, nil
}

// parseInfo describes an entry. Its time is the filer's own, when it tells it.
func parseInfo(e *pb.Entry) store.Info {
	a := e.GetAttributes()
	info := store.Info{Name: e.GetName(), Dir: e.GetIsDirectory(), Modified: time.Unix(a.GetMtime(), int64(a.GetMtimeNs()))}
	if ns := e.GetCommitTsNs(); ns > 0 {
		info.Modified = time.Unix(0, ns)
	}
	if info.Dir {
		return info
	}
	info.Size = max(int64(a.GetFileSize()), int64(len(e.GetContent())))
	for _, c := range e.GetChunks() {
		info.Size = max(info.Size, c.GetOffset()+int64(c.GetSize()))
	}
	return info
}

func parseVersion(e *pb.Entry) store.Version {
	if v := e.GetExtended()[versionAttribute]; len(v) > 0 {
		return store.Version(v)
	}
	if sum := e.GetAttributes().GetMd5(); len(sum) > 0 {
		return store.Version(hex.EncodeToString(sum))
	}
	return unversioned
}

// lookUp asks the filer for the entry at a path. smq.ErrNotFound.
func (s *Store) lookUp(ctx context.Context, path string) (*pb.Entry, error) {
	return s.filers.lookUp(ctx, s.config.within(path))
}

// lookUp takes a path of the filer.
func (f *filers) lookUp(ctx context.Context, full string) (*pb.Entry, error) {
	dir, name := split(full)
	var resp *pb.LookupDirectoryEntryResponse
	err := f.read(ctx, func(ctx context.Context, client filerClient) (err error) {
		resp, err = client.LookupDirectoryEntry(ctx, &pb.LookupDirectoryEntryRequest{Directory: dir, Name: name})
		return err
	})
	if isAbsent(err) || err == nil && resp.GetEntry() == nil {
		return nil, smq.ErrNotFound
	}
	return resp.GetEntry(), err
}

// open asks for the file at a path, with all its extents. smq.ErrNotFound also
// where a folder is.
func (s *Store) open(ctx context.Context, path string) (file, error) {
	e, err := s.lookUp(ctx, path)
	if err == nil && e.GetIsDirectory() {
		err = fmt.Errorf("%w: it is a folder", smq.ErrNotFound)
	}
	if err != nil {
		return file{}, err
	}
	f, err := parseEntry(e)
	if err != nil || f.inline() {
		return f, err
	}
	if err := s.resolve(ctx, &f); err != nil {
		return f, err
	}
	if f.version != unversioned {
		s.files.put(path, f, len(f.extents))
	}
	return f, nil
}

// maxLists is how deep lists of extents may lie within one another.
const maxLists = 4

// resolve replaces lists of extents, which filers make of long ones that are
// written by other means, by what they list.
func (s *Store) resolve(ctx context.Context, f *file) error {
	isList := func(x extent) bool { return x.list }
	for range maxLists {
		if !slices.ContainsFunc(f.extents, isList) {
			return f.complete()
		}
		var all []extent
		for _, x := range f.extents {
			if !x.list {
				all = append(all, x)
				continue
			}
			listed, err := s.readList(ctx, x)
			if err != nil {
				return err
			}
			all = append(all, listed...)
		}
		inOrder(all)
		f.extents = all
	}
	return fmt.Errorf("%w: lists of pieces within lists, more than %d deep", smq.ErrCorrupt, maxLists)
}

func (s *Store) readList(ctx context.Context, x extent) ([]extent, error) {
	b, err := s.fetchWhole(ctx, x.id)
	if err != nil {
		return nil, err
	}
	var m pb.FileChunkManifest
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%w: list of pieces %s: %w", smq.ErrCorrupt, x.id, err)
	}
	return parseExtents(m.GetChunks())
}
