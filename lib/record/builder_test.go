package record_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestBuilderIsReusable(t *testing.T) {
	for _, codec := range allCodecs {
		b := record.NewBuilder(codec)
		var out []byte
		for round := range 3 {
			for i := range 50 {
				m := sampleMessage(i)
				if err := b.Append(m.Timestamp, m.Key, m.Value, m.Headers); err != nil {
					t.Fatal(err)
				}
			}
			start := len(out)
			var err error
			if out, err = b.Finish(out, 42, 3, int32(round)); err != nil {
				t.Fatal(err)
			}
			if b.Len() != 0 || b.Size() != record.HeaderSize {
				t.Fatalf("%v: %d messages, size %d after Finish", codec, b.Len(), b.Size())
			}
			checkSample(t, out[start:], 0, 50)
			if h, _ := record.ParseHeader(out[start:]); h.BaseSequence != int32(round) || h.BaseOffset != 0 || h.LeaderEpoch != -1 {
				t.Errorf("%v: %+v", codec, h)
			}
		}
		checkSample(t, out[:len(out)/3], 0, 50) // the first is still as it was
	}
}

func TestBuilderSizes(t *testing.T) {
	b := record.NewBuilder(record.None)
	for i := range 300 {
		m := sampleMessage(i)
		want := b.SizeWith(m.Timestamp, m.Key, m.Value, m.Headers)
		if err := b.Append(m.Timestamp, m.Key, m.Value, m.Headers); err != nil {
			t.Fatal(err)
		}
		if b.Size() != want || b.Len() != i+1 {
			t.Fatalf("message %d: size %d, SizeWith said %d; %d messages", i, b.Size(), want, b.Len())
		}
	}
	size := b.Size()
	batch, err := b.Finish(nil, record.NoProducerID, record.NoProducerEpoch, record.NoSequence)
	if err != nil || len(batch) != size {
		t.Errorf("%d bytes, %v; Size said %d", len(batch), err, size)
	}
}

func TestBuilderTimestamps(t *testing.T) {
	stamps := []int64{-1, math.MaxInt64, math.MinInt64, 0, 63, 64, -64, -65, 1 << 40}
	b := record.NewBuilder(record.None)
	for _, ts := range stamps {
		if err := b.Append(ts, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Finish(nil, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var r record.Reader
	if err := r.Reset(batch); err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); h.BaseTimestamp != -1 || h.MaxTimestamp != math.MaxInt64 {
		t.Errorf("%+v", h)
	}
	for i, ts := range stamps {
		if m, ok := r.Next(); !ok || m.Timestamp != ts {
			t.Errorf("message %d: %d, %v; want %d", i, m.Timestamp, ok, ts)
		}
	}
}

func TestFinishEmptyBatch(t *testing.T) {
	b := record.NewBuilder(record.Gzip)
	dst := []byte("before")
	out, err := b.Finish(dst, 0, 0, 0)
	if !errors.Is(err, smq.ErrInvalid) || string(out) != "before" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestUnknownCodecFailsAtFinish(t *testing.T) {
	b := record.NewBuilder(record.Codec(5))
	if err := b.Append(0, nil, []byte("v"), nil); err != nil {
		t.Fatal(err)
	}
	if out, err := b.Finish(nil, 0, 0, 0); !errors.Is(err, smq.ErrInvalid) || out != nil || b.Len() != 1 {
		t.Errorf("%x, %v, %d messages left", out, err, b.Len())
	}
}

func TestResetDropsMessages(t *testing.T) {
	b := record.NewBuilder(record.None)
	for range 2 {
		if err := b.Append(99, []byte("dropped"), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	b.Reset()
	b.Reset() // of an empty one
	m := sampleMessage(0)
	if err := b.Append(m.Timestamp, m.Key, m.Value, m.Headers); err != nil {
		t.Fatal(err)
	}
	batch, err := b.Finish(nil, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkSample(t, batch, 0, 1)
}

func TestWhatDoesNotShrinkIsLeftAsItIs(t *testing.T) {
	noise := make([]byte, 1000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for _, codec := range allCodecs {
		b := record.NewBuilder(codec)
		if err := b.Append(7, nil, noise, nil); err != nil {
			t.Fatal(err)
		}
		size := b.Size()
		batch, err := b.Finish(nil, 0, 0, 0)
		if err != nil || len(batch) != size {
			t.Fatalf("%v: %d bytes, %v; want %d", codec, len(batch), err, size)
		}
		h, err := record.Validate(batch)
		if err != nil || h.Codec() != record.None {
			t.Errorf("%v: codec %v, %v", codec, h.Codec(), err)
		}
	}
}

func TestLargestMessage(t *testing.T) {
	largest := bytes.Repeat([]byte("0123456789abcdef"), smq.MaxMessageSize/16)
	headers := []record.RecordHeader{{Key: []byte("k"), Value: []byte("v")}}
	for _, codec := range allCodecs {
		b := record.NewBuilder(codec)
		if err := b.Append(0, []byte("x"), largest, nil); !errors.Is(err, smq.ErrTooLarge) || b.Len() != 0 {
			t.Fatalf("one byte more: %v", err)
		}
		if err := b.Append(0, []byte("x"), largest[3:], headers); err != nil {
			t.Fatal(err)
		}
		batch, err := b.Finish(nil, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		var r record.Reader
		if err := r.Reset(batch); err != nil {
			t.Fatal(err)
		}
		if m, ok := r.Next(); !ok || !bytes.Equal(m.Value, largest[3:]) {
			t.Errorf("%v: %d bytes, %v, %v", codec, len(m.Value), ok, r.Err())
		}
	}
}

func TestMessageWithTooMuchFraming(t *testing.T) {
	b := record.NewBuilder(record.None)
	if err := b.Append(0, nil, nil, make([]record.RecordHeader, record.MaxHeaders+1)); !errors.Is(err, smq.ErrTooLarge) {
		t.Errorf("too many headers: %v", err)
	}
	if err := b.Append(0, nil, nil, make([]record.RecordHeader, record.MaxHeaders)); err != nil {
		t.Errorf("the most headers: %v", err)
	}
	b.Reset()
	// Within the limit of messages, but not of a batch when encoded.
	value := make([]byte, smq.MaxMessageSize)
	if err := b.Append(0, nil, value, make([]record.RecordHeader, 40_000)); !errors.Is(err, smq.ErrTooLarge) || errors.Is(err, record.ErrFull) {
		t.Errorf("80 kB of empty headers: %v", err)
	}
	if b.Len() != 0 || b.Size() != record.HeaderSize {
		t.Errorf("%d messages, size %d", b.Len(), b.Size())
	}
}

func TestFullBatch(t *testing.T) {
	b := record.NewBuilder(record.None)
	value := make([]byte, 3<<20)
	for range 5 {
		if err := b.Append(0, nil, value, nil); err != nil {
			t.Fatal(err)
		}
	}
	size := b.Size()
	if err := b.Append(0, nil, value, nil); !errors.Is(err, record.ErrFull) || errors.Is(err, smq.ErrTooLarge) {
		t.Fatalf("sixth message of 3 MiB: %v", err)
	}
	if b.Len() != 5 || b.Size() != size {
		t.Errorf("the refused message has changed the batch: %d messages, size %d", b.Len(), b.Size())
	}
	batch, err := b.Finish(nil, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := record.Validate(batch); err != nil || h.Count != 5 {
		t.Errorf("%+v, %v", h, err)
	}
	if err := b.Append(0, nil, value, nil); err != nil {
		t.Errorf("into the next batch: %v", err)
	}
}

func TestBatchFilledToTheLastByte(t *testing.T) {
	b := record.NewBuilder(record.None)
	if err := b.Append(0, nil, make([]byte, smq.MaxMessageSize), nil); err != nil {
		t.Fatal(err)
	}
	room := smq.MaxBatchSize - b.Size()
	framing := b.SizeWith(0, nil, make([]byte, room/2), nil) - b.Size() - room/2
	if err := b.Append(0, nil, make([]byte, room-framing+1), nil); !errors.Is(err, record.ErrFull) {
		t.Fatalf("one byte more than fits: %v", err)
	}
	if err := b.Append(0, nil, make([]byte, room-framing), nil); err != nil {
		t.Fatal(err)
	}
	batch, err := b.Finish(nil, 0, 0, 0)
	if err != nil || len(batch) != smq.MaxBatchSize {
		t.Fatalf("%d bytes, %v", len(batch), err)
	}
	if _, err := record.Validate(batch); err != nil {
		t.Error(err)
	}
}
