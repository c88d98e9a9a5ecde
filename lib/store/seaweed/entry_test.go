package seaweed

import (
	"errors"
	"math"
	"testing"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

func TestParseInfo(t *testing.T) {
	for name, test := range map[string]struct {
		entry *pb.Entry
		want  store.Info
	}{
		"the filer's time": {
			&pb.Entry{Name: "f", Attributes: &pb.FuseAttributes{FileSize: 5, Mtime: 7}, CommitTsNs: 9e9},
			store.Info{Name: "f", Size: 5, Modified: time.Unix(9, 0)},
		},
		"an older filer": {
			&pb.Entry{Name: "f", Attributes: &pb.FuseAttributes{Mtime: 7, MtimeNs: 8}, Content: []byte("abc")},
			store.Info{Name: "f", Size: 3, Modified: time.Unix(7, 8)},
		},
		"only pieces": {
			&pb.Entry{Name: "f", Attributes: &pb.FuseAttributes{Mtime: 7}, Chunks: []*pb.FileChunk{{Offset: 4, Size: 6}, {Size: 4}}},
			store.Info{Name: "f", Size: 10, Modified: time.Unix(7, 0)},
		},
		"a folder": {
			&pb.Entry{Name: "d", IsDirectory: true, Attributes: &pb.FuseAttributes{FileSize: 5, Mtime: 7}},
			store.Info{Name: "d", Dir: true, Modified: time.Unix(7, 0)},
		},
	} {
		if got := parseInfo(test.entry); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestParseVersion(t *testing.T) {
	tagged := map[string][]byte{versionAttribute: []byte("v1")}
	md5 := &pb.FuseAttributes{Md5: []byte{0xab, 0x01}}
	for want, e := range map[store.Version]*pb.Entry{
		"v1":        {Extended: tagged, Attributes: md5},
		"ab01":      {Attributes: md5},
		unversioned: {Attributes: &pb.FuseAttributes{}},
	} {
		if got := parseVersion(e); got != want {
			t.Errorf("parseVersion = %q, want %q", got, want)
		}
	}
	if a, b := newVersion(), newVersion(); a == b {
		t.Error("two versions are the same")
	}
}

// TestExtents reads lists of pieces: in any order, by either kind of name, and
// refuses what is not the whole file.
func TestExtents(t *testing.T) {
	entry := func(size uint64, chunks ...*pb.FileChunk) *pb.Entry {
		return &pb.Entry{Name: "f", Attributes: &pb.FuseAttributes{FileSize: size}, Chunks: chunks}
	}
	named := func(off int64, size uint64, name, etag string) *pb.FileChunk {
		return &pb.FileChunk{Offset: off, Size: size, FileId: name, ETag: etag}
	}
	f, err := parseEntry(entry(10,
		named(4, 6, "3,01637037d6", "00c0ffee"),
		&pb.FileChunk{Size: 4, Fid: &pb.FileId{VolumeId: 5, FileKey: 6, Cookie: 7}, ETag: "an MD5, as others write it"},
	))
	if err == nil {
		err = f.complete()
	}
	want := []extent{{size: 4, id: fileID{5, 6, 7}}, {off: 4, size: 6, id: fileID{3, 1, 0x637037d6}, crc: 0xc0ffee, checked: true}}
	if err != nil || len(f.extents) != 2 || f.extents[0] != want[0] || f.extents[1] != want[1] {
		t.Errorf("extents %+v, %v", f.extents, err)
	}
	for name, e := range map[string]*pb.Entry{
		"a gap":        entry(10, named(0, 4, "3,01637037d6", ""), named(5, 5, "3,02637037d6", "")),
		"an overlap":   entry(10, named(0, 6, "3,01637037d6", ""), named(5, 5, "3,02637037d6", "")),
		"too short":    entry(11, named(0, 10, "3,01637037d6", "")),
		"no pieces":    entry(1),
		"a bad name":   entry(10, named(0, 10, "3", "")),
		"a huge piece": entry(10, named(0, math.MaxUint64, "3,01637037d6", "")),
		"nothing":      entry(10, named(0, 0, "3,01637037d6", ""), named(0, 10, "3,02637037d6", "")),
	} {
		f, err := parseEntry(e)
		if err == nil {
			err = f.complete()
		}
		if !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for path, want := range map[string][2]string{"/a": {"/", "a"}, "/a/b": {"/a", "b"}, "/a/b/c": {"/a/b", "c"}} {
		if dir, name := split(path); dir != want[0] || name != want[1] {
			t.Errorf("split(%s) = %s, %s", path, dir, name)
		}
	}
}
