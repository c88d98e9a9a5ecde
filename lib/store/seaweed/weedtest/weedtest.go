//go:build unix

// Package weedtest runs real SeaweedFS servers for tests. It is imported by
// tests only, which stand behind the build tag weed, so that a plain go test
// needs nothing but Go:
//
//	go test -tags weed ./lib/store/seaweed/...
//
// The server is the one that tools/weed pins. It is built when it is missing,
// which takes some minutes, once; SMQ_WEED names another binary to run instead.
package weedtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// startPatience bounds the wait for a server that has been started, on a
	// machine that does much else.
	startPatience = 90 * time.Second
	// probeTimeout bounds one look at whether it is ready.
	probeTimeout = 5 * time.Second
	// pollEvery is the pause between looks at whether it is ready.
	pollEvery = 50 * time.Millisecond
	// startTries is how often other ports are tried.
	startTries = 3
)

// Options change how a server runs.
type Options struct {
	// Args are added to the server's command line. Of a flag that is given
	// twice the last counts.
	Args []string
}

// Server is a SeaweedFS master, volume server and filer in one process, on the
// loopback interface.
type Server struct {
	dir    string
	binary string
	opts   Options

	masterPort, volumePort, filerPort int

	mu   sync.Mutex
	proc *process // nil while the server is down
}

// Start runs a server for the length of a test, with its data in a folder of
// the test's.
func Start(t testing.TB, opts ...Options) *Server {
	t.Helper()
	s, err := Launch(t.Context(), t.TempDir(), opts...)
	if err != nil {
		t.Fatalf("start SeaweedFS: %v", err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Launch runs a server with its data in dir, for tests that share one. The
// caller ends it with Kill.
func Launch(ctx context.Context, dir string, opts ...Options) (*Server, error) {
	binary, err := Binary(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, binary: binary}
	for _, o := range opts {
		s.opts.Args = append(s.opts.Args, o.Args...)
	}
	for range startTries {
		if s.masterPort, s.volumePort, s.filerPort, err = freePorts(); err != nil {
			return nil, err
		}
		// Somebody else may take a port before the server does.
		if err = s.start(ctx); err == nil || ctx.Err() != nil {
			return s, err
		}
	}
	return nil, err
}

// Filer is the address of the filer's HTTP; its gRPC port is 10000 higher.
func (s *Server) Filer() string { return address(s.filerPort) }

// FilerGRPC is the address of the filer's gRPC.
func (s *Server) FilerGRPC() string { return address(s.filerPort + grpcOffset) }

// HTTP is the URL of a path of the filer.
func (s *Server) HTTP(path string) string { return "http://" + s.Filer() + path }

// Volume is the address of the volume server.
func (s *Server) Volume() string { return address(s.volumePort) }

// Master is the address of the master.
func (s *Server) Master() string { return address(s.masterPort) }

// Dir is the folder with the server's data.
func (s *Server) Dir() string { return s.dir }

// Stop ends the server as an administrator would, and waits for its end.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the server at once, whatever it is doing, paused or not.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Restart starts a server that was ended, with its data and its ports.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop()
	return s.start(ctx)
}

// Pause freezes the server: connections stay, nothing is answered. It returns
// when the server stands still.
func (s *Server) Pause() error {
	return s.running(func(p *process) error {
		if err := p.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		return p.awaitPause()
	})
}

// Resume lets it go on.
func (s *Server) Resume() error {
	return s.running(func(p *process) error { return p.signal(syscall.SIGCONT) })
}

// Shell runs commands in the server's administration shell and returns what it
// prints.
func (s *Server) Shell(ctx context.Context, commands string) (string, error) {
	cmd := exec.CommandContext(ctx, s.binary, "shell", "-master="+s.Master(), "-filer="+s.Filer())
	cmd.Dir, cmd.Env = s.dir, s.environment()
	cmd.Stdin = bytes.NewBufferString(commands + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("weed shell: %w: %s", err, out)
	}
	return string(out), nil
}

func (s *Server) running(do func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return errors.New("the server is not running")
	}
	return do(s.proc)
}

func (s *Server) end(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	s.proc.end(sig)
	s.proc = nil
	s.removeSockets()
}

// removeSockets removes what a server that is killed leaves outside its
// folder: the sockets by which its parts speak to one another.
func (s *Server) removeSockets() {
	for part, port := range map[string]int{"master": s.masterPort, "volume": s.volumePort, "filer": s.filerPort} {
		// One that is not there need not be removed.
		_ = os.Remove(fmt.Sprintf("/tmp/seaweedfs-%s-grpc-%d.sock", part, port+grpcOffset))
	}
}

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	data := filepath.Join(s.dir, "data")
	if err := os.MkdirAll(data, 0o777); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "weed.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.binary, s.arguments(data)...)
	cmd.Dir, cmd.Env = s.dir, s.environment()
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	urls, err := s.probes()
	if err == nil {
		err = p.await(ctx, func(ctx context.Context) error { return probe(ctx, urls, s.FilerGRPC()) })
	}
	if err != nil {
		p.kill()
		return fmt.Errorf("%w; the end of its log:\n%s", err, tail(log.Name()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc = p
	return nil
}

func (s *Server) arguments(data string) []string {
	return append([]string{
		"-logtostderr=true", "server",
		"-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=" + data, "-filer",
		"-master.port=" + strconv.Itoa(s.masterPort),
		"-volume.port=" + strconv.Itoa(s.volumePort),
		"-filer.port=" + strconv.Itoa(s.filerPort),
		"-filer.localSocket=" + filepath.Join(s.dir, "filer.sock"),
		"-volume.max=100", "-master.volumeSizeLimitMB=128", "-volume.minFreeSpace=1",
		"-master.telemetry=false", "-master.electionTimeout=1s", "-master.heartbeatInterval=100ms",
	}, s.opts.Args...)
}

// environment keeps the machine's own configuration of SeaweedFS away, and the
// server small.
func (s *Server) environment() []string {
	return append(os.Environ(), "HOME="+s.dir, "GOMEMLIMIT=512MiB", "GOGC=50")
}

// probes are the URLs by which all parts of the server are seen to work
// together. A fresh server must assign a volume; one with data must know where
// its volumes are, but assigns none for some time after its start.
func (s *Server) probes() ([]string, error) {
	master := "http://" + s.Master()
	urls := []string{"http://" + s.Volume() + "/status", s.HTTP("/")}
	volumes, err := filepath.Glob(filepath.Join(s.dir, "data", "*.dat"))
	if err != nil {
		return nil, err
	}
	if len(volumes) == 0 {
		urls = append(urls, master+"/dir/assign")
	}
	for _, name := range volumes {
		id := strings.TrimSuffix(filepath.Base(name), ".dat")
		urls = append(urls, master+"/dir/lookup?volumeId="+id[strings.LastIndex(id, "_")+1:])
	}
	return urls, nil
}

func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(body, []byte(`"error"`)) {
		return fmt.Errorf("%s: %s: %s: %v", url, resp.Status, body, err)
	}
	return nil
}

// tail is the last part of a file.
func tail(name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		return []byte(err.Error())
	}
	return b[max(len(b)-4000, 0):]
}
