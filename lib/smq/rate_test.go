package smq

import "testing"

func TestRates(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0B/s", 999: "999B/s", 999.7: "1kB/s", 1000: "1kB/s", 1500: "1.5kB/s", 3_053_000: "3.05MB/s", 9_996_000: "10MB/s", 60_340_000: "60.3MB/s", 999_400: "999kB/s", 999_990: "1MB/s", 20e6: "20MB/s", 200e6: "200MB/s", 3e12: "3TB/s", 4e15: "4000TB/s",
	} {
		if got := ByteRate(n); got != want {
			t.Errorf("%v bytes: %s, want %s", n, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0msg/s", 0.5: "0.5msg/s", 2: "2msg/s", 50_000: "50000msg/s"} {
		if got := MessageRate(n); got != want {
			t.Errorf("%v messages: %s, want %s", n, got, want)
		}
	}
}
