//go:build weed

package seaweed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// wire is the way to the volume servers. It counts what goes over it, and
// harms some of it.
type wire struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen []string                                     // method and path
	harm func(r *http.Request) (*http.Request, error) // may be nil
}

func newWire() *wire { return &wire{next: newHTTPClient().Transport} }

func (w *wire) option() Option { return WithHTTPClient(&http.Client{Transport: w}) }

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.seen = append(w.seen, r.Method+" "+r.URL.Path)
	harm := w.harm
	w.mu.Unlock()
	if harm != nil {
		var err error
		if r, err = harm(r); err != nil {
			return nil, err
		}
	}
	return w.next.RoundTrip(r)
}

func (w *wire) set(harm func(r *http.Request) (*http.Request, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.harm = harm
}

func (w *wire) count(method string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if strings.HasPrefix(s, method+" ") {
			n++
		}
	}
	return n
}

// times harms the first n requests of a method.
func times(n int, method string, harm func(r *http.Request) (*http.Request, error)) func(r *http.Request) (*http.Request, error) {
	var mu sync.Mutex
	return func(r *http.Request) (*http.Request, error) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != method || n == 0 {
			return r, nil
		}
		n--
		return harm(r)
	}
}

func cutOff(*http.Request) (*http.Request, error) { return nil, errors.New("connection reset") }

// garble changes the first byte that is sent.
func garble(r *http.Request) (*http.Request, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b[0]++
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(b))
	return r, nil
}

// TestUploadRetries loses some uploads and garbles others: each piece goes to a
// new place until it has arrived as it was sent.
func TestUploadRetries(t *testing.T) {
	for name, harm := range map[string]func(*http.Request) (*http.Request, error){"cut off": cutOff, "garbled": garble} {
		t.Run(name, func(t *testing.T) {
			w := newWire()
			s := openAt(t, sharedServer(t), freshFolder(), w.option())
			w.set(times(2, http.MethodPut, harm))
			want := randomBytes(1, 3<<20)
			ref, err := s.Upload(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.count(http.MethodPut); got != 5 {
				t.Errorf("%d requests to put 3 pieces, of which 2 were harmed", got)
			}
			if err := s.Create(t.Context(), "/f", store.Refs(ref)); err != nil {
				t.Fatal(err)
			}
			holds(t, s, "/f", string(want))
		})
	}
}

// TestUploadGivesUp has no upload arrive well.
func TestUploadGivesUp(t *testing.T) {
	w := newWire()
	s := openAt(t, sharedServer(t), freshFolder(), w.option())
	w.set(times(-1, http.MethodPut, garble))
	_, err := s.Upload(t.Context(), []byte("x"))
	wantError(t, err, smq.ErrCorrupt)
	w.set(times(-1, http.MethodPut, cutOff))
	err = s.Create(t.Context(), "/f", store.Bytes(randomBytes(1, 100_000)))
	wantError(t, err, smq.ErrUnavailable)
	if errors.Is(err, store.ErrAmbiguous) || s.has(t, "/f") {
		t.Errorf("create without its bytes: %v", err)
	}
}

// TestNothingLeftBehind has creates fail whose bytes are stored already.
func TestNothingLeftBehind(t *testing.T) {
	w := newWire()
	s := openAt(t, sharedServer(t), freshFolder(), w.option())
	large := randomBytes(1, 3<<20)
	if err := s.Create(t.Context(), "/f", store.Bytes([]byte("taken"))); err != nil {
		t.Fatal(err)
	}
	ref, err := s.Upload(t.Context(), []byte("a reference"))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Create(t.Context(), "/f", append(store.Bytes(large), store.Refs(ref)...)), smq.ErrExists)
	_, err = s.Replace(t.Context(), "/f", large, "another version")
	wantError(t, err, smq.ErrConflict)
	if puts, deletes := w.count(http.MethodPut), w.count(http.MethodDelete); deletes != puts-1 {
		t.Errorf("%d pieces were stored and %d deleted: want all but the reference", puts, deletes)
	}
	if err := s.Create(t.Context(), "/g", store.Refs(ref)); err != nil {
		t.Errorf("the reference is gone: %v", err)
	}
}

// TestFetchRetries loses answers, and looks for a piece where it no longer is.
func TestFetchRetries(t *testing.T) {
	w := newWire()
	s := openAt(t, sharedServer(t), freshFolder(), w.option())
	want := randomBytes(1, 3<<20)
	if err := s.Create(t.Context(), "/f", store.Bytes(want)); err != nil {
		t.Fatal(err)
	}
	w.set(times(2, http.MethodGet, cutOff))
	holds(t, s, "/f", string(want))
	f, err := s.open(t.Context(), "/f")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.extents {
		s.places.known.put(x.id.volume, []string{"127.0.0.1:1"}, 1)
	}
	holds(t, s, "/f", string(want))
	w.set(times(-1, http.MethodGet, cutOff))
	_, err = s.ReadAt(t.Context(), "/f", make([]byte, 10), 0)
	wantError(t, err, smq.ErrUnavailable)
}

// TestReadEnds ends the context of calls whose volume server does not answer.
func TestReadEnds(t *testing.T) {
	w := newWire()
	s := openAt(t, sharedServer(t), freshFolder(), w.option())
	large := randomBytes(1, 100_000)
	if err := s.Create(t.Context(), "/f", store.Bytes(large)); err != nil {
		t.Fatal(err)
	}
	ref, err := s.Upload(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"ReadAt":  func(ctx context.Context) error { _, err := s.ReadAt(ctx, "/f", make([]byte, 1), 0); return err },
		"Upload":  func(ctx context.Context) error { _, err := s.Upload(ctx, large); return err },
		"Create":  func(ctx context.Context) error { return s.Create(ctx, "/g", store.Bytes(large)) },
		"Verify":  func(ctx context.Context) error { return s.Create(ctx, "/g", store.Refs(ref)) },
		"Discard": func(ctx context.Context) error { return s.Discard(ctx, ref) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		w.set(func(r *http.Request) (*http.Request, error) {
			cancel()
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		err := call(ctx)
		wantError(t, err, context.Canceled)
		if errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("%s: %v, but no entry was written", name, err)
		}
		cancel()
	}
	w.set(nil)
	if s.has(t, "/g") {
		t.Error("a create that failed for sure was applied")
	}
}

// TestLostPiece takes a piece away from under a file.
func TestLostPiece(t *testing.T) {
	server, folder := sharedServer(t), freshFolder()
	s, other := openAt(t, server, folder), openAt(t, server, folder)
	ref, err := s.Upload(t.Context(), randomBytes(1, 3<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "/d/f", store.Refs(ref)); err != nil {
		t.Fatal(err)
	}
	holds(t, s, "/d/f", string(randomBytes(1, 3<<20))) // so this one remembers it
	if err := s.Discard(t.Context(), store.Ref{Pieces: ref.Pieces[1:2]}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Store{s, other} {
		_, _, err = h.Read(t.Context(), "/d/f")
		wantError(t, err, smq.ErrCorrupt)
		_, err = h.ReadAt(t.Context(), "/d/f", make([]byte, 10), 1<<20)
		wantError(t, err, smq.ErrCorrupt)
		if n, err := h.ReadAt(t.Context(), "/d/f", make([]byte, 10), 0); n != 10 || err != nil {
			t.Errorf("ReadAt of a piece that is there: %d, %v", n, err)
		}
	}
}

// TestDamagedPiece changes bytes on the volume server's disk.
func TestDamagedPiece(t *testing.T) {
	server := sharedServer(t)
	s := openAt(t, server, freshFolder())
	content := randomBytes(77, 2<<20)
	if err := s.Create(t.Context(), "/f", store.Bytes(content)); err != nil {
		t.Fatal(err)
	}
	damage(t, server, content[500:600])
	_, _, err := s.Read(t.Context(), "/f")
	wantError(t, err, smq.ErrCorrupt)
	_, err = s.ReadAt(t.Context(), "/f", make([]byte, 10), 550)
	wantError(t, err, smq.ErrCorrupt)
}

// damage finds the bytes in a volume and changes them.
func damage(t *testing.T, server *weedtest.Server, content []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(server.Dir(), "data", "*.dat"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(names, func(name string) bool {
		b, err := os.ReadFile(name)
		return err == nil && bytes.Contains(b, content)
	})
	if i < 0 {
		t.Fatalf("the bytes are in none of %d volumes", len(names))
	}
	b, err := os.ReadFile(names[i])
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(names[i], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, len(content)), int64(bytes.Index(b, content))); err != nil {
		t.Fatal(err)
	}
}

// TestWrongReference takes over pieces that are not as the reference says.
func TestWrongReference(t *testing.T) {
	s := openAt(t, sharedServer(t), freshFolder())
	ref, err := s.Upload(t.Context(), []byte("0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	longer, other := ref.Pieces[0], ref.Pieces[0]
	longer.Size++
	other.CRC32C++
	for _, p := range []store.Piece{longer, other} {
		wantError(t, s.Create(t.Context(), "/f", store.Refs(store.Ref{Pieces: []store.Piece{p}})), smq.ErrCorrupt)
	}
	guessed := ref.Pieces[0]
	id, err := parseFileID(guessed.ID)
	if err != nil {
		t.Fatal(err)
	}
	id.cookie++
	guessed.ID = id.String()
	wantError(t, s.Create(t.Context(), "/f", store.Refs(store.Ref{Pieces: []store.Piece{guessed}})), smq.ErrNotFound)
	if err := s.Create(t.Context(), "/f", store.Refs(ref)); err != nil {
		t.Fatal(err)
	}
}

// TestFull uses a cluster that has no room for another volume. What is inline
// needs none.
func TestFull(t *testing.T) {
	server := weedtest.Start(t, weedtest.Options{Args: []string{"-volume.max=1"}})
	s := openAt(t, server, "/smq?collection=another")
	_, err := s.Upload(t.Context(), []byte("x"))
	wantError(t, err, smq.ErrNoSpace)
	err = s.Create(t.Context(), "/large", store.Bytes(randomBytes(1, inlineLimit+1)))
	wantError(t, err, smq.ErrNoSpace)
	if s.has(t, "/large") {
		t.Error("a file without its bytes was created")
	}
	if err := s.Create(t.Context(), "/small", store.Bytes([]byte("y"))); err != nil {
		t.Errorf("a small file: %v", err)
	}
	missing, err := s.Check(t.Context())
	if err != nil || !slices.ContainsFunc(missing, func(m string) bool { return strings.Contains(m, "no room") }) {
		t.Errorf("Check = %q, %v", missing, err)
	}
}
