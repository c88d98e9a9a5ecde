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
	remove func(ctx context.Context) error // removes what the run has put there; nil: it is all in Dir
}

// newStorage makes the storage that options ask for. A server of ours is not
// started yet.
func newStorage(ctx context.Context, o Options, network *wire.Network, died func(*daemon, string)) (*storage, error) {
	switch {
	case o.Weed != "":
		return newWeed(o, network, died)
	case o.Store != "":
		return newSharedStorage(ctx, o.Store, network)
	}
	return newDirectory("dir://" + filepath.ToSlash(filepath.Join(o.Dir, "store"))), nil
}

// newSharedStorage takes a folder of the run's own in a store that is there, so
// that runs do not meet.
func newSharedStorage(ctx context.Context, address string, network *wire.Network) (*storage, error) {
	st, err := openStore(ctx, address) // it must work before it is tortured
	if err != nil {
		return nil, err
	}
	_ = st.Close() // nothing is under way
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%w store URL %q: %v", smq.ErrInvalid, address, err)
	}
	folder := fmt.Sprintf("/torture-%016x", rand.Uint64())
	u.Path = strings.TrimSuffix(u.Path, "/") + folder
	var s *storage
	if u.Scheme == "dir" {
		s = newDirectory(u.String())
	} else if s, err = newFilers(u, network); err != nil {
		return nil, err
	}
	s.remove = func(ctx context.Context) error {
		st, err := openStore(ctx, address)
		if err != nil {
			return err
		}
		return errors.Join(st.RemoveAll(ctx, folder), st.Close())
	}
	return s, nil
}

func newDirectory(address string) *storage {
	s := &storage{url: address, direct: address}
	if canStarve {
		s.have = append(s.have, fileLimits, storeAccess)
	}
	return s
}

// grpcOffset lies between a filer's HTTP port and its gRPC port.
const grpcOffset = 10000

// newFilers puts doors before the filers that a URL names.
func newFilers(u *url.URL, network *wire.Network) (*storage, error) {
	s := &storage{direct: u.String(), have: []needs{storeNetwork, storeAccess}}
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
func (s *storage) open(ctx context.Context) (store.Store, error) { return openStore(ctx, s.direct) }

func openStore(ctx context.Context, address string) (store.Store, error) {
	st, err := open.Open(ctx, address, open.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", address, err)
	}
	return st, nil
}
