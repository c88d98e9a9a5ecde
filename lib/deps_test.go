package lib_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seaweedmq/smq/"

// allowed says which of the project's packages each of them may import. A
// package that is not listed, and an import that is not allowed, fail the test:
// a new arrow is a decision, taken here. Reasons stand beside the arrows that
// need one. Tests may import more (see testOnly).
var allowed = map[string][]string{
	// Words and pure decisions.
	"lib/smq":        {},
	"lib/record":     {"lib/smq"},
	"lib/smqpb":      {},
	"lib/background": {"lib/smq"},
	"lib/boottime":   {},
	"lib/layout":     {"lib/smq", "lib/smqpb"},
	"lib/registry":   {"lib/smq"},

	// The store and its backends.
	"lib/store":         {"lib/smq"},
	"lib/store/mem":     {"lib/smq", "lib/store"},
	"lib/store/dir":     {"lib/smq", "lib/store"},
	"lib/store/seaweed": {"lib/smq", "lib/store"},
	"lib/store/fault":   {"lib/smq", "lib/store"},
	"lib/store/open":    {"lib/smq", "lib/store", "lib/store/dir", "lib/store/seaweed"},
	"lib/rpc":           {"lib/smq", "lib/smqpb"},
	"lib/seglog":        {"lib/record", "lib/smq", "lib/smqpb", "lib/store"},
	"lib/sim":           {"lib/record", "lib/seglog", "lib/smq", "lib/smqpb", "lib/store", "lib/store/fault", "lib/store/mem"},

	"lib/catalog": {"lib/background", "lib/layout", "lib/record", "lib/seglog", "lib/smq", "lib/smqpb", "lib/store"},

	// Services never import one another.
	"lib/broker": {"lib/background", "lib/boottime", "lib/catalog", "lib/layout", "lib/rpc", "lib/seglog", "lib/smq", "lib/smqpb", "lib/store"},
	"lib/leader": {"lib/background", "lib/catalog", "lib/layout", "lib/record", "lib/rpc", "lib/seglog", "lib/smq", "lib/smqpb", "lib/store"},
	"lib/master": {"lib/boottime", "lib/registry", "lib/rpc", "lib/smq", "lib/smqpb"},
	"lib/client": {"lib/boottime", "lib/record", "lib/rpc", "lib/smq", "lib/smqpb", "lib/store"},

	// Real clusters under faults. The checkers take the promises as users see
	// them, and the store as it is on disk.
	"lib/torture":       {"lib/catalog", "lib/client", "lib/layout", "lib/record", "lib/rpc", "lib/seglog", "lib/smq", "lib/smqpb", "lib/store", "lib/store/open", "lib/torture/check", "lib/torture/wire"},
	"lib/torture/check": {},
	"lib/torture/wire":  {},

	// Measurements, taken as any client takes part.
	"lib/bench": {"lib/client", "lib/smq"},

	// The terminal, and the five programs. Everything is wired together in the
	// packages below lib/command (see isWiring).
	"lib/cli":         {"lib/smq"},
	"lib/tui":         {"lib/smq", "lib/smqpb", "lib/tui/noquery"},
	"lib/tui/noquery": {}, // what its init is there for forbids imports
	"cmd/smq-admin":   {"lib/cli", "lib/command/admin"},
	"cmd/smq-broker":  {"lib/cli", "lib/command/broker"},
	"cmd/smq-master":  {"lib/cli", "lib/command/master"},
	"cmd/smq-pub":     {"lib/cli", "lib/command/pub"},
	"cmd/smq-sub":     {"lib/cli", "lib/command/sub"},

	// For tests.
	"lib/store/storetest":        {"lib/smq", "lib/store"},
	"lib/store/seaweed/weedtest": {},
}

// isWiring reports whether a package is one that wires others together: it may
// import any that are not for tests, and nobody else may import it.
func isWiring(name string) bool {
	return name == "lib/command" || strings.HasPrefix(name, "lib/command/")
}

// isTestOnly reports whether only tests may import the package.
func isTestOnly(name string) bool {
	return slices.Contains(testOnly, name) || strings.HasPrefix(name, "lib/sim/")
}

// testOnly are packages that only tests may import.
var testOnly = []string{"lib/sim", "lib/store/storetest", "lib/store/fault", "lib/store/mem", "lib/store/seaweed/weedtest"}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		may, known := allowed[name]
		if isWiring(name) || isTestOnly(name) && !known {
			continue
		}
		if !known {
			t.Errorf("%s is not in the table of allowed imports", name)
			continue
		}
		for _, i := range p.Imports {
			i, ours := strings.CutPrefix(i, module)
			if ours && !slices.Contains(may, i) {
				t.Errorf("%s imports %s, which the table does not allow", name, i)
			}
		}
	}
}

func TestShippedPackagesImportNoTestPackages(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, i := range p.Imports {
			if i := strings.TrimPrefix(i, module); isTestOnly(i) && !isTestOnly(name) {
				t.Errorf("%s imports %s, which is for tests", name, i)
			}
		}
	}
}

// packages lists the project's packages with what their shipped files import.
func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"lib/...", module+"cmd/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath != module+"lib" {
			list = append(list, p)
		}
	}
}
