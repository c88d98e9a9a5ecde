package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// parallelReads bounds the layout versions read at once.
const parallelReads = 16

// Latest returns the newest layout version of the topic that is newer than the
// given one (0 for any); it reports false when there is none.
func Latest(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, newerThan uint64) (layout.Layout, bool, error) {
	last, err := lastVersion(ctx, st, topic, id, newerThan)
	if err != nil || last <= newerThan {
		return layout.Layout{}, false, err
	}
	l, err := ReadVersion(ctx, st, topic, id, last)
	return l, err == nil, err
}

// lastVersion is the number of the newest version, or newerThan when none is
// newer.
func lastVersion(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, newerThan uint64) (uint64, error) {
	infos, err := st.List(ctx, layoutDir(topic, id), versionName(newerThan), 0)
	if err != nil {
		return 0, fmt.Errorf("list the layout versions of topic %v: %w", topic, err)
	}
	last := newerThan
	for _, info := range infos {
		if v, ok := parseVersionName(info.Name); ok {
			last = max(last, v)
		}
	}
	return last, nil
}

// ReadVersion reads one layout version. smq.ErrNotFound when it is not there.
func ReadVersion(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, v uint64) (layout.Layout, error) {
	path := layoutDir(topic, id) + "/" + versionName(v)
	data, _, err := st.Read(ctx, path)
	if err != nil {
		return layout.Layout{}, fmt.Errorf("read layout version %d of topic %v: %w", v, topic, err)
	}
	l, err := layout.Decode(data)
	if err == nil && l.Version != v {
		err = fmt.Errorf("it is %w: it says version %d", smq.ErrCorrupt, l.Version)
	}
	if err != nil {
		return layout.Layout{}, fmt.Errorf("layout version %d of topic %v, %s: %w", v, topic, path, err)
	}
	return l, nil
}

// Page is some of a topic's layout versions that follow one another.
type Page struct {
	Versions []layout.Layout // in order
	Damaged  []DamagedVersion
	More     bool // there are newer ones
}

// DamagedVersion is a layout version that is there and cannot be read; see
// IsDamage.
type DamagedVersion struct {
	Version uint64
	Err     error
}

// Versions returns up to limit layout versions that are newer than the given
// one. Those that are damaged are told apart.
func Versions(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, newerThan uint64, limit int) (Page, error) {
	last, err := lastVersion(ctx, st, topic, id, newerThan)
	if err != nil {
		return Page{}, err
	}
	n := min(last-newerThan, uint64(max(limit, 0)))
	page, err := ReadVersions(ctx, st, topic, id, newerThan+1, int(n))
	page.More = err == nil && newerThan+n < last
	return page, err
}

// ReadVersions reads n versions from first on, which have to be there. Those that are
// damaged are told apart.
func ReadVersions(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, first uint64, n int) (Page, error) {
	var page Page
	for i, v := range readVersions(ctx, st, topic, id, first, n) {
		switch {
		case v.err == nil:
			page.Versions = append(page.Versions, v.Layout)
		case IsDamage(v.err):
			page.Damaged = append(page.Damaged, DamagedVersion{first + uint64(i), v.err})
		default:
			return Page{}, v.err
		}
	}
	return page, nil
}

// readVersion is a layout version, or why it could not be read.
type readVersion struct {
	layout.Layout
	err error
}

// readVersions reads n versions from first on.
func readVersions(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, first uint64, n int) []readVersion {
	versions := make([]readVersion, n)
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i := range versions {
		group.Go(func() error {
			v := &versions[i]
			v.Layout, v.err = ReadVersion(ctx, st, topic, id, first+uint64(i))
			return nil
		})
	}
	_ = group.Wait() // nothing fails it
	return versions
}

// Extend returns the history with the versions added that have come since. When
// it fails, what could be added is.
func Extend(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, h layout.History) (layout.History, error) {
	last, err := lastVersion(ctx, st, topic, id, h.Last.Version)
	if err != nil {
		return h, err
	}
	for _, v := range readVersions(ctx, st, topic, id, h.Last.Version+1, int(last-h.Last.Version)) {
		if v.err != nil {
			return h, v.err
		}
		if h, err = h.Add(v.Layout); err != nil {
			return h, fmt.Errorf("history of topic %v: %w", topic, err)
		}
	}
	return h, nil
}

// WriteVersion creates the layout version, and then looks whether it is the
// newest. nil: it is. smq.ErrConflict: somebody else has written this version
// or one that follows it, so whatever the caller decided on is outdated: it
// loads the newest and decides anew. Other errors leave the outcome open; to
// repeat the call with the same version is safe.
func WriteVersion(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, l layout.Layout) error {
	if err := createVersion(ctx, st, topic, id, l); err != nil {
		return fmt.Errorf("write layout version %d of topic %v: %w", l.Version, topic, err)
	}
	last, err := lastVersion(ctx, st, topic, id, l.Version)
	if err != nil {
		return err
	}
	if last != l.Version {
		return fmt.Errorf("write layout version %d of topic %v: version %d is there: %w", l.Version, topic, last, smq.ErrConflict)
	}
	return nil
}

// createVersion creates the file. When it cannot tell whether an attempt was
// applied it tries again, until it can or ctx ends.
func createVersion(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID, l layout.Layout) error {
	path, data := layoutDir(topic, id)+"/"+versionName(l.Version), layout.Encode(l)
	var wait background.Backoff
	for {
		err := st.Create(ctx, path, store.Bytes(data))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, smq.ErrExists):
			return compareVersion(ctx, st, path, data)
		case !errors.Is(err, store.ErrAmbiguous):
			return err
		}
		if ended := wait.Next(ctx); ended != nil {
			return fmt.Errorf("%w: %w", smq.ErrTimeout, err)
		}
	}
}

// compareVersion tells an earlier attempt of the caller from somebody else's
// version. Who writes names itself and its term in the file, so equal bytes are
// the caller's own.
func compareVersion(ctx context.Context, st store.Store, path string, data []byte) error {
	there, _, err := st.Read(ctx, path)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, data) {
		return fmt.Errorf("another one is there: %w", smq.ErrConflict)
	}
	return nil
}
