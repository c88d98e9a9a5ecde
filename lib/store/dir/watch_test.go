package dir

import (
	"testing"

	"github.com/fsnotify/fsnotify"
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
