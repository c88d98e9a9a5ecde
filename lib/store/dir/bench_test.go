package dir

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/seaweedmq/smq/lib/store"
)

// benchmarkPath spreads files over folders as segments do.
func benchmarkPath(n int64) string { return fmt.Sprintf("/bench/%d/%020d.log", n/4096, n) }

func benchmarkSizes(b *testing.B, f func(b *testing.B, s *Store, data []byte)) {
	for _, fsync := range []bool{true, false} {
		for _, size := range []int{1 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("fsync=%v/size=%d", fsync, size), func(b *testing.B) {
				s := mustOpen(b, b.TempDir(), Options{Fsync: fsync})
				b.SetBytes(int64(size))
				b.ReportAllocs()
				f(b, s, make([]byte, size))
			})
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, s *Store, data []byte) {
		n := int64(0)
		for b.Loop() {
			if err := s.Create(b.Context(), benchmarkPath(n), store.Bytes(data)); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

func BenchmarkCreateParallel(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, s *Store, data []byte) {
		b.SetParallelism(16)
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := s.Create(b.Context(), benchmarkPath(n.Add(1)), store.Bytes(data)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func BenchmarkUploadAndCreate(b *testing.B) {
	benchmarkSizes(b, func(b *testing.B, s *Store, data []byte) {
		n := int64(0)
		for b.Loop() {
			ref, err := s.Upload(b.Context(), data)
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Create(b.Context(), benchmarkPath(n), store.Refs(ref)); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

func BenchmarkReadAt(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	path := "/topics/default/topic/0123456789abcdef/segments/1/0.log"
	if err := s.Create(b.Context(), path, store.Bytes(make([]byte, 1<<20))); err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.ReadAt(b.Context(), path, p, 8192); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkListPage lists 1000 of 100,000 names.
func BenchmarkListPage(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	if err := s.Create(b.Context(), "/d/f", nil); err != nil {
		b.Fatal(err)
	}
	for i := range 100_000 {
		if err := os.WriteFile(s.native(fmt.Sprintf("/d/%020d.log", i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		infos, err := s.List(b.Context(), "/d", fmt.Sprintf("%020d.log", 50_000), 1000)
		if err != nil || len(infos) != 1000 {
			b.Fatal(len(infos), err)
		}
	}
}
