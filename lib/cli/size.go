package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// units are the suffixes of sizes. As in most tools, a single letter counts in
// steps of 1024.
var units = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40, // as Kubernetes writes them
}

// ParseSize reads a number of bytes: "1048576", "256MB" (10^6), "1MiB" (2^20),
// "1.5G" (2^30).
func ParseSize(s string) (int64, error) {
	text := strings.TrimSpace(s)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit, known := units[strings.ToLower(strings.TrimSpace(text[end:]))]
	number, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || !known || number < 0 || strings.ContainsAny(text[:end], "eExXpP_+") {
		return 0, fmt.Errorf("%q is not a size; write for instance 500KB, 256MB or 1GiB", s)
	}
	if number*unit >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return int64(number * unit), nil
}

// FormatSize is a number of bytes for people, in steps of 1024, as ParseSize reads
// it.
func FormatSize(n int64) string {
	const steps = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%dB", n)
	}
	value, step := float64(n)/(1<<10), 0
	for value >= 1<<10 && step < len(steps)-1 {
		value /= 1 << 10
		step++
	}
	return smq.Short(value) + steps[step:step+1] + "iB"
}

// ParseDuration is time.ParseDuration with days (d) and weeks (w) as leading
// units: "90s", "1h30m", "7d", "1d12h".
func ParseDuration(s string) (time.Duration, error) {
	rest, total := s, time.Duration(0)
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		head, tail, found := strings.Cut(rest, unit.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(head, 10, 31)
		if err != nil || time.Duration(n) > (math.MaxInt64-total)/unit.length {
			return 0, badDuration(s)
		}
		total, rest = total+time.Duration(n)*unit.length, tail
	}
	if rest == "" && s != "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 && total > 0 || total > math.MaxInt64-max(d, 0) {
		return 0, badDuration(s)
	}
	return total + d, nil
}

// FormatDuration is a duration as time prints it, without the zeros at the end:
// 2m, not 2m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = whole + "m"
	}
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		text = whole + "h"
	}
	return text
}

func badDuration(s string) error {
	return fmt.Errorf("%q is not a duration; write for instance 500ms, 90s, 1h30m or 7d", s)
}

// Size is a flag value that ParseSize reads.
type Size int64

// exact are the units in which a size may be a whole number, the largest first.
var exact = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}}

// String is the size as it is written.
func (s *Size) String() string {
	n := int64(*s)
	for _, u := range exact {
		if n != 0 && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// Set reads a size.
func (s *Size) Set(text string) error {
	n, err := ParseSize(text)
	*s = Size(n)
	return err
}

// Type is how help texts name the value.
func (s *Size) Type() string { return "SIZE" }

// Duration is a flag value that ParseDuration reads.
type Duration time.Duration

// String is the duration as one types it.
func (d *Duration) String() string { return FormatDuration(time.Duration(*d)) }

// Set reads a duration.
func (d *Duration) Set(text string) error {
	v, err := ParseDuration(text)
	if err == nil && v < 0 {
		return fmt.Errorf("%q is negative", text)
	}
	*d = Duration(v)
	return err
}

// Type is how help texts name the value.
func (d *Duration) Type() string { return "DURATION" }
