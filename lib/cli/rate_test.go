package cli

import (
	"testing"
	"time"
)

func TestFormatRates(t *testing.T) {
	for want, n := range map[string]float64{"0B/s": 0, "999B/s": 999, "1kB/s": 1000, "1.5kB/s": 1500, "1MB/s": 999_990, "20MB/s": 20e6, "3TB/s": 3e12} {
		if got := FormatByteRate(n); got != want {
			t.Errorf("%v bytes: %s, want %s", n, got, want)
		}
	}
	for want, n := range map[string]float64{"0msg/s": 0, "0.5msg/s": 0.5, "2msg/s": 2, "50000msg/s": 50_000} {
		if got := FormatMessageRate(n); got != want {
			t.Errorf("%v messages: %s, want %s", n, got, want)
		}
		if back, err := ParseRate(want); n > 0 && (err != nil || back.PerSecond != n) {
			t.Errorf("%s is read as %v, %v", want, back, err)
		}
	}
	if got := amount(3<<20, 2*time.Second); got != "3MiB  1.6MB/s" {
		t.Errorf("amount: %s", got)
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{
		"50000msg/s": {50000, false}, "50000/s": {50000, false}, "0.5 msg/s": {0.5, false}, "50kmsg/s": {50000, false}, "8.4k msg/s": {8400, false}, "2Mmsg/s": {2e6, false}, "7.9 MB/s": {7.9e6, true}, "1e3/s": {1000, false},
		"20MB/s": {20e6, true}, "20MiB/s": {20 << 20, true}, "1.5k/s": {1536, true}, "7B/s": {7, true},
	} {
		if got, err := ParseRate(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "/s", "20MB", "50000", "0/s", "-1/s", "20MBmsg/s", "x/s", "NaN/s", "Inf/s", "1/m", "1_000/s", "0x10/s", "20MBps", "kmsg/s", "50kkmsg/s", "50Kmsg/s"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
