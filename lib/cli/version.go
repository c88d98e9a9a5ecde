package cli

import (
	"runtime"
	"runtime/debug"
)

// version is set by the linker in releases:
// -X github.com/seaweedmq/smq/lib/cli.version=v1.2.3
var version string

// Version is the version of this build, with the platform it is for.
func Version() string {
	return buildVersion(debug.ReadBuildInfo()) + " " + runtime.GOOS + "/" + runtime.GOARCH
}

func buildVersion(info *debug.BuildInfo, ok bool) string {
	switch {
	case version != "":
		return version
	case !ok:
		return "devel"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
