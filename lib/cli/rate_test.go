package cli

import (
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

func TestAmount(t *testing.T) {
	if got := amount(3<<20, 2*time.Second); got != "3MiB  1.57MB/s" {
		t.Errorf("got %s", got)
	}
}

func TestRatesAreReadAsTheyArePrinted(t *testing.T) {
	for _, n := range []float64{0.5, 2, 50_000} {
		if back, err := ParseRate(smq.MessageRate(n)); err != nil || back != (Rate{n, false}) {
			t.Errorf("%v is read as %v, %v", n, back, err)
		}
	}
	for _, n := range []float64{1, 999, 1500, 20e6, 3e12} {
		if back, err := ParseRate(smq.ByteRate(n)); err != nil || back != (Rate{n, true}) {
			t.Errorf("%v bytes are read as %v, %v", n, back, err)
		}
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
