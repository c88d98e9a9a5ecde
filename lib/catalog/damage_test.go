package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// spoil cuts a file short.
func spoil(t *testing.T, st store.Store, path string) {
	t.Helper()
	data, v, err := st.Read(t.Context(), path)
	if err == nil {
		_, err = st.Replace(t.Context(), path, data[:len(data)/2], v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func configFile(c catalog.Config) string {
	return fmt.Sprintf("/topics/%s/%s/topic.json", c.Topic.Namespace, c.Topic.Name)
}

func versionFile(c catalog.Config, v int) string {
	return fmt.Sprintf("/topics/%s/%s/%s/layout/%020d.json", c.Topic.Namespace, c.Topic.Name, c.ID, v)
}

// refusing is a store that does not give a file out.
type refusing struct {
	store.Store
	path string
	err  error
}

func (r refusing) Read(ctx context.Context, path string) ([]byte, store.Version, error) {
	if path == r.path {
		return nil, "", fmt.Errorf("read %s: %w", path, r.err)
	}
	return r.Store.Read(ctx, path)
}

func TestIsDamage(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, smq.ErrCorrupt: true, smq.ErrInvalid: true, smq.ErrTooLarge: true, errors.New("permission denied"): true,
		smq.ErrNotFound: false, smq.ErrUnavailable: false, smq.ErrTimeout: false, context.Canceled: false, store.ErrAmbiguous: false,
		fmt.Errorf("%w: %w", smq.ErrTimeout, smq.ErrCorrupt): false,
	} {
		if got := catalog.IsDamage(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// A version that is damaged keeps nobody from reading the others.
func TestVersionsTellDamageApart(t *testing.T) {
	st, c := mem.New(), topic("t")
	versions(t, st, c, 10)
	spoil(t, st, versionFile(c, 4))
	page, err := catalog.Versions(t.Context(), st, c.Topic, c.ID, 2, 5)
	if err != nil || len(page.Versions) != 4 || len(page.Damaged) != 1 || !page.More {
		t.Fatalf("%+v, %v", page, err)
	}
	for i, want := range []uint64{3, 5, 6, 7} {
		if page.Versions[i].Version != want {
			t.Errorf("version %d in the place of %d", page.Versions[i].Version, want)
		}
	}
	if d := page.Damaged[0]; d.Version != 4 || !strings.Contains(d.Err.Error(), versionFile(c, 4)) || !errors.Is(d.Err, smq.ErrCorrupt) {
		t.Errorf("damaged: %d, %v", d.Version, d.Err)
	}
	h, err := catalog.Extend(t.Context(), st, c.Topic, c.ID, layout.History{})
	if h.Last.Version != 3 || !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("the history goes to version %d, %v", h.Last.Version, err)
	}
	away := refusing{st, versionFile(c, 5), smq.ErrUnavailable}
	if _, err := catalog.Versions(t.Context(), away, c.Topic, c.ID, 2, 5); !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("a store that is away: %v", err)
	}
}

func TestCheck(t *testing.T) {
	ctx, st := t.Context(), mem.New()
	all := map[string]catalog.Config{}
	for _, name := range []string{"well", "config", "newest", "older", "deleted", "empty", "refused"} {
		c := topic(name)
		all[name] = c
		wantErr(t, name, catalog.Create(ctx, st, c), nil)
		if name != "empty" {
			versions(t, st, c, 3)
		}
	}
	e, err := catalog.Read(ctx, st, all["deleted"].Topic)
	wantErr(t, "read", err, nil)
	wantErr(t, "delete", catalog.Delete(ctx, st, e, 9), nil)
	spoil(t, st, configFile(all["config"]))
	spoil(t, st, versionFile(all["newest"], 3))
	spoil(t, st, versionFile(all["older"], 2)) // nobody needs it to serve the topic
	refused := refusing{st, configFile(all["refused"]), errors.New("permission denied")}

	found, err := catalog.Check(ctx, refused)
	if err != nil || len(found) != 3 {
		t.Fatalf("found %v, %v", found, err)
	}
	for i, want := range []string{configFile(all["config"]), versionFile(all["newest"], 3), configFile(all["refused"])} {
		if got := found[i].Err.Error(); !strings.Contains(got, want) || !strings.Contains(want, found[i].Topic.Name) {
			t.Errorf("topic %v: %s; want file %s", found[i].Topic, got, want)
		}
	}
	away := refusing{st, configFile(all["well"]), smq.ErrUnavailable}
	if found, err := catalog.Check(ctx, away); !errors.Is(err, smq.ErrUnavailable) || len(found) != 2 {
		t.Errorf("a store that is away for a moment: %v, %v", found, err)
	}
}
