package bench

import (
	"encoding/binary"
	"time"
)

// stampSize is how many bytes at the front of a value say whose it is and when
// it began.
const stampSize = 16

// MinSize is the smallest value that can be measured, in bytes.
const MinSize = stampSize

// stamp writes, at the front of a value, the run's number and when the message
// began.
func stamp(value []byte, run uint64, at time.Duration) {
	binary.BigEndian.PutUint64(value, run)
	binary.BigEndian.PutUint64(value[8:], uint64(at))
}

// readStamp is when a message began; false when it is not of the run.
func readStamp(value []byte, run uint64) (time.Duration, bool) {
	if len(value) < stampSize || binary.BigEndian.Uint64(value) != run {
		return 0, false
	}
	return time.Duration(binary.BigEndian.Uint64(value[8:])), true
}

// filler makes a value that compresses about as JSON does.
func filler(size int) []byte {
	const text = `{"user":%d,"event":"click","path":"/shop/orders","at":1764512345,"agent":"Mozilla/5.0"},`
	value := make([]byte, size)
	for i := range value {
		value[i] = text[i%len(text)]
		if i%7 == 3 {
			value[i] = byte('0' + i*i/7%10)
		}
	}
	return value
}
