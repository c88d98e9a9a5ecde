package seaweed

import (
	"errors"
	"math"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
)

func TestFileID(t *testing.T) {
	for text, want := range map[string]fileID{
		"3,01637037d6":               {3, 0x01, 0x637037d6},
		"7,0a00000001":               {7, 0x0a, 1},
		"4294967295,0123456789abff":  {math.MaxUint32, 0x012345, 0x6789abff},
		"1,ffffffffffffffff00000000": {1, math.MaxUint64, 0},
	} {
		got, err := parseFileID(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("parseFileID(%s) = %+v, %v and prints %s", text, got, err, got)
		}
	}
	for _, text := range []string{
		"", ",", "3", "3,", "x,01637037d6", "3,637037d6", "3,0g637037d6", "3,01637037dg", "-1,01637037d6", "4294967296,01637037d6",
		"3,01637037d6_1", "3/01637037d6", "../../etc/passwd", "3,ffffffffffffffffff00000000", "3,+1637037d6",
	} {
		if got, err := parseFileID(text); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("parseFileID(%q) = %+v, %v", text, got, err)
		}
	}
	if id, err := (fileID{1, math.MaxUint64 - 2, 5}).plus(2); err != nil || id.key != math.MaxUint64 {
		t.Errorf("plus = %+v, %v", id, err)
	}
	if id, err := (fileID{1, math.MaxUint64 - 2, 5}).plus(3); err == nil {
		t.Errorf("plus = %+v beyond the last key", id)
	}
}

func TestSendable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abc": "abc", "é": "é", "é"[:1]: "", "a\xffb": "a", "日本"[:4]: "日", "a\ufffdb": "a\ufffdb",
	} {
		if got := sendable(in); got != want {
			t.Errorf("sendable(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzFileID wants every name that is read to print as one that reads the same.
func FuzzFileID(f *testing.F) {
	for _, s := range []string{"3,01637037d6", "1,ffffffffffffffff00000000", "3,1637037d6", ",", "03,000000000000001637037d6"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := parseFileID(s)
		if err != nil {
			return
		}
		again, err := parseFileID(id.String())
		// A key of 0 has no bytes to print; servers give none.
		if id.key != 0 && (err != nil || again != id) {
			t.Errorf("%q reads as %+v, prints %s, reads as %+v, %v", s, id, id, again, err)
		}
	})
}
