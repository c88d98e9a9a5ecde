package torture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/open"
	"github.com/seaweedmq/smq/lib/torture/wire"
)

// storePart is the store's name in the network.
const storePart = "store"

// storage is the store that a cluster keeps everything in.
type storage struct {
	url    string                          // as the cluster reaches it
	direct string                          // as we do, past all faults
	server *daemon                         // nil: it does not run as a process of ours
	have   []needs                         // what actions can count on
	begin  func(ctx context.Context) error // starts the server and waits until it works; nil: there is none
	end    func()                          // cleans up behind it
}

// newStorage makes the storage that options ask for. A server of ours is not
// started yet.
func newStorage(o Options, network *wire.Network, died func(*daemon, string)) (*storage, error) {
	if o.Weed != "" {
		return newWeed(o, network, died)
	}
	if o.Store == "" {
		address := "dir://" + filepath.ToSlash(filepath.Join(o.Dir, "store"))
		return newDirectory(address), nil
	}
	u, err := url.Parse(o.Store)
	if err != nil {
		return nil, fmt.Errorf("%w store URL %q: %v", smq.ErrInvalid, o.Store, err)
	}
	// A folder of the run's own, so that runs do not meet.
	u.Path = strings.TrimSuffix(u.Path, "/") + fmt.Sprintf("/torture-%016x", rand.Uint64())
	if u.Scheme == "dir" {
		return newDirectory(u.String()), nil
	}
	return newFilers(u, network)
}

func newDirectory(address string) *storage {
	s := &storage{url: address, direct: address}
	if canStarve {
		s.have = append(s.have, fileLimits)
	}
	return s
}

// grpcOffset lies between a filer's HTTP port and its gRPC port.
const grpcOffset = 10000

// newFilers puts doors before the filers that a URL names.
func newFilers(u *url.URL, network *wire.Network) (*storage, error) {
	s := &storage{direct: u.String(), have: []needs{storeNetwork}}
	var doors []string
	for host := range strings.SplitSeq(u.Host, ",") {
		door, err := filerDoors(network, host)
		if err != nil {
			return nil, err
		}
		doors = append(doors, door)
	}
	through := *u
	through.Host = strings.Join(doors, ",")
	s.url = through.String()
	return s, nil
}

// filerDoors opens doors to a running filer's two ports, as far apart from one
// another, and returns the address of the first.
func filerDoors(network *wire.Network, host string) (string, error) {
	if !strings.Contains(host, ":") {
		host += ":8888"
	}
	grpc, err := grpcAddress(host)
	if err != nil {
		return "", err
	}
	doors, err := doorPair(network)
	if err != nil {
		return "", err
	}
	doors[0].Lead(host)
	doors[1].Lead(grpc)
	return doors[0].Address(), nil
}

func grpcAddress(filer string) (string, error) {
	host, port, err := net.SplitHostPort(filer)
	if err != nil {
		return "", fmt.Errorf("%w filer %q: %v", smq.ErrInvalid, filer, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", fmt.Errorf("%w filer %q: %v", smq.ErrInvalid, filer, err)
	}
	return net.JoinHostPort(host, strconv.Itoa(n+grpcOffset)), nil
}

// Ports from firstPort on and below lastPort are tried for pairs, so that both
// stay below those that systems give to clients.
const (
	firstPort, lastPort = 12000, 22000
	portTries           = 200
)

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// doorPair opens two doors to the store whose ports are grpcOffset apart.
func doorPair(network *wire.Network) ([]*wire.Door, error) {
	var failed error
	for range portTries {
		port, err := freePair()
		if err != nil {
			return nil, err
		}
		first, err := network.DoorAt(storePart, loopback(port))
		if err != nil {
			failed = err // somebody was faster
			continue
		}
		second, err := network.DoorAt(storePart, loopback(port+grpcOffset))
		if err == nil {
			return []*wire.Door{first, second}, nil
		}
		failed = err
	}
	return nil, failed
}

// freePair is a port that is free now, with the one grpcOffset above it.
func freePair() (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if isFree(port) && isFree(port+grpcOffset) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("%w: no free ports between %d and %d", smq.ErrUnavailable, firstPort, lastPort)
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	return err == nil && l.Close() == nil
}

// open opens the store past all faults.
func (s *storage) open(ctx context.Context) (store.Store, error) {
	st, err := open.Open(ctx, s.direct, open.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", s.direct, err)
	}
	return st, nil
}

// clear removes everything that the run has put into a store that goes on
// living.
func (s *storage) clear(ctx context.Context) error {
	st, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close() // what matters has been answered
	entries, err := st.List(ctx, "/", "", 0)
	for _, e := range entries {
		err = errors.Join(err, st.RemoveAll(ctx, "/"+e.Name))
	}
	return err
}
