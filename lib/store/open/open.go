// Package open opens a store by its URL, whichever backend it names.
package open

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/dir"
	"github.com/seaweedmq/smq/lib/store/seaweed"
)

// Options are what a URL does not say.
type Options struct {
	// Logger is told what goes wrong in the background; nil: nobody is.
	Logger *slog.Logger
}

// Open opens the store that the URL names:
//
//	dir:///var/lib/smq[?fsync=false]
//	seaweedfs://filer:8888[,filer:8889…][/folder][?fsync=true]
//
// A URL that names none is an smq.ErrInvalid.
func Open(ctx context.Context, rawURL string, o Options) (store.Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w store URL %q: %v", smq.ErrInvalid, rawURL, err)
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	switch u.Scheme {
	case "dir":
		return openDir(u, logger)
	case "seaweedfs":
		s, err := seaweed.Open(ctx, u, logger)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("%w store URL %q: it should begin with dir:/// or seaweedfs://", smq.ErrInvalid, rawURL)
}

func openDir(u *url.URL, logger *slog.Logger) (store.Store, error) {
	if u.Host != "" || u.Path == "" || u.Opaque != "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("%w store URL %q: a directory's is dir:///absolute/path", smq.ErrInvalid, u)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w store URL %q: %v", smq.ErrInvalid, u, err)
	}
	fsync := true
	for name, values := range query {
		if name != "fsync" {
			return nil, fmt.Errorf("%w store URL %q: there is no parameter %q, only fsync", smq.ErrInvalid, u, name)
		}
		if fsync, err = strconv.ParseBool(values[0]); err != nil || len(values) > 1 {
			return nil, fmt.Errorf("%w store URL %q: fsync is true or false", smq.ErrInvalid, u)
		}
	}
	s, err := dir.Open(nativePath(u.Path), dir.Options{Fsync: fsync, Logger: logger})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// nativePath is the operating system's form of a URL's path: dir:///C:/smq names
// C:\smq.
func nativePath(path string) string {
	if native := filepath.FromSlash(path[1:]); filepath.VolumeName(native) != "" {
		return native
	}
	return filepath.FromSlash(path)
}
