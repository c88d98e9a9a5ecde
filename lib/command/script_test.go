//go:build unix

// Package command_test runs the scripts in testdata/script: each runs the
// binaries as processes, as users do, and looks at what they print and how they
// end. To run one: go test ./lib/command -run TestScripts/^pipe$
package command_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/admin"
	"github.com/seaweedmq/smq/lib/command/broker"
	"github.com/seaweedmq/smq/lib/command/master"
	"github.com/seaweedmq/smq/lib/command/pub"
	"github.com/seaweedmq/smq/lib/command/sub"
)

// storeVariable names the store that the scripts run on, a URL below which each
// script has a folder of its own. Without it each has a directory; with the
// build tag weed they share a SeaweedFS server that is started for them.
const storeVariable = "SMQ_TEST_STORE"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"smq-master": func() { cli.Main("smq-master", master.New) },
		"smq-broker": func() { cli.Main("smq-broker", broker.New) },
		"smq-pub":    func() { cli.Main("smq-pub", pub.New) },
		"smq-sub":    func() { cli.Main("smq-sub", sub.New) },
		"smq-admin":  func() { cli.Main("smq-admin", admin.New) },
	})
}

func TestScripts(t *testing.T) {
	storeBase := testStore(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return setUp(t.Context(), env, storeBase) },
		Condition: func(name string) (bool, error) {
			switch name {
			case "dir": // the store is a directory
				return storeBase == "", nil
			case "unshare": // a name space of mounts can be had
				return exec.Command("unshare", "-rm", "true").Run() == nil, nil
			}
			return false, os.ErrInvalid
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"up":       cmdUp,
			"start":    cmdStart,
			"launch":   cmdLaunch,
			"ready":    cmdReady,
			"signal":   cmdSignal,
			"ended":    cmdEnded,
			"exits":    cmdExits,
			"eventual": cmdEventual,
			"get":      cmdGet,
			"ports":    cmdPorts,
		},
	})
}

// setUp gives a script its store, a home of its own, and no masters that it did
// not start.
func setUp(ctx context.Context, env *testscript.Env, storeBase string) error {
	name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	store := "dir://" + filepath.ToSlash(filepath.Join(env.WorkDir, "store"))
	if storeBase != "" {
		path, query, _ := strings.Cut(storeBase, "?")
		store = path + "/" + name
		if query != "" {
			store += "?" + query
		}
	}
	env.Setenv("STORE", store)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
	env.Setenv("SMQ_MASTER", "127.0.0.1:1") // nobody is there
	env.Setenv("SMQ_TIMEOUT", "30s")
	env.Values[daemonsKey{}] = newDaemons(ctx, env)
	return nil
}
