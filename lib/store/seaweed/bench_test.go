//go:build weed

package seaweed

import (
	"fmt"
	"testing"

	"github.com/seaweedmq/smq/lib/store"
)

func benchmarkCreate(b *testing.B, size int) {
	s := openAt(b, sharedServer(b), freshFolder())
	data := randomBytes(1, size)
	b.SetBytes(int64(size))
	for i := 0; b.Loop(); i++ {
		if err := s.Create(b.Context(), fmt.Sprintf("/b/%09d", i), store.Bytes(data)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreate1K(b *testing.B)  { benchmarkCreate(b, 1<<10) }
func BenchmarkCreate16K(b *testing.B) { benchmarkCreate(b, 16<<10) }
func BenchmarkCreate64K(b *testing.B) { benchmarkCreate(b, 64<<10) }

// BenchmarkUploadCreate4M makes files as a segment's owner does: the bytes
// first, then the name.
func BenchmarkUploadCreate4M(b *testing.B) {
	s := openAt(b, sharedServer(b), freshFolder())
	data, footer := randomBytes(1, 4<<20), randomBytes(2, 2<<10)
	b.SetBytes(4 << 20)
	for i := 0; b.Loop(); i++ {
		ref, err := s.Upload(b.Context(), data, footer)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Create(b.Context(), fmt.Sprintf("/b/%09d", i), store.Refs(ref)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateUploaded4M is the second half of it: what creates that must
// follow one another take.
func BenchmarkCreateUploaded4M(b *testing.B) {
	s := openAt(b, sharedServer(b), freshFolder())
	data := randomBytes(1, 4<<20)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		ref, err := s.Upload(b.Context(), data)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := s.Create(b.Context(), fmt.Sprintf("/b/%09d", i), store.Refs(ref)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadAt1M reads a remembered file piece by piece.
func BenchmarkReadAt1M(b *testing.B) {
	s := openAt(b, sharedServer(b), freshFolder())
	if err := s.Create(b.Context(), "/f", store.Bytes(randomBytes(1, 4<<20))); err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for i := 0; b.Loop(); i++ {
		if _, err := s.ReadAt(b.Context(), "/f", p, int64(i%4)<<20); err != nil {
			b.Fatal(err)
		}
	}
}
