package cli

import (
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	good := map[string]int64{
		"0": 0, "1048576": 1 << 20, "10B": 10, "256MB": 256e6, "1MiB": 1 << 20, "1k": 1024, "2 GiB": 2 << 30,
		"1.5G": 3 << 29, "500kb": 500e3, "1T": 1 << 40, "1TB": 1e12, "512Mi": 512 << 20, "2Gi": 2 << 30, "38.2MiB": 40055603,
	}
	for text, want := range good {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MB", "-1", "1XB", "1e3", "0x10", "1_000", "9999999T", "1.2.3", "NaN", "Inf", "1 2", "+1"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestSizeFlagPrintsWhatItReads(t *testing.T) {
	for _, text := range []string{"0", "1", "1kB", "17MB", "2GB", "1001", "1KiB", "3MiB", "5GiB"} {
		var s Size
		if err := s.Set(text); err != nil || s.String() != text {
			t.Errorf("%s: %v, prints as %s", text, err, s.String())
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1023: "1023B", 1024: "1KiB", 1536 << 10: "1.5MiB", 128 << 20: "128MiB", 1 << 62: "4EiB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	good := map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour, "2w1d1s": 15*day + time.Second, "-5m": -5 * time.Minute,
	}
	for text, want := range good {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "d", "1dd", "-1d", "1d-3h", "999999999w", "106751d24h", "1h1d", "1.5d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1.5s": 1500 * time.Millisecond, "10s": 10 * time.Second, "2m": 2 * time.Minute, "1m30s": 90 * time.Second,
		"1h": time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute, "10h0m10s": 10*time.Hour + 10*time.Second, "100ms": 100 * time.Millisecond,
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v is printed as %s, want %s", d, got, want)
		}
		if back, err := ParseDuration(want); err != nil || back != d {
			t.Errorf("%s is read as %v, %v", want, back, err)
		}
	}
}

func TestDurationFlagRefusesNegative(t *testing.T) {
	var d Duration
	if err := d.Set("-1s"); err == nil {
		t.Error("no error")
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"create", "list", "describe", "delete", "up"}
	for typed, want := range map[string]string{
		"crate": ", did you mean create?", "lsit": ", did you mean list?", "desc": ", did you mean describe?",
		"zzz": "", "u": ", did you mean up?", "delte": ", did you mean delete?", "x": "",
	} {
		if got := didYouMean(typed, names, ""); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", typed, got, want)
		}
	}
}
