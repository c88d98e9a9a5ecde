package daemon

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
)

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := Listen("listen", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestListenMistakes(t *testing.T) {
	for _, address := range []string{"", "nonsense", "127.0.0.1"} {
		if _, err := Listen("listen", address); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("%q: %v, want a usage error", address, err)
		}
	}
	taken := listen(t, "127.0.0.1:0").Addr().String()
	_, err := Listen("http", taken)
	want := "cannot listen on " + taken + ": it is in use; choose another with --http (port 0: any that is free)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAdvertise(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	for advertise, want := range map[string]string{"": "127.0.0.1:" + port, "broker1": "broker1:" + port, "broker1:99": "broker1:99", "[::1]:99": "[::1]:99"} {
		if got, err := Advertise(l, advertise); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", advertise, got, err, want)
		}
	}
	for _, advertise := range []string{":99", "a:0", "a:b", "a:b:c"} {
		if got, err := Advertise(l, advertise); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("%q: %s, %v, want a usage error", advertise, got, err)
		}
	}
}

// everywhere is a listener on all addresses, without listening there.
type everywhere struct{ net.Listener }

func (everywhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6unspecified, Port: 7310} }

func TestAdvertiseOfAllAddressesIsOneOfThem(t *testing.T) {
	got, err := Advertise(everywhere{}, "")
	host, port, splitErr := net.SplitHostPort(got)
	if err != nil || splitErr != nil || port != "7310" || host == "" || net.ParseIP(host).IsUnspecified() {
		t.Errorf("%s, %v", got, err)
	}
}

func TestEndpoints(t *testing.T) {
	var notReady error
	registry := NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "smq_answer"}, func() float64 { return 42 }))
	e := Endpoints{Metrics: registry, Ready: func() error { return notReady }, Logger: slog.New(slog.DiscardHandler)}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "smq_answer 42") {
		t.Errorf("/metrics: %d %s", code, body)
	}
	if code, body := get("/readyz"); code != 200 || body != "ok\n" {
		t.Errorf("/readyz: %d %s", code, body)
	}
	notReady = errors.New("the store does not answer")
	if code, body := get("/readyz"); code != 503 || body != "the store does not answer\n" {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, body := get("/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("/healthz: %d %s", code, body)
	}
	if code, _ := get("/debug/pprof/"); code != 404 {
		t.Errorf("/debug/pprof/: %d though nobody asked for it", code)
	}
	e.Pprof = true
	if code, _ := get("/debug/pprof/"); code != 200 {
		t.Errorf("/debug/pprof/: %d", code)
	}
}

func TestEndpointsServeAndStop(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	stop := Endpoints{Metrics: NewRegistry(), Ready: func() error { return nil }, Logger: slog.New(slog.DiscardHandler)}.Serve(l)
	resp, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	stop()
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("still listening")
	}
}

func TestWriteAddresses(t *testing.T) {
	folder := t.TempDir()
	addresses := []Address{{"grpc", "127.0.0.1:7310"}, {"http", ""}, {"raft", "[::1]:7301"}}
	for name, want := range map[string]string{
		"broker.json": `{"grpc":"127.0.0.1:7310","raft":"[::1]:7301"}` + "\n",
		"broker.env":  "GRPC=127.0.0.1:7310\nRAFT=[::1]:7301\n",
	} {
		path := filepath.Join(folder, name)
		if err := WriteAddresses(path, addresses); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if left, _ := filepath.Glob(folder + "/*"); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
	if err := WriteAddresses(filepath.Join(folder, "none", "x"), addresses); cli.ExitCode(err, nil) != cli.ExitNotFound {
		t.Errorf("no folder: %v", err)
	}
}

// process is a Process under the test's control.
type process struct {
	Process
	ready, failed chan struct{}
	failure       error
	stopped       int
	stopError     error
}

func newProcess() *process {
	p := &process{ready: make(chan struct{}), failed: make(chan struct{})}
	p.Process = Process{
		Name: "broker", Logger: slog.New(slog.DiscardHandler),
		Ready: p.ready, Failed: p.failed, Err: func() error { return p.failure },
		Stop:        func(context.Context) error { p.stopped++; return p.stopError },
		StopTimeout: time.Minute,
	}
	return p
}

func TestProcessStopsInGoodOrder(t *testing.T) {
	p := newProcess()
	p.AddrFile = filepath.Join(t.TempDir(), "addr")
	p.Addresses = []Address{{"grpc", "127.0.0.1:1"}}
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	told := func() string {
		b := make([]byte, 100)
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	close(p.ready)
	if got := told(); got != "READY=1" {
		t.Errorf("told %s", got)
	}
	if b, err := os.ReadFile(p.AddrFile); err != nil || string(b) != "GRPC=127.0.0.1:1\n" {
		t.Errorf("address file %q, %v", b, err)
	}
	cancel(&cli.SignalError{Signal: syscall.SIGTERM})
	if got := told(); got != "STOPPING=1" {
		t.Errorf("told %s", got)
	}
	if err := <-done; err != nil || p.stopped != 1 {
		t.Errorf("stopped %d times, %v", p.stopped, err)
	}
	if _, err := os.Stat(p.AddrFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("address file: %v", err)
	}
}

func TestProcessFailures(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	signal := &cli.SignalError{Signal: syscall.SIGTERM}
	tests := []struct {
		name    string
		prepare func(p *process, cancel context.CancelCauseFunc)
		want    string
		code    int
	}{
		{"fails", func(p *process, _ context.CancelCauseFunc) { p.failure = smq.ErrConflict; close(p.failed) }, "conflict", cli.ExitRefused},
		{"stops", func(p *process, _ context.CancelCauseFunc) { close(p.failed) }, "the broker has stopped by itself", cli.ExitFailed},
		{"late", func(p *process, _ context.CancelCauseFunc) { p.ReadyTimeout = time.Second }, "the broker is not ready after 1s: timed out", cli.ExitUnreachable},
		{"drain fails", func(p *process, cancel context.CancelCauseFunc) { p.stopError = smq.ErrTimeout; cancel(signal) }, "stop the broker: timed out", cli.ExitUnreachable},
		{"no address file", func(p *process, _ context.CancelCauseFunc) { p.AddrFile = "/none/such/file"; close(p.ready) }, "cannot write the address file: ", cli.ExitNotFound},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			p := newProcess()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			test.prepare(p, cancel)
			err := p.Run(ctx)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || cli.ExitCode(err, context.Cause(ctx)) != test.code || p.stopped != 1 {
				t.Errorf("%s: %v, exit code %d, stopped %d times", test.name, err, cli.ExitCode(err, context.Cause(ctx)), p.stopped)
			}
		})
	}
}

func TestMetricsTellOfTheProcess(t *testing.T) {
	w := httptest.NewRecorder()
	e := Endpoints{Metrics: NewRegistry(), Ready: func() error { return nil }}
	e.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	lines := bufio.NewScanner(io.LimitReader(w.Body, 1<<20))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "go_goroutines ") {
			return
		}
	}
	t.Error("no go_goroutines")
}
