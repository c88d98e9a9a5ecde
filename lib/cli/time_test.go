package cli

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	for text, want := range map[string]string{
		"0": "1970-01-01T00:00:00Z", "1769871845": "2026-01-31T15:04:05Z", "1769871845.5": "2026-01-31T15:04:05.5Z",
		"1769871845123": "2026-01-31T15:04:05.123Z", "2026-01-31": "2026-01-30T22:00:00Z", "2026-01-31T15:04": "2026-01-31T13:04:00Z",
		"2026-01-31 15:04:05.25": "2026-01-31T13:04:05.25Z", "2026-01-31T15:04:05Z": "2026-01-31T15:04:05Z", "2026-01-31T15:04:05+05:00": "2026-01-31T10:04:05Z",
	} {
		got, err := ParseTime(text, zone)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("ParseTime(%q) = %v, %v, want %s", text, got.UTC(), err, want)
		}
	}
	for _, text := range []string{"", "now", "-1", "NaN", "1e9", "2026-13-01", "Inf", "99999999999999999"} {
		if got, err := ParseTime(text, zone); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", text, got)
		}
	}
}
