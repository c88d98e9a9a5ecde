package weedtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binary is the path of the server to run. tools/weed builds it when it is
// missing, once, however many ask.
func Binary(ctx context.Context) (string, error) {
	if path := os.Getenv("SMQ_WEED"); path != "" {
		return path, nil
	}
	root, err := repository()
	if err != nil {
		return "", err
	}
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "tools", "weed"), "run", ".")
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build the SeaweedFS server: %w: %s", err, complaints.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// repository is the folder of the module that the test is in. Tests run in the
// folder of their package.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools", "weed", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no tools/weed above the current folder")
		}
		dir = parent
	}
}
