package record_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
)

// benchValues are n different values of one size that look like log lines: a
// codec finds something to do, but not too much.
func benchValues(size, n int) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([][]byte, n)
	for i := range values {
		for len(values[i]) < size {
			values[i] = fmt.Appendf(values[i], `{"user":%d,"action":"open","took":%d.%03d} `, random.IntN(1e6), random.IntN(10), random.IntN(1000))
		}
		values[i] = values[i][:size]
	}
	return values
}

func fill(b *testing.B, builder *record.Builder, values [][]byte) {
	for i, v := range values {
		if err := builder.Append(int64(i), nil, v, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Each operation is a batch of 256 KiB of values.
func perCodec(b *testing.B, run func(b *testing.B, codec record.Codec, values [][]byte)) {
	for _, codec := range allCodecs {
		for _, size := range []int{100, 1024} {
			b.Run(fmt.Sprintf("%v/%dB", codec, size), func(b *testing.B) {
				n := 256 << 10 / size
				b.SetBytes(int64(n * size))
				b.ReportAllocs()
				run(b, codec, benchValues(size, n))
				b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	perCodec(b, func(b *testing.B, codec record.Codec, values [][]byte) {
		builder := record.NewBuilder(codec)
		var dst []byte
		for b.Loop() {
			fill(b, builder, values)
			var err error
			if dst, err = builder.Finish(dst[:0], 1, 2, 3); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkIterate(b *testing.B) {
	perCodec(b, func(b *testing.B, codec record.Codec, values [][]byte) {
		builder := record.NewBuilder(codec)
		fill(b, builder, values)
		batch, err := builder.Finish(nil, 1, 2, 3)
		if err != nil {
			b.Fatal(err)
		}
		var r record.Reader
		for b.Loop() {
			if got, err := readAll(&r, batch); got != len(values) || err != nil {
				b.Fatal(got, err)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			batch := rawBatch(0, 1, make([]byte, size))
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := record.Validate(batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPartition(b *testing.B) {
	key := []byte("customer-0123456789")
	b.SetBytes(int64(len(key)))
	b.ReportAllocs()
	for b.Loop() {
		record.Partition(key, 64)
	}
}

func BenchmarkKeyFromJSON(b *testing.B) {
	s, err := record.ParseKeySource("json:took")
	if err != nil {
		b.Fatal(err)
	}
	value := []byte(`{"user":123456,"action":"open","detail":{"a":[1,2,3],"b":"some text in it"},"took":1.234}`)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Key(nil, value, nil); !ok {
			b.Fatal("no key")
		}
	}
}
