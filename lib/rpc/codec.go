package rpc

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smq"
)

// The fields of a frame, see the package's documentation.
const (
	headField    protowire.Number = 1
	payloadField protowire.Number = 2
)

// maxHeadFields bounds the fields of a head, repeated ones counted each time. It is
// several times what frames of ours have. A batch's entry of two bytes takes some
// sixty in memory, and a frame has room for millions.
const maxHeadFields = 1 << 18

// codec encodes frames by itself and leaves protobuf messages to gRPC's own
// codec, whose name it bears, so that other gRPC software understands both.
type codec struct {
	messages encoding.CodecV2
	pool     mem.BufferPool
}

func newCodec() codec {
	return codec{messages: encoding.GetCodecV2(grpcproto.Name), pool: mem.DefaultBufferPool()}
}

// Name is the content subtype of every call.
func (c codec) Name() string { return grpcproto.Name }

// outFrame is a frame to send. Payload is not copied, not even when gRPC keeps
// it after SendMsg has returned: it must never change again.
type outFrame struct {
	head    proto.Message
	payload [][]byte
}

// inFrame is a frame to receive.
type inFrame struct {
	head    proto.Message // filled
	payload []byte        // set, to fresh memory; nil when there is none
	err     error         // set when the frame is malformed
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*outFrame); ok {
		return c.marshalFrame(f)
	}
	return c.messages.Marshal(v)
}

func (c codec) marshalFrame(f *outFrame) (mem.BufferSlice, error) {
	size := 0
	for _, p := range f.payload {
		size += len(p)
	}
	options := proto.MarshalOptions{}
	headSize := options.Size(f.head)
	options.UseCachedSize = true

	buf := c.pool.Get(headSize + 2*(1+binary.MaxVarintLen64))
	b := protowire.AppendTag((*buf)[:0], headField, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(headSize))
	b, err := options.MarshalAppend(b, f.head)
	if err != nil {
		c.pool.Put(buf)
		return nil, fmt.Errorf("encode the head of a frame: %w", err)
	}
	if size > 0 {
		b = protowire.AppendTag(b, payloadField, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(size))
	}
	*buf = b
	out := make(mem.BufferSlice, 0, 1+len(f.payload))
	out = append(out, mem.NewBuffer(buf, c.pool))
	for _, p := range f.payload {
		if len(p) > 0 {
			out = append(out, mem.SliceBuffer(p))
		}
	}
	return out, nil
}

// Unmarshal implements encoding.CodecV2. A malformed frame is told in its err
// field: gRPC would take a returned error for its own and tell the peer, whose
// mistake it is, of an internal one.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*inFrame)
	if !ok {
		return c.messages.Unmarshal(data, v)
	}
	r := data.Reader()
	defer r.Close()
	if err := c.readFrame(r, f); err != nil {
		f.payload = nil
		f.err = fmt.Errorf("%w frame: %w", smq.ErrInvalid, err)
	}
	return nil
}

// readFrame reads the fields of a frame. Fields that it does not know it skips,
// as protobuf would.
func (c codec) readFrame(r *mem.Reader, f *inFrame) error {
	proto.Reset(f.head)
	var haveHead bool
	for r.Remaining() > 0 {
		tag, err := binary.ReadUvarint(r)
		if err != nil {
			return fmt.Errorf("field tag: %w", err)
		}
		number, wireType := protowire.DecodeTag(tag)
		switch {
		case number == headField && wireType == protowire.BytesType && !haveHead:
			haveHead = true
			err = c.readHead(r, f.head)
		case number == payloadField && wireType == protowire.BytesType && f.payload == nil:
			f.payload, err = readBytes(r)
		case number <= payloadField:
			return fmt.Errorf("field %d of type %d is out of place", number, wireType)
		default:
			err = skipField(r, wireType)
		}
		if err != nil {
			return fmt.Errorf("field %d: %w", number, err)
		}
	}
	return nil
}

func (c codec) readHead(r *mem.Reader, head proto.Message) error {
	n, err := readLength(r)
	if err != nil {
		return err
	}
	buf := c.pool.Get(n)
	defer c.pool.Put(buf)
	if _, err := io.ReadFull(r, *buf); err != nil {
		return err
	}
	if err := checkHead(*buf); err != nil {
		return err
	}
	return proto.Unmarshal(*buf, head)
}

// checkHead refuses a head of too many fields.
func checkHead(b []byte) error {
	for fields := 0; len(b) > 0; fields++ {
		if fields == maxHeadFields {
			return fmt.Errorf("a head of more than %d fields", maxHeadFields)
		}
		_, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
	}
	return nil
}

// readBytes returns fresh memory, not nil even if it is empty.
func readBytes(r *mem.Reader) ([]byte, error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// readLength reads a length and checks it against what is there, so that no
// claim of a peer makes us reserve memory.
func readLength(r *mem.Reader) (int, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, err
	}
	if n > uint64(r.Remaining()) {
		return 0, fmt.Errorf("length %d exceeds the %d bytes left", n, r.Remaining())
	}
	return int(n), nil
}

func skipField(r *mem.Reader, t protowire.Type) error {
	var n int
	var err error
	switch t {
	case protowire.VarintType:
		_, err = binary.ReadUvarint(r)
	case protowire.Fixed32Type:
		n = 4
	case protowire.Fixed64Type:
		n = 8
	case protowire.BytesType:
		n, err = readLength(r)
	default:
		err = fmt.Errorf("unknown wire type %d", t)
	}
	if err != nil {
		return err
	}
	_, err = r.Discard(n)
	return err
}
