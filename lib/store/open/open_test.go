package open_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
		if s.String() != u {
			t.Errorf("it is named %s, want %s", s, u)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNotADirectory opens a path where a file is.
func TestNotADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := open.Open(t.Context(), "dir://"+path, open.Options{}); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("%v %v, want an invalid store", s, err)
	}
}

func TestInvalid(t *testing.T) {
	for _, u := range []string{
		"", "/var/lib/smq", "dir:", "dir://", "dir://host/path", "dir:path", "dir:///p?fsync=maybe", "dir:///p?sync=true", "dir:///p?%zz",
		"dir:///", "dir://user@/p", "dir:///p#part", "dir:///p?fsync=true&fsync=false", "dir:///p?fsync",
		"mem://", "s3://bucket", "seaweedfs://", "http://filer:8888", "dir:///p\x7f",
	} {
		s, err := open.Open(t.Context(), u, open.Options{})
		if !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("%q: %v %v, want an invalid URL", u, s, err)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has several lines: %v", u, err)
		}
	}
}
