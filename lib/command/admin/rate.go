package admin

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seaweedmq/smq/lib/cli"
)

// speed is so much a second.
type speed struct {
	perSecond float64
	bytes     bool // else messages
}

// parseSpeed reads N/s or Nmsg/s as messages and SIZE/s as bytes; what has a
// unit of bytes counts bytes.
func parseSpeed(text string) (speed, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "/s")
	number = strings.TrimSpace(strings.TrimSuffix(number, "msg"))
	if !ok {
		return speed{}, badSpeed(text)
	}
	if n, err := strconv.ParseFloat(number, 64); err == nil && n > 0 && n < 1e12 {
		return speed{perSecond: n}, nil
	}
	if n, err := cli.ParseSize(number); err == nil && n > 0 && !strings.Contains(text, "msg") {
		return speed{perSecond: float64(n), bytes: true}, nil
	}
	return speed{}, badSpeed(text)
}

func badSpeed(text string) error {
	return fmt.Errorf("%q is not a rate; write for instance 50000msg/s or 20MB/s", text)
}

// byteRate is a number of bytes a second for people, in steps of 1000 as rates
// are written.
func byteRate(perSecond float64) string {
	const units = "kMGT"
	if perSecond < 1e3 {
		return fmt.Sprintf("%.0fB/s", perSecond)
	}
	unit := -1
	for perSecond >= 999.95 && unit < len(units)-1 {
		perSecond /= 1e3
		unit++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", perSecond), ".0") + units[unit:unit+1] + "B/s"
}

// messageRate is a number of messages a second for people.
func messageRate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", perSecond), ".0") + "msg/s"
	}
	return fmt.Sprintf("%.0fmsg/s", perSecond)
}
