package cli

import "testing"

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{
		"50000msg/s": {50000, false}, "50000/s": {50000, false}, "0.5 msg/s": {0.5, false}, "1e3/s": {1000, false},
		"20MB/s": {20e6, true}, "20MiB/s": {20 << 20, true}, "1.5k/s": {1536, true}, "7B/s": {7, true},
	} {
		if got, err := ParseRate(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "/s", "20MB", "50000", "0/s", "-1/s", "20MBmsg/s", "x/s", "NaN/s", "Inf/s", "1/m", "1_000/s", "0x10/s", "20MBps"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
