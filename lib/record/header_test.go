package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestHeaderRoundTrip(t *testing.T) {
	h := record.Header{
		BaseOffset: math.MaxInt64 - 1, Length: 1000, LeaderEpoch: math.MinInt32, Magic: 2, CRC: 0xdeadbeef,
		Attributes: -2, LastOffsetDelta: math.MaxInt32, BaseTimestamp: -5, MaxTimestamp: math.MinInt64,
		ProducerID: 1 << 40, ProducerEpoch: -3, BaseSequence: 77, Count: -9,
	}
	b := h.AppendTo([]byte("x"))[1:]
	if len(b) != record.HeaderSize {
		t.Fatalf("%d bytes", len(b))
	}
	got, err := record.ParseHeader(b)
	if err != nil || got != h {
		t.Errorf("parsed %+v, %v\nwant   %+v", got, err, h)
	}
	if got.Size() != 1012 {
		t.Errorf("size %d", got.Size())
	}
}

func TestParseHeaderErrors(t *testing.T) {
	good := sampleBatch(t, record.None, 1)[:record.HeaderSize]
	for name, b := range map[string][]byte{
		"empty":           nil,
		"cut short":       good[:record.HeaderSize-1],
		"magic 1":         edit(good, 16, 1),
		"length 48":       edit(good, 8, 0, 0, 0, 48),
		"negative length": edit(good, 8, 0xff, 0xff, 0xff, 0xff),
	} {
		if _, err := record.ParseHeader(b); !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := record.ParseHeader(edit(good, 8, 0, 0, 0, 49)); err != nil {
		t.Errorf("length 49: %v", err)
	}
}

// edit copies b with other bytes from offset at on.
func edit(b []byte, at int, with ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], with)
	return b
}

func TestPatchKeepsBatchValid(t *testing.T) {
	batch := sampleBatch(t, record.Zstd, 100)
	before := bytes.Clone(batch)
	record.Patch(batch, 1<<40, 9)
	h, err := record.Validate(batch)
	if err != nil || h.BaseOffset != 1<<40 || h.LeaderEpoch != 9 || h.LastOffset() != 1<<40+99 {
		t.Errorf("%+v, %v", h, err)
	}
	if !bytes.Equal(before[17:], batch[17:]) || !bytes.Equal(before[8:12], batch[8:12]) {
		t.Error("other bytes than base offset and leader epoch have changed")
	}
	checkSample(t, batch, 1<<40, 100)
}

func TestResequence(t *testing.T) {
	batch := sampleBatch(t, record.LZ4, 100)
	before, _ := record.ParseHeader(batch)
	record.Resequence(batch, 4, math.MaxInt32-9)
	h, err := record.Validate(batch)
	if err != nil {
		t.Fatal(err)
	}
	if h.LastSequence() != 89 {
		t.Errorf("last sequence %d, want it to wrap to 89", h.LastSequence())
	}
	want := before
	want.ProducerEpoch, want.BaseSequence, want.CRC = 4, math.MaxInt32-9, h.CRC
	if h != want {
		t.Errorf("header %+v\nwant   %+v", h, want)
	}
	checkSample(t, batch, 0, 100)
}

func TestPatchPanicsOnLessThanAHeader(t *testing.T) {
	short := make([]byte, record.HeaderSize-1)
	for name, f := range map[string]func(){
		"Patch":      func() { record.Patch(short, 1, 1) },
		"Resequence": func() { record.Resequence(short, 1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s wrote into less than a header", name)
				}
			}()
			f()
		}()
	}
	if !bytes.Equal(short, make([]byte, len(short))) {
		t.Error("bytes were written before the panic")
	}
}

func TestValidateErrors(t *testing.T) {
	good := sampleBatch(t, record.None, 3)
	be := binary.BigEndian
	large := rawBatch(0, 1, make([]byte, smq.MaxBatchSize-record.HeaderSize+1))
	tests := []struct {
		name  string
		batch []byte
		want  error
	}{
		{"empty", nil, smq.ErrCorrupt},
		{"only a header's start", good[:60], smq.ErrCorrupt},
		{"cut short", good[:len(good)-1], smq.ErrCorrupt},
		{"trailing byte", append(bytes.Clone(good), 0), smq.ErrCorrupt},
		{"trailing byte that the CRC covers", sign(append(bytes.Clone(good), 0)), smq.ErrCorrupt},
		{"magic", edit(good, 16, 3), smq.ErrCorrupt},
		{"CRC", edit(good, 17, good[17]^1), smq.ErrCorrupt},
		{"flipped bit in the last byte", edit(good, len(good)-1, good[len(good)-1]^1), smq.ErrCorrupt},
		{"flipped transactional bit", edit(good, 22, 0x10), smq.ErrCorrupt},
		{"too large", large, smq.ErrTooLarge},
		{"count below the delta", sign(edit(good, 57, 0, 0, 0, 2)), smq.ErrCorrupt},
		{"count 0", rawBatch(0, 0, nil), smq.ErrCorrupt},
		{"negative count", rawBatch(0, -1, nil), smq.ErrCorrupt},
		{"delta that wraps", rawBatch(0, math.MinInt32, nil), smq.ErrCorrupt},
		{"more records than bytes for them", rawBatch(0, 2, make([]byte, 13)), smq.ErrCorrupt},
		{"more compressed records than fit", rawBatch(4, math.MaxInt32, make([]byte, 13)), smq.ErrCorrupt},
		{"transactional", sign(edit(good, 22, 0x10)), smq.ErrInvalid},
		{"control", sign(edit(good, 22, 0x20)), smq.ErrInvalid},
		{"log append time", sign(edit(good, 22, 0x08)), smq.ErrInvalid},
		{"delete horizon", sign(edit(good, 22, 0x40)), smq.ErrInvalid},
		{"reserved attribute", sign(edit(good, 21, 0x80)), smq.ErrInvalid},
		{"codec 5", sign(edit(good, 22, 5)), smq.ErrInvalid},
		{"producer id -2", sign(edit(good, 43, be.AppendUint64(nil, math.MaxUint64-1)...)), smq.ErrInvalid},
		{"producer without epoch", sign(edit(good, 51, 0xff, 0xff)), smq.ErrInvalid},
		{"producer without sequence", sign(edit(good, 53, 0xff, 0xff, 0xff, 0xff)), smq.ErrInvalid},
	}
	for _, tt := range tests {
		h, err := record.Validate(tt.batch)
		if !errors.Is(err, tt.want) || h != (record.Header{}) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := record.Validate(large[:len(large)-1]); !errors.Is(err, smq.ErrTooLarge) {
		t.Errorf("too large and cut short: %v", err)
	}
	if _, err := record.Validate(rawBatch(0, 1, make([]byte, smq.MaxBatchSize-record.HeaderSize))); err != nil {
		t.Errorf("the largest batch: %v", err)
	}
}

func TestCheckAgreesWithValidate(t *testing.T) {
	h, err := record.ParseHeader(sampleBatch(t, record.Gzip, 10))
	if err != nil || h.Check() != nil {
		t.Fatal(err, h.Check())
	}
	for name, c := range map[string]struct {
		edit func(*record.Header)
		want error
	}{
		"magic":  {func(h *record.Header) { h.Magic = 1 }, smq.ErrCorrupt},
		"length": {func(h *record.Header) { h.Length = 0 }, smq.ErrCorrupt},
		"size":   {func(h *record.Header) { h.Length = smq.MaxBatchSize }, smq.ErrTooLarge},
		"codec":  {func(h *record.Header) { h.Attributes = 7 }, smq.ErrInvalid},
	} {
		broken := h
		c.edit(&broken)
		if err := broken.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
