package open_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/open"
)

func TestDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "store")
	for _, u := range []string{"dir://" + path, "dir://" + path + "?fsync=false"} {
		s, err := open.Open(t.Context(), u, open.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Create(t.Context(), "/file", store.Bytes([]byte("x")))
		if err != nil && !errors.Is(err, smq.ErrExists) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestInvalid(t *testing.T) {
	for _, u := range []string{
		"", "/var/lib/smq", "dir:", "dir://", "dir://host/path", "dir:path", "dir:///p?fsync=maybe", "dir:///p?sync=true", "dir:///p?%zz",
		"mem://", "s3://bucket", "seaweedfs://", "http://filer:8888", "dir:///p\x7f",
	} {
		if s, err := open.Open(t.Context(), u, open.Options{}); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("%q: %v %v, want an invalid URL", u, s, err)
		}
	}
}
