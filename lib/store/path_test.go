package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

func TestCheckPath(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, path := range []string{"/a", "/a/b", "/-", "/ ", "/a b/ü", "/" + long, "/" + long + "/" + long, "/a..", "/a:b"} {
		if err := errors.Join(store.CheckPath(path), store.CheckDir(path)); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "a", "a/b", "//", "/a/", "//a", "/a//b", "/.", "/..", "/./a", "/a/..", "/.a", "/a/.b", "/a\\b", "/a\x00", "/" + long + "x",
	} {
		if err := store.CheckPath(path); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("CheckPath(%q): %v", path, err)
		}
		if err := store.CheckDir(path); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("CheckDir(%q): %v", path, err)
		}
	}
	if err := store.CheckPath("/"); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("CheckPath of the root: %v", err)
	}
	if err := store.CheckDir("/"); err != nil {
		t.Errorf("CheckDir of the root: %v", err)
	}
}

func TestContentSize(t *testing.T) {
	ref := store.Ref{Pieces: []store.Piece{{Size: 3}, {Size: 4}}}
	content := append(store.Bytes([]byte("ab"), nil, []byte("c")), store.Refs(ref, store.Ref{}, ref)...)
	if got := store.ContentSize(content); got != 17 {
		t.Errorf("ContentSize = %d, want 17", got)
	}
	if got := store.ContentSize(nil); got != 0 {
		t.Errorf("ContentSize of nothing = %d", got)
	}
}
