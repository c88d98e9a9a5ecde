package weedtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// grpcOffset lies between a server's HTTP port and its gRPC port.
	grpcOffset = 10000
	// Ports from firstPort on and below lastPort are tried, so that those for
	// gRPC stay below the ones that systems give to clients.
	firstPort, lastPort = 12000, 22000
	portTries           = 200
)

// freePorts finds ports that are free now, each with the one for gRPC.
func freePorts() (master, volume, filer int, err error) {
	var found []int
	for range portTries {
		p := firstPort + rand.IntN(lastPort-firstPort)
		if free(p) && free(p+grpcOffset) {
			found = append(found, p)
		}
		if len(found) == 3 {
			return found[0], found[1], found[2], nil
		}
	}
	return 0, 0, 0, fmt.Errorf("no free ports between %d and %d", firstPort, lastPort)
}

func free(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
