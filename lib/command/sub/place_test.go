package sub

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
)

func (p place) String() string {
	names := map[placeKind]string{placeNone: "none", placeEarliest: "earliest", placeLatest: "latest", placeOffset: "offset", placeLast: "last", placeTime: "time"}
	if p.kind == placeTime {
		return "time " + p.time.UTC().Format(time.RFC3339)
	}
	return fmt.Sprint(names[p.kind], " ", p.n)
}

func TestParseFrom(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]string{
		"earliest": "earliest 0", "latest": "latest 0", "0": "offset 0", "17": "offset 17", "-5": "last 5", "-0": "last 0",
		"@0": "time 1970-01-01T00:00:00Z", "@2026-01-01T00:00:00Z": "time 2026-01-01T00:00:00Z", "1h": "time 2026-01-02T02:04:05Z", "1d": "time 2026-01-01T03:04:05Z",
	} {
		if got, err := parseFrom(text, now); err != nil || got.String() != want {
			t.Errorf("parseFrom(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "end", "stored", "-", "-1h", "+1", "@", "@yesterday", "1x", "99999999999999999999"} {
		if got, err := parseFrom(text, now); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("parseFrom(%q) = %v, %v, want a usage error", text, got, err)
		}
	}
}

func TestParseUntil(t *testing.T) {
	for text, want := range map[string]string{"": "none 0", "end": "latest 0", "17": "offset 17", "@0": "time 1970-01-01T00:00:00Z"} {
		if got, err := parseUntil(text); err != nil || got.String() != want {
			t.Errorf("parseUntil(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"latest", "-1", "10m", "@"} {
		if got, err := parseUntil(text); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("parseUntil(%q) = %v, %v, want a usage error", text, got, err)
		}
	}
}

func TestParsePartitions(t *testing.T) {
	for text, want := range map[string][]int32{"": nil, "0": {0}, "0,3-5": {0, 3, 4, 5}, "5,1-2, 2": {1, 2, 5}, "7-7": {7}} {
		if got, err := parsePartitions(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("parsePartitions(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{",", "a", "1-", "-1", "3-1", "0-2000000", "99999999999"} {
		if got, err := parsePartitions(text); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("parsePartitions(%q) = %v, %v, want a usage error", text, got, err)
		}
	}
}
