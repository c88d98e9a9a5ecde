package dir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"

	"github.com/seaweedmq/smq/lib/smq"
)

func mustWatchRaw(t *testing.T, path string) *fsnotify.Watcher {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = w.Add(path)
	}
	if err != nil {
		t.Error(err)
	}
	return w
}

// TestWatchEndsWithItsFolder removes the watched folder: the watch breaks, so
// that nobody waits for what cannot come.
func TestWatchEndsWithItsFolder(t *testing.T) {
	for _, removed := range []string{"/w/d", "/w"} {
		s := mustOpen(t, t.TempDir(), Options{})
		ended := make(chan error)
		ready := make(chan struct{})
		go func() {
			ended <- s.Watch(t.Context(), "/w/d", func() { close(ready) }, func(string) {})
		}()
		<-ready
		if err := s.RemoveAll(t.Context(), removed); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("the watch ends with %v", err)
		}
	}
}

// TestWatchEndsWithClose closes the store under its watch.
func TestWatchEndsWithClose(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	err := s.Watch(t.Context(), "/", func() { s.Close() }, func(string) {})
	if !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("the watch ends with %v", err)
	}
	if err := s.Create(t.Context(), "/f", nil); !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("Create after Close: %v", err)
	}
}

// TestWatchMovedFolder moves whole folders in and out by other means.
func TestWatchMovedFolder(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	outside := filepath.Join(t.TempDir(), "d")
	if err := os.MkdirAll(filepath.Join(outside, "e"), 0o700); err != nil {
		t.Fatal(err)
	}
	events := make(chan string)
	ready := make(chan struct{})
	go func() {
		err := s.Watch(t.Context(), "/w", func() { close(ready) }, func(p string) {
			select {
			case events <- p:
			case <-t.Context().Done():
			}
		})
		if err == nil {
			t.Error("the watch ends without an error")
		}
	}()
	<-ready
	waitFor := func(path string) {
		for p := range events {
			if p == path {
				return
			}
		}
	}
	for range 3 {
		if err := os.Rename(outside, s.native("/w/d")); err != nil {
			t.Fatal(err)
		}
		waitFor("/w")
		if err := s.Create(t.Context(), "/w/d/e/f", nil); err != nil {
			t.Fatal(err)
		}
		waitFor("/w/d/e/f")
		if err := s.Remove(t.Context(), "/w/d/e/f"); err != nil {
			t.Fatal(err)
		}
		waitFor("/w/d/e/f")
		if err := os.Rename(s.native("/w/d"), outside); err != nil {
			t.Fatal(err)
		}
		waitFor("/w")
	}
}
