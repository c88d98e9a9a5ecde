package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
)

// TestWatchOverflow lets more happen than the kernel keeps for a watch whose
// caller is slow. The caller learns that it has missed something, and a folder
// that was made meanwhile is watched.
func TestWatchOverflow(t *testing.T) {
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	queue, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, t.TempDir(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, ready, ended := make(chan string), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Watch(ctx, "/w", func() { close(ready) }, func(p string) {
			select {
			case events <- p:
			case <-ctx.Done():
			}
		})
	}()
	<-ready
	// Not one file, since equal events in a row are merged; and more than the
	// queue, since fsnotify takes some out of the kernel.
	var files [2]*os.File
	for i := range files {
		if files[i], err = os.Create(s.native(fmt.Sprintf("/w/%d", i))); err != nil {
			t.Fatal(err)
		}
		defer files[i].Close()
	}
	for i := range queue + 10_000 {
		if _, err := files[i%2].Write([]byte{'x'}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Create(ctx, "/w/new/f", nil); err != nil {
		t.Fatal(err)
	}
	for p := range events {
		if p == "/w" {
			break
		}
	}
	if err := s.Create(ctx, "/w/new/g", nil); err != nil {
		t.Fatal(err)
	}
	for p := range events {
		if p == "/w/new/g" {
			break
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ends with %v", err)
	}
}

// TestPipeIsReported finds a pipe where a file should be, and does not wait
// for its other end.
func TestPipeIsReported(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	if err := s.Create(t.Context(), "/d/f", nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.native("/d/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, readErr := s.Read(t.Context(), "/d/pipe")
	_, readAtErr := s.ReadAt(t.Context(), "/d/pipe", make([]byte, 1), 0)
	_, statErr := s.Stat(t.Context(), "/d/pipe")
	_, listErr := s.List(t.Context(), "/d", "", 0)
	_, listPipeErr := s.List(t.Context(), "/d/pipe", "", 0)
	for i, err := range []error{readErr, readAtErr, statErr, listErr, listPipeErr} {
		if !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if got := len(s.files.open); got != 0 {
		t.Errorf("%d files are kept open", got)
	}
}
