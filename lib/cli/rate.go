package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// Rate is so much a second.
type Rate struct {
	PerSecond float64
	Bytes     bool // else messages
}

// thousands are the letters that numbers of messages may have, as the console prints them.
var thousands = map[byte]float64{'k': 1e3, 'M': 1e6, 'G': 1e9}

// ParseRate reads N/s or Nmsg/s as messages and SIZE/s as bytes; what has a
// unit of bytes counts bytes. With msg, N may end in k, M or G.
func ParseRate(text string) (Rate, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "/s")
	number, messages := strings.CutSuffix(number, "msg")
	number = strings.TrimSpace(number)
	if !ok || strings.ContainsAny(number, "xX_") { // of which Go's numbers may be made
		return Rate{}, badRate(text)
	}
	digits, times := number, 1.0
	if n := len(number); messages && n > 0 && thousands[number[n-1]] > 0 {
		digits, times = number[:n-1], thousands[number[n-1]]
	}
	if n, err := strconv.ParseFloat(digits, 64); err == nil && n > 0 && n*times < 1e12 {
		return Rate{PerSecond: n * times}, nil
	}
	if n, err := ParseSize(number); err == nil && n > 0 && !messages {
		return Rate{PerSecond: float64(n), Bytes: true}, nil
	}
	return Rate{}, badRate(text)
}

func badRate(text string) error {
	return fmt.Errorf("%q is not a rate; write for instance 50000msg/s or 20MB/s", text)
}
