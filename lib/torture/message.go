package torture

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"

	"github.com/seaweedmq/smq/lib/torture/check"
)

// A message's value is, in this order: a word by which it is known, its
// publisher and number, both 4 bytes, big endian, as much random padding as its
// size takes, and a CRC-32C of all that and of its key.
const (
	word        = "tort"
	minimumSize = len(word) + 8 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeMessage makes a message's value, of a size of at least minimumSize.
func encodeMessage(random *rand.Rand, m check.Message, key []byte, size int) []byte {
	value := make([]byte, 0, size)
	value = append(value, word...)
	value = binary.BigEndian.AppendUint32(value, m.Publisher)
	value = binary.BigEndian.AppendUint32(value, m.Number)
	for len(value) < size-crc32.Size {
		value = append(value, byte(random.Uint32()))
	}
	return binary.BigEndian.AppendUint32(value, checksum(value, key))
}

var (
	errForeign  = errors.New("it is not one of ours")
	errChecksum = errors.New("its checksum is another")
)

// decodeMessage reads what encodeMessage has made.
func decodeMessage(value, key []byte) (check.Message, error) {
	if len(value) < minimumSize || string(value[:len(word)]) != word {
		return check.Message{}, errForeign
	}
	body := value[:len(value)-crc32.Size]
	if binary.BigEndian.Uint32(value[len(body):]) != checksum(body, key) {
		return check.Message{}, errChecksum
	}
	body = body[len(word):]
	return check.Message{Publisher: binary.BigEndian.Uint32(body), Number: binary.BigEndian.Uint32(body[4:])}, nil
}

func checksum(body, key []byte) uint32 {
	return crc32.Update(crc32.Checksum(body, castagnoli), castagnoli, key)
}
