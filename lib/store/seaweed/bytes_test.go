//go:build weed

package seaweed

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/store"
)

// get fetches like a tool that knows nothing of the store.
func get(t testing.TB, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, b
}

// postFile puts a file into the filer as others do.
func postFile(t testing.TB, url string, content []byte) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "f")
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, form.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		t.Fatalf("POST %s: %s", url, resp.Status)
	}
}

// TestPlainFile reads over the filer's HTTP what was made of bytes and
// references, byte for byte, whole and in part.
func TestPlainFile(t *testing.T) {
	server, folder := sharedServer(t), freshFolder()
	s := openAt(t, server, folder)
	var want []byte
	var content []store.Part
	for i, size := range []int{10, 3 << 20, 61, 1, 2<<20 + 7, 700_000, 5} {
		b := randomBytes(uint64(i), size)
		want = append(want, b...)
		if i%2 == 0 {
			content = append(content, store.Bytes(b[:size/2], b[size/2:])...)
			continue
		}
		ref, err := s.Upload(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, store.Refs(ref)...)
	}
	if err := s.Create(t.Context(), "/d/mixed", content); err != nil {
		t.Fatal(err)
	}
	if resp, got := get(t, server.HTTP(folder+"/d/mixed")); resp.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes that differ from the %d written", resp.Status, len(got), len(want))
	}
	for _, at := range []int{0, 5, 9, 10, 3 << 20, 3<<20 + 71, len(want) - 20} {
		_, got := get(t, server.HTTP(folder+"/d/mixed"), "Range", fmt.Sprintf("bytes=%d-%d", at, at+19))
		if !bytes.Equal(got, want[at:at+20]) {
			t.Errorf("at %d: %x, want %x", at, got, want[at:at+20])
		}
	}
}

// TestTextStaysAsItIs stores what looks like text, inline and in pieces. A
// volume server that guessed a type would compress it, and a range of it would
// then be another.
func TestTextStaysAsItIs(t *testing.T) {
	server, folder := sharedServer(t), freshFolder()
	s := openAt(t, server, folder)
	for name, size := range map[string]int{"/small.txt": 1000, "/large.txt": 300_000, "/large.html": 2 << 20} {
		want := []byte(strings.Repeat("<p>All work and no play.</p>\n", size/29+1)[:size])
		if err := s.Create(t.Context(), name, store.Bytes(want)); err != nil {
			t.Fatal(err)
		}
		if _, got := get(t, server.HTTP(folder+name)); !bytes.Equal(got, want) {
			t.Errorf("%s by the filer's HTTP: %d bytes that differ", name, len(got))
		}
		f, err := s.open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range f.extents {
			resp, got := get(t, "http://"+server.Volume()+"/"+x.id.String(), "Accept-Encoding", "gzip")
			if e := resp.Header.Get("Content-Encoding"); e != "" || !bytes.Equal(got, want[x.off:x.end()]) {
				t.Errorf("%s: piece %s has encoding %q and %d bytes, want none and %d", name, x.id, e, len(got), x.size)
			}
		}
	}
}

// TestOthersFile reads a file that the filer has put into pieces of its own.
func TestOthersFile(t *testing.T) {
	server, folder := sharedServer(t), freshFolder()
	s := openAt(t, server, folder)
	want := randomBytes(1, 9<<20)
	postFile(t, server.HTTP(folder+"/theirs"), want)
	holds(t, s, "/theirs", string(want))
}
