//go:build unix

package weedtest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// AddFiler runs one more filer in the server's cluster, for the length of a
// test, with a store of its own. It returns the address of its HTTP.
func (s *Server) AddFiler(t testing.TB) string {
	t.Helper()
	var err error
	for range startTries {
		var addr string
		if addr, err = s.addFiler(t.Context(), t); err == nil {
			return addr
		}
	}
	t.Fatalf("add a filer: %v", err)
	return ""
}

func (s *Server) addFiler(ctx context.Context, t testing.TB) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	port, _, _, err := freePorts()
	if err != nil {
		return "", err
	}
	dir := t.TempDir()
	cmd := exec.Command(s.binary, "filer", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-port="+strconv.Itoa(port),
		"-master="+s.Master(), "-defaultStoreDir="+dir, "-localSocket="+filepath.Join(dir, "filer.sock"))
	cmd.Dir, cmd.Env = dir, s.environment()
	p, err := startProcess(cmd)
	if err != nil {
		return "", err
	}
	urls := []string{"http://" + address(port) + "/"}
	if err := p.await(ctx, func(ctx context.Context) error { return probe(ctx, urls, address(port+grpcOffset)) }); err != nil {
		p.kill()
		return "", err
	}
	t.Cleanup(p.kill)
	return address(port), nil
}

// probe asks for URLs, and whether something listens at an address.
func probe(ctx context.Context, urls []string, grpc string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, u := range urls {
		if err := answers(ctx, u); err != nil {
			return err
		}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", grpc)
	if err != nil {
		return fmt.Errorf("gRPC: %w", err)
	}
	return conn.Close()
}
