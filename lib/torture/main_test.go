package torture

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain runs the tests, or a child of theirs: this program, called so.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// child is a daemon of a sort: it listens at an address, says so in a file, and
// ends when it is told to, unless it is stubborn.
func child(manner string, args []string) int {
	if manner == "crash" {
		fmt.Fprintln(os.Stderr, "first words")
		fmt.Fprintln(os.Stderr, "last words")
		return 3
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	l, err := net.Listen("tcp", args[0])
	if err == nil {
		err = os.WriteFile(args[1], []byte(l.Addr().String()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				fmt.Fprint(c, manner)
				c.Close()
			}
		}
	}()
	for {
		<-told
		if manner != "stubborn" {
			return 0
		}
	}
}

// childCommand calls this program as a child.
func childCommand(d *daemon, manner string) func([]string) *exec.Cmd {
	return func(addresses []string) *exec.Cmd {
		return exec.Command(os.Args[0], "child", manner, addresses[0], d.addrFile())
	}
}
