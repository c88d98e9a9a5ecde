package seaweed

import (
	"fmt"
	"regexp"
	"strconv"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

// The oldest filer that compares before it writes.
const (
	oldestMajor = 4
	oldestMinor = 29
)

// checkVersion refuses a filer that would ignore the conditions of writes.
func checkVersion(conf *pb.GetFilerConfigurationResponse) error {
	major, minor := conf.GetMajorVersion(), conf.GetMinorVersion()
	if major == 0 && minor == 0 {
		major, minor = versionInText(conf.GetVersion())
	}
	if major > oldestMajor || major == oldestMajor && minor >= oldestMinor {
		return nil
	}
	return fmt.Errorf("%w: it is SeaweedFS %d.%02d, which overwrites files that are to be created only if absent; %d.%02d or newer is needed",
		smq.ErrInvalid, major, minor, oldestMajor, oldestMinor)
}

var versionPattern = regexp.MustCompile(`(?:^|\s)(\d+)\.(\d+)(?:\s|$)`)

// versionInText finds 4.53 in "30GB 4.53 abcdef"; 0.0 when nothing is like it.
func versionInText(s string) (major, minor int32) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, 0
	}
	a, errA := strconv.ParseInt(m[1], 10, 32)
	b, errB := strconv.ParseInt(m[2], 10, 32)
	if errA != nil || errB != nil {
		return 0, 0
	}
	return int32(a), int32(b)
}
