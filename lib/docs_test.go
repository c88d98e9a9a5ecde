package lib_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesAreTested looks for the tests that docs/guarantees.md rests on.
func TestGuaranteesAreTested(t *testing.T) {
	page, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := regexp.MustCompile(`\bTest\w+`).FindAllString(string(page), -1)
	if len(named) < 30 {
		t.Errorf("the page names only %d tests", len(named))
	}
	for _, name := range named {
		if !tests[name] {
			t.Errorf("there is no %s, on which a guarantee rests", name)
		}
	}
}

// testNames are the names of all tests below this folder.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range test.FindAllSubmatch(source, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
