package seaweed

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/seaweedmq/smq/lib/store"
)

func randomRun(random *rand.Rand, slices, size int) (r run, joined []byte) {
	for range slices {
		b := make([]byte, random.IntN(size))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		r, joined = append(r, b), append(joined, b...)
	}
	return r, joined
}

// TestRun compares runs of any shape with the bytes that they hold.
func TestRun(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		r, want := randomRun(random, random.IntN(6), 1+random.IntN(300))
		before := r.join()
		size := int64(1 + random.IntN(400))
		var got []byte
		pieces := r.pieces(size)
		for _, p := range pieces {
			if n := p.size(); n == 0 || n > size*3/2 || n < size/2 && len(pieces) > 1 {
				t.Fatalf("a piece of %d bytes of %d, asked for were %d", n, r.size(), size)
			}
			b, err := io.ReadAll(iotest.OneByteReader(p.reader()))
			if err != nil || !bytes.Equal(b, p.join()) || crc32.Checksum(b, castagnoli) != p.crc() {
				t.Fatalf("a piece reads as %x, %v, joined it is %x", b, err, p.join())
			}
			got = append(got, b...)
		}
		if !bytes.Equal(got, want) || !bytes.Equal(r.join(), before) || r.size() != int64(len(want)) {
			t.Fatalf("the pieces of %x are %x", want, got)
		}
		if err := iotest.TestReader(r.reader(), want); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPiecesOfAChunk looks at sizes as they come: no piece is a small rest.
func TestPiecesOfAChunk(t *testing.T) {
	for size, want := range map[int64]int{
		1: 1, pieceSize: 1, pieceSize + 1: 1, pieceSize*3/2 - 1: 1, pieceSize * 3 / 2: 2, 4*pieceSize + 2000: 4, 16 * pieceSize: 16,
	} {
		if got := len(run{make([]byte, size)}.pieces(pieceSize)); got != want {
			t.Errorf("%d bytes make %d pieces, want %d", size, got, want)
		}
	}
}

func TestJoinRuns(t *testing.T) {
	ref := func(ids ...string) store.Part {
		var r store.Ref
		for _, id := range ids {
			r.Pieces = append(r.Pieces, store.Piece{ID: id, Size: 1})
		}
		return store.Part{Ref: &r}
	}
	text := func(s string) store.Part { return store.Part{Bytes: []byte(s)} }
	for name, test := range map[string]struct {
		content []store.Part
		want    string // runs in quotes, pieces in brackets
		inline  bool
	}{
		"nothing":    {nil, "", true},
		"empty":      {[]store.Part{{}, text(""), ref()}, "", true},
		"bytes":      {[]store.Part{text("a"), text(""), text("bc")}, `"abc"`, true},
		"references": {[]store.Part{ref("1", "2"), {}, ref("3")}, "[123]", false},
		"mixed":      {[]store.Part{text("a"), ref("1"), ref("2"), text("b"), text("c"), ref("3")}, `"a"[12]"bc"[3]`, false},
		"both":       {[]store.Part{{Bytes: []byte("a"), Ref: ref("1").Ref}}, `"a"`, true},
	} {
		all := joinRuns(test.content)
		got := ""
		for _, s := range all {
			if s.pieces == nil {
				got += `"` + string(s.bytes.join()) + `"`
				continue
			}
			got += "["
			for _, p := range s.pieces {
				got += p.ID
			}
			got += "]"
		}
		if _, inline := all.inline(); got != test.want || inline != test.inline {
			t.Errorf("%s: %s, inline %v; want %s, %v", name, got, inline, test.want, test.inline)
		}
	}
	for _, p := range []int{inlineLimit, inlineLimit + 1} {
		if _, inline := joinRuns(store.Bytes(make([]byte, p))).inline(); inline != (p == inlineLimit) {
			t.Errorf("%d bytes are inline: %v", p, inline)
		}
	}
}

// TestJoinRunsKeepsReferences joins references without writing into their own
// memory.
func TestJoinRunsKeepsReferences(t *testing.T) {
	one := store.Ref{Pieces: make([]store.Piece, 1, 10)}
	two := store.Ref{Pieces: []store.Piece{{ID: "2"}}}
	joinRuns(store.Refs(one, two))
	if one.Pieces[:2][1].ID != "" {
		t.Error("the memory behind a reference was written")
	}
}
