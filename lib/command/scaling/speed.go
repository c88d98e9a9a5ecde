package scaling

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seaweedmq/smq/lib/cli"
)

// Speed is so much a second.
type Speed struct {
	PerSecond float64
	Bytes     bool // else messages
}

// ParseSpeed reads N/s or Nmsg/s as messages and SIZE/s as bytes; what has a
// unit of bytes counts bytes.
func ParseSpeed(text string) (Speed, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "/s")
	number = strings.TrimSpace(strings.TrimSuffix(number, "msg"))
	if !ok {
		return Speed{}, badSpeed(text)
	}
	if n, err := strconv.ParseFloat(number, 64); err == nil && n > 0 && n < 1e12 {
		return Speed{PerSecond: n}, nil
	}
	if n, err := cli.ParseSize(number); err == nil && n > 0 && !strings.Contains(text, "msg") {
		return Speed{PerSecond: float64(n), Bytes: true}, nil
	}
	return Speed{}, badSpeed(text)
}

func badSpeed(text string) error {
	return fmt.Errorf("%q is not a rate; write for instance 50000msg/s or 20MB/s", text)
}
