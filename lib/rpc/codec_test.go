package rpc

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func head(batches ...uint32) *smqpb.DeliverHead {
	h := &smqpb.DeliverHead{}
	for i, size := range batches {
		h.Batches = append(h.Batches, &smqpb.DeliverBatch{Partition: int32(i), Size: size})
	}
	return h
}

func encode(t testing.TB, f *outFrame) []byte {
	t.Helper()
	out, err := newCodec().Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Free()
	return out.Materialize()
}

// cut splits b into buffers of n bytes, as a connection may deliver it.
func cut(b []byte, n int) mem.BufferSlice {
	var s mem.BufferSlice
	for len(b) > n {
		s, b = append(s, mem.SliceBuffer(b[:n])), b[n:]
	}
	return append(s, mem.SliceBuffer(b))
}

// decode reads b, delivered in buffers of n bytes, into f.
func decode(b []byte, n int, f *inFrame) error {
	if err := newCodec().Unmarshal(cut(b, n), f); err != nil {
		return err
	}
	return f.err
}

func TestFrameRoundTrip(t *testing.T) {
	for name, f := range map[string]*outFrame{
		"empty":           {head: head()},
		"head only":       {head: head(1, 2)},
		"payload only":    {head: head(), payload: [][]byte{[]byte("abc")}},
		"empty slices":    {head: head(0, 3), payload: [][]byte{nil, []byte("abc"), {}}},
		"several batches": {head: head(3, 1000), payload: [][]byte{[]byte("abc"), bytes.Repeat([]byte{7}, 1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			b := encode(t, f)
			for _, size := range []int{1, 2, 3, 64, len(b) + 1} {
				got := inFrame{head: head(99)} // stale content must go
				if err := decode(b, size, &got); err != nil {
					t.Fatalf("in pieces of %d bytes: %v", size, err)
				}
				if !proto.Equal(got.head, f.head) {
					t.Errorf("head %v, want %v", got.head, f.head)
				}
				if want := bytes.Join(f.payload, nil); !bytes.Equal(got.payload, want) {
					t.Errorf("payload %q, want %q", got.payload, want)
				}
			}
		})
	}
}

func TestSendingDoesNotCopyThePayload(t *testing.T) {
	payload := []byte("some batch")
	out, err := newCodec().Marshal(&outFrame{head: head(10), payload: [][]byte{payload}})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Free()
	if last := out[len(out)-1].ReadOnlyData(); &last[0] != &payload[0] {
		t.Error("the payload was copied")
	}
}

func TestReceivedPayloadIsTheReceiversOwn(t *testing.T) {
	b := encode(t, &outFrame{head: head(3), payload: [][]byte{[]byte("abc")}})
	got := inFrame{head: head()}
	if err := decode(b, len(b), &got); err != nil {
		t.Fatal(err)
	}
	clear(b)
	if string(got.payload) != "abc" {
		t.Errorf("the payload changed to %q with the buffer that it came in", got.payload)
	}
}

// A frame is what any protobuf library makes of a message with the head as
// field 1 and the payload as field 2, with fields of the future after them.
func TestFrameIsAProtobufMessage(t *testing.T) {
	want := head(3)
	encoded, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), encoded)
	b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), []byte("abc"))
	if got := encode(t, &outFrame{head: want, payload: [][]byte{[]byte("abc")}}); !bytes.Equal(got, b) {
		t.Errorf("encoded as %x, protobuf has %x", got, b)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), 300)
	b = protowire.AppendFixed32(protowire.AppendTag(b, 4, protowire.Fixed32Type), 1)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 5, protowire.Fixed64Type), 1)
	b = protowire.AppendBytes(protowire.AppendTag(b, 6, protowire.BytesType), []byte("new"))
	got := inFrame{head: head()}
	if err := decode(b, 5, &got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got.head, want) || string(got.payload) != "abc" {
		t.Errorf("got %v %q", got.head, got.payload)
	}
}

func TestMalformedFrames(t *testing.T) {
	good := encode(t, &outFrame{head: head(3), payload: [][]byte{[]byte("abc")}})
	huge := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.BytesType), 1<<62)
	for name, b := range map[string][]byte{
		"cut in the payload":   good[:len(good)-1],
		"cut in the head":      good[:3],
		"cut in a tag":         {0x80},
		"field number 0":       {0x02, 0x00},
		"head as a number":     {0x08, 0x01},
		"two heads":            {0x0a, 0x00, 0x0a, 0x00},
		"two payloads":         {0x12, 0x00, 0x12, 0x00},
		"head that is none":    {0x0a, 0x01, 0xff},
		"a length beyond all":  huge,
		"an overlong number":   bytes.Repeat([]byte{0xff}, 11),
		"an unknown wire type": {0x1f},
		"a group":              {0x1b, 0x1c},
		"cut in an unknown":    {0x1d, 0x01},
	} {
		got := inFrame{head: head()}
		if err := decode(b, 2, &got); !errors.Is(err, smq.ErrInvalid) || got.payload != nil {
			t.Errorf("%s: error %v, payload %q", name, err, got.payload)
		}
	}
}

// A head costs memory by its fields, not by its bytes.
func TestHeadsOfVeryManyFields(t *testing.T) {
	for _, fields := range []int{maxHeadFields, maxHeadFields + 1} {
		b := bytes.Repeat([]byte{0x12, 0x00}, fields) // batches of which nothing is said
		frame := protowire.AppendBytes(protowire.AppendTag(nil, headField, protowire.BytesType), b)
		got := inFrame{head: head()}
		if err := decode(frame, len(frame), &got); errors.Is(err, smq.ErrInvalid) != (fields > maxHeadFields) {
			t.Errorf("%d fields: %v", fields, err)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(encode(f, &outFrame{head: head(3), payload: [][]byte{[]byte("abc")}}), 4)
	f.Add(encode(f, &outFrame{head: head()}), 1)
	f.Add([]byte{0x12, 0x80, 0x80, 0x80, 0x80, 0x08}, 2)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		got := inFrame{head: head()}
		if err := decode(b, 1+size&0xfff, &got); err != nil {
			return
		}
		// What was accepted means the same when it is sent on.
		again := inFrame{head: head()}
		if err := decode(encode(t, &outFrame{head: got.head, payload: [][]byte{got.payload}}), 64, &again); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got.head, again.head) || !bytes.Equal(got.payload, again.payload) {
			t.Errorf("%v %q became %v %q", got.head, got.payload, again.head, again.payload)
		}
	})
}
