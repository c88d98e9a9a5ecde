package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/seaweedmq/smq/lib/cli"
)

// Listen listens on address, host:port; flag is the flag that it came from.
// Port 0 takes a free one.
func Listen(flag, address string) (net.Listener, error) {
	if err := CheckAddress(flag, address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: it is in use; choose another with --%s (port 0: any that is free)", address, flag)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s (--%s): %w", address, flag, bare(err))
	}
	return l, nil
}

// CheckAddress refuses what is not HOST:PORT; a port is a number, or the name of a
// service.
func CheckAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return cli.Usagef("--%s %q is not HOST:PORT", flag, address)
	}
	return nil
}

// bare takes the operation and address off an error of package net.
func bare(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// Advertise is the address, host:port, by which others reach l. advertise is
// what the flag of that name says: HOST, HOST:PORT or nothing. By default it is
// the address listened on, or one of the machine's when that is all of them.
func Advertise(l net.Listener, advertise string) (string, error) {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	if advertise != "" {
		if !strings.Contains(advertise, ":") {
			return net.JoinHostPort(advertise, port), nil
		}
		h, p, err := net.SplitHostPort(advertise)
		if n, numErr := strconv.ParseUint(p, 10, 16); err != nil || h == "" || numErr != nil || n == 0 {
			return "", cli.Usagef("--advertise %q is not HOST or HOST:PORT", advertise)
		}
		return advertise, nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
		return net.JoinHostPort(host, port), nil
	}
	return net.JoinHostPort(machine(), port), nil
}

// machine is an address of this machine that others may reach, or else its
// name.
func machine() string {
	addresses, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
				return n.IP.String()
			}
		}
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "127.0.0.1"
}
