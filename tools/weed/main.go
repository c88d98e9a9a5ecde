//go:build unix

// The weed command of this module builds the SeaweedFS server that the tests
// with the build tag weed run against, and prints where it is:
//
//	go -C tools/weed run .
//
// The server's version is pinned by this module's go.mod. It is built once,
// into the folder bin, which git ignores; later runs find it there. Several runs
// at once, as by the tests of several packages, build it once.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

// server is the import path of the program to build.
const server = "github.com/seaweedfs/seaweedfs/weed"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := build(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "weed:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// build returns the path of the server's binary, after building it when it is
// missing or was built from another go.mod. It works in the current folder,
// which must be the module's.
func build(ctx context.Context) (string, error) {
	dir, err := filepath.Abs("bin")
	if err != nil {
		return "", err
	}
	want, err := stamp()
	if err != nil {
		return "", fmt.Errorf("%w: run it as go -C tools/weed run", err)
	}
	binary, stampFile := filepath.Join(dir, "weed"), filepath.Join(dir, "weed.stamp")
	if upToDate(binary, stampFile, want) {
		return binary, nil
	}
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if upToDate(binary, stampFile, want) { // another run built it meanwhile
		return binary, nil
	}
	fmt.Fprintln(os.Stderr, "weed: building the SeaweedFS server, once; this takes some minutes")
	if err := compile(ctx, binary); err != nil {
		return "", err
	}
	return binary, os.WriteFile(stampFile, []byte(want), 0o666)
}

// compile builds beside the final name, so that a build that is cut short
// leaves nothing that could be taken for a server.
func compile(ctx context.Context, binary string) error {
	unfinished := binary + ".new"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", unfinished, server)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", server, err)
	}
	return os.Rename(unfinished, binary)
}

// stamp identifies what a binary is built from: the pinned modules, the
// platform.
func stamp() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func upToDate(binary, stampFile, want string) bool {
	have, err := os.ReadFile(stampFile)
	if err != nil || string(have) != want {
		return false
	}
	_, err = os.Stat(binary)
	return !errors.Is(err, fs.ErrNotExist)
}

// lock waits until no other process builds into dir. The system frees the lock
// of a process that dies.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}
