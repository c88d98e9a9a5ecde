package torture

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
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/wire"
)

// newWeed prepares a SeaweedFS server, all of it in one process.
func newWeed(o Options, network *wire.Network, died func(*daemon, string)) (*storage, error) {
	var ports [3]int // master, volume server, filer
	for i := range ports {
		var err error
		if ports[i], err = freePair(); err != nil {
			return nil, err
		}
	}
	doors, err := doorPair(network)
	if err != nil {
		return nil, err
	}
	binary, err := filepath.Abs(o.Weed)
	if err != nil {
		return nil, fmt.Errorf("SeaweedFS: %w", err)
	}
	dir := filepath.Join(o.Dir, "weed")
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		return nil, fmt.Errorf("SeaweedFS: %w", err)
	}
	filer := loopback(ports[2])
	s := &storage{
		url: "seaweedfs://" + doors[0].Address() + "/torture", direct: "seaweedfs://" + filer + "/torture",
		have: []needs{storeNetwork, storeProcess, storeAccess},
	}
	s.server = &daemon{
		name: storePart, dir: dir, doors: doors, fixed: []string{filer, loopback(ports[2] + grpcOffset)}, died: died,
		command: func([]string) *exec.Cmd {
			cmd := exec.Command(binary, weedArguments(dir, ports)...)
			cmd.Dir = dir
			return cmd
		},
	}
	s.begin = func(ctx context.Context) error { return s.startWeed(ctx, ports) }
	s.end = func() { removeSockets(ports) }
	return s, nil
}

// removeSockets removes what a server that is killed leaves outside its folder:
// the sockets by which its parts speak to one another.
func removeSockets(ports [3]int) {
	for i, part := range []string{"master", "volume", "filer"} {
		// One that is not there need not be removed.
		_ = os.Remove(fmt.Sprintf("/tmp/seaweedfs-%s-grpc-%d.sock", part, ports[i]+grpcOffset))
	}
}

func weedArguments(dir string, ports [3]int) []string {
	return []string{
		"-logtostderr=true", "server", "-filer",
		"-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=" + filepath.Join(dir, "data"),
		"-master.port=" + strconv.Itoa(ports[0]), "-volume.port=" + strconv.Itoa(ports[1]), "-filer.port=" + strconv.Itoa(ports[2]),
		"-filer.localSocket=" + filepath.Join(dir, "filer.sock"),
		"-volume.max=100", "-master.volumeSizeLimitMB=128", "-volume.minFreeSpace=1",
		"-master.telemetry=false", "-master.electionTimeout=1s", "-master.heartbeatInterval=100ms",
	}
}

// weedPatience bounds the start of a server, on a machine that does much else.
const weedPatience = 90 * time.Second

// startWeed starts the server and waits until it takes files.
func (s *storage) startWeed(ctx context.Context, ports [3]int) error {
	if err := s.server.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, weedPatience)
	defer cancel()
	for {
		err := s.probeWeed(ctx, ports)
		if err == nil {
			return nil
		}
		switch {
		case s.server.running() == nil:
			return fmt.Errorf("start SeaweedFS: %w: it has ended: %s", smq.ErrUnavailable, s.server.lastWords())
		case pause(ctx, readyPoll) != nil:
			s.server.kill()
			return fmt.Errorf("start SeaweedFS: %w: %w", smq.ErrTimeout, err)
		}
	}
}

// probeWeed looks whether the server assigns places for data, and opens as a
// store.
func (s *storage) probeWeed(ctx context.Context, ports [3]int) error {
	for _, address := range []string{loopback(ports[0]) + "/dir/assign", loopback(ports[2]) + "/"} {
		if err := answers(ctx, "http://"+address); err != nil {
			return err
		}
	}
	st, err := s.open(ctx)
	if err != nil {
		return err
	}
	return st.Close()
}

func answers(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || bytes.Contains(body, []byte(`"error"`)) {
		return errors.New(resp.Status + ": " + string(body))
	}
	return nil
}
