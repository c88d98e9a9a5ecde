package torture

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/wire"
)

func TestFilersAreReachedThroughDoors(t *testing.T) {
	network := wire.New(nil)
	defer network.Close()
	u, err := url.Parse("seaweedfs://filer-1,filer-2:9999/folder?fsync=true")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newFilers(u, network)
	if err != nil {
		t.Fatal(err)
	}
	if s.direct != u.String() {
		t.Errorf("directly: %s", s.direct)
	}
	through, err := url.Parse(s.url)
	if err != nil || through.Path != u.Path || through.RawQuery != u.RawQuery || through.Scheme != u.Scheme {
		t.Errorf("through doors: %s, %v", s.url, err)
	}
	doors := strings.Split(through.Host, ",")
	if len(doors) != 2 || doors[0] == doors[1] {
		t.Fatalf("doors: %v", doors)
	}
	for _, d := range doors {
		if _, err := grpcAddress(d); err != nil {
			t.Errorf("door %s: %v", d, err)
		}
	}
	if !slices.Contains(s.have, storeNetwork) || slices.Contains(s.have, fileLimits) {
		t.Errorf("it has %v", s.have)
	}
}

func TestGRPCAddresses(t *testing.T) {
	if got, err := grpcAddress("filer:8888"); got != "filer:18888" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"filer", "filer:http"} {
		if _, err := grpcAddress(bad); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestASharedDirectory(t *testing.T) {
	network := wire.New(nil)
	defer network.Close()
	shared := "dir://" + t.TempDir()
	a, err := newSharedStorage(t.Context(), shared, network)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newSharedStorage(t.Context(), shared, network)
	if err != nil {
		t.Fatal(err)
	}
	if a.url == b.url || a.url != a.direct || !strings.HasPrefix(a.url, shared+"/torture-") {
		t.Errorf("two runs are in %s and %s", a.url, b.url)
	}
	st, err := a.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Replace(t.Context(), "/file", []byte("text"), ""); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err = a.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, _, err := st.Read(t.Context(), "/file"); !errors.Is(err, smq.ErrNotFound) {
		t.Errorf("after its removal: %v", err)
	}
	if _, err := newSharedStorage(t.Context(), "nfs://host/dir", network); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("another kind of store: %v", err)
	}
}
