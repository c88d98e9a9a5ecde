package seaweed

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seaweedmq/smq/lib/smq"
)

// fileID names a piece: the volume that it lies in, its key there, and a
// random number against guessing.
type fileID struct {
	volume uint32
	key    uint64
	cookie uint32
}

// String is the name as the servers write it: the volume in decimal, then key
// and cookie in hexadecimal without the key's leading zero bytes.
func (id fileID) String() string {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:8], id.key)
	binary.BigEndian.PutUint32(b[8:], id.cookie)
	zeros := 0
	for zeros < 8 && b[zeros] == 0 {
		zeros++
	}
	return strconv.FormatUint(uint64(id.volume), 10) + "," + hex.EncodeToString(b[zeros:])
}

// parseFileID reads such a name.
func parseFileID(s string) (fileID, error) {
	volume, rest, found := strings.Cut(s, ",")
	v, err := strconv.ParseUint(volume, 10, 32)
	if !found || err != nil || len(rest) <= 8 || len(rest) > 24 {
		return fileID{}, fmt.Errorf("%w file id %q", smq.ErrInvalid, s)
	}
	cut := len(rest) - 8
	key, keyErr := strconv.ParseUint(rest[:cut], 16, 64)
	cookie, cookieErr := strconv.ParseUint(rest[cut:], 16, 32)
	if keyErr != nil || cookieErr != nil {
		return fileID{}, fmt.Errorf("%w file id %q", smq.ErrInvalid, s)
	}
	return fileID{volume: uint32(v), key: key, cookie: uint32(cookie)}, nil
}

// plus is the n-th of the ids that were assigned together.
func (id fileID) plus(n int) (fileID, error) {
	if uint64(n) > math.MaxUint64-id.key {
		return fileID{}, fmt.Errorf("%w file id %s: no room for %d more", smq.ErrInvalid, id, n)
	}
	id.key += uint64(n)
	return id, nil
}

func checkText(path string) error {
	if !utf8.ValidString(path) {
		return fmt.Errorf("%w path %q: it is not UTF-8", smq.ErrInvalid, path)
	}
	return nil
}
