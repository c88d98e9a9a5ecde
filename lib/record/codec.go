package record

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// Codec is how a batch's records are compressed, by Kafka's numbers.
type Codec int8

// The codecs. None is the zero value.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

var codecNames = [...]string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd"}

// ParseCodec reads a codec's name, as Codec.String prints it. The error is an
// smq.ErrInvalid.
func ParseCodec(s string) (Codec, error) {
	for c, name := range codecNames {
		if s == name {
			return Codec(c), nil
		}
	}
	return None, fmt.Errorf("%w codec %q: use none, gzip, snappy, lz4 or zstd", smq.ErrInvalid, s)
}

// String is the codec's name in Kafka's configuration, or codec(n) for a
// number that is none.
func (c Codec) String() string {
	if !c.Valid() {
		return fmt.Sprintf("codec(%d)", int8(c))
	}
	return codecNames[c]
}

// Valid reports whether c is one of the codecs.
func (c Codec) Valid() bool { return c >= 0 && int(c) < len(codecNames) }

// MarshalText is String; it fails for a number that is no codec.
func (c Codec) MarshalText() ([]byte, error) {
	if !c.Valid() {
		return nil, fmt.Errorf("%w: %v", smq.ErrInvalid, c)
	}
	return []byte(c.String()), nil
}

// UnmarshalText is ParseCodec.
func (c *Codec) UnmarshalText(text []byte) error {
	parsed, err := ParseCodec(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
