package record_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestCodecNames(t *testing.T) {
	for i, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		c, err := record.ParseCodec(name)
		if err != nil || c != record.Codec(i) || c.String() != name || !c.Valid() {
			t.Errorf("%s: %d, %v, prints %v", name, int8(c), err, c)
		}
		text, err := json.Marshal(c)
		if err != nil || string(text) != `"`+name+`"` {
			t.Errorf("%s: marshalled %s, %v", name, text, err)
		}
		var back record.Codec
		if err := json.Unmarshal(text, &back); err != nil || back != c {
			t.Errorf("%s: unmarshalled %v, %v", name, back, err)
		}
	}
	for _, name := range []string{"", "GZIP", "codec(5)", "lz5"} {
		if c, err := record.ParseCodec(name); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("%q: %v, %v", name, c, err)
		}
	}
	for _, c := range []record.Codec{-1, 5} {
		if _, err := json.Marshal(c); c.Valid() || err == nil {
			t.Errorf("%v counts as a codec", c)
		}
	}
	c := record.Zstd
	if err := c.UnmarshalText([]byte("nope")); !errors.Is(err, smq.ErrInvalid) || c != record.Zstd {
		t.Errorf("%v, %v", c, err)
	}
}
