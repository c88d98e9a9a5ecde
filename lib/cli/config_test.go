package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPrecedence(t *testing.T) {
	const file = `
master: [file:1, file:2]
timeout: 3s
smq-admin:
  thing:
    make:
      partitions: 7
      tag: [a, "b,c"]
smq-pub:
  anything: goes
`
	tests := []struct {
		name, file string
		vars       map[string]string
		args, want string
	}{
		{"defaults", "", nil, "", "[127.0.0.1:7300] 15s 64 []"},
		{"file", file, nil, "", "[file:1 file:2] 3s 7 [a b,c]"},
		{"environment over file", file,
			map[string]string{"SMQ_MASTER": "env:1,env:2", "SMQ_ADMIN_THING_MAKE_PARTITIONS": "8", "SMQ_ADMIN_THING_MAKE_TAG": "x"}, "",
			"[env:1 env:2] 3s 8 [x]"},
		{"flag over environment", file,
			map[string]string{"SMQ_MASTER": "env:1", "SMQ_TIMEOUT": "4s"}, "--master flag:1 --timeout 5s --partitions 9",
			"[flag:1] 5s 9 [a b,c]"},
		{"spaces", "", map[string]string{"SMQ_MASTER": "env:1, env:2 "}, "", "[env:1 env:2] 15s 64 []"},
		{"underscores", "smq_admin: {thing: {make: {partitions: 5}}}", nil, "", "[127.0.0.1:7300] 15s 5 []"},
		{"variables that are no flag's", "", map[string]string{"SMQ_ADMIN_VERSION": "1.2", "SMQ_ADMIN_THING_MAKE_HELP": "x"}, "", "[127.0.0.1:7300] 15s 64 []"},
		{"empty file", "\n# nothing\n", nil, "", "[127.0.0.1:7300] 15s 64 []"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			if test.file != "" {
				h.writeConfig(t, test.file)
			}
			for name, value := range test.vars {
				h.vars[name] = value
			}
			got := ""
			h.run = func(e *Env) error {
				got = fmt.Sprint(e.Flags.Masters, " ", e.Flags.Timeout.String(), " ", h.partitions, " ", h.tags)
				return nil
			}
			if code := h.call(append([]string{"thing", "make", "x"}, strings.Fields(test.args)...)...); code != 0 || got != test.want {
				t.Errorf("exit code %d, %s\ngot  %s\nwant %s", code, h.err.String(), got, test.want)
			}
		})
	}
}

func TestTypedFlags(t *testing.T) {
	for _, test := range []struct {
		args, variable string
		want           bool
	}{{"", "", false}, {"", "json", false}, {"-o json", "", true}, {"-o json", "yaml", true}} {
		h := newHarness(t)
		h.vars["SMQ_OUTPUT"] = test.variable
		var typed bool
		tree := func(e *Env) *cobra.Command {
			root := h.tree(e)
			cmd, _, err := root.Find([]string{"thing", "make"})
			if err != nil {
				t.Fatal(err)
			}
			h.run = func(*Env) error { typed = Typed(cmd.Flags(), "output"); return nil }
			return root
		}
		if code := h.env.Run(t.Context(), tree, append([]string{"thing", "make", "x"}, strings.Fields(test.args)...)); code != 0 || typed != test.want {
			t.Errorf("%q, variable %q: code %d, %t", test.args, test.variable, code, typed)
		}
	}
}

func TestConfigMistakes(t *testing.T) {
	tests := []struct{ file, want string }{
		{"mastr: x", `unknown key "mastr", did you mean master?`},
		{"smq-admin: {thing: {maek: {}}}", `unknown key "maek" below smq-admin thing, did you mean make?`},
		{"smq-admin: {thing: {make: {partition: 1}}}", `unknown key "partition" below smq-admin thing make, did you mean partitions?`},
		{"smq-admin: 3", "smq-admin is not a section"},
		{"smq-admin: {thing: {make: {partitions: many}}}", "SMQ_ADMIN_THING_MAKE_PARTITIONS, or smq-admin.thing.make.partitions in the configuration file:"},
		{"a: [", "did not find expected node content"},
	}
	for _, test := range tests {
		h := newHarness(t)
		h.writeConfig(t, test.file)
		code := h.call("thing", "make", "x")
		if code != ExitUsage || !strings.Contains(h.err.String(), test.want) || strings.Count(h.err.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, stderr %q, want %q", test.file, code, h.err.String(), test.want)
		}
	}
}

func TestNamedConfigFileMustExist(t *testing.T) {
	h := newHarness(t)
	missing := filepath.Join(t.TempDir(), "none.yaml")
	want := "smq-admin: configuration file " + missing + ": no such file or directory\n"
	if code := h.call("--config", missing, "thing", "make", "x"); code != ExitUsage || h.err.String() != want {
		t.Errorf("exit code %d, stderr %q", code, h.err.String())
	}
	h.vars["SMQ_CONFIG"] = missing
	if code := h.call("thing", "make", "x"); code != ExitUsage || h.err.String() != want {
		t.Errorf("by variable: exit code %d, stderr %q", code, h.err.String())
	}
}
