package seaweed

import (
	"errors"
	"strings"
	"testing"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

func TestCheckVersion(t *testing.T) {
	for _, test := range []struct {
		major, minor int32
		text         string
		ok           bool
	}{
		{4, 53, "30GB 4.53 ", true},
		{4, 29, "30GB 4.29 0123abc", true},
		{4, 28, "30GB 4.28 ", false},
		{5, 0, "30GB 5.00 ", true},
		{3, 99, "30GB 3.99 ", false},
		{0, 0, "30GB 4.29 abc", true},
		{0, 0, "8000GB 4.30", true},
		{0, 0, "30GB 4.09 abc", false},
		{0, 0, "version 2.85", false},
		{0, 0, "", false},
		{0, 0, "30GB 4.99999999999 ", false},
	} {
		err := checkVersion(&pb.GetFilerConfigurationResponse{MajorVersion: test.major, MinorVersion: test.minor, Version: test.text})
		if (err == nil) != test.ok {
			t.Errorf("%d.%d %q: %v", test.major, test.minor, test.text, err)
		}
		if err != nil && (!errors.Is(err, smq.ErrInvalid) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "4.29")) {
			t.Errorf("%d.%d: %v, want one line that names the oldest that will do", test.major, test.minor, err)
		}
	}
}
