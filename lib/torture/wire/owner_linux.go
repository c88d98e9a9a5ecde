package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Processes tells connections by the processes that hold them: parts has the
// names of those that run, by process id.
func Processes(parts func() map[int]string) Owner {
	return func(remote, local *net.TCPAddr) string {
		inode := socketInode(remote, local)
		if inode == "" {
			return ""
		}
		for pid, part := range parts() {
			if holds(pid, inode) {
				return part
			}
		}
		return ""
	}
}

// KnowsProcesses reports whether Processes can tell anything on this system.
const KnowsProcesses = true

// socketInode is the inode of the socket whose own end is remote, and whose
// other end is local; empty when there is none.
func socketInode(remote, local *net.TCPAddr) string {
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer table.Close()
	own, other := kernelAddress(remote), kernelAddress(local)
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// sl local_address rem_address st queues timer retransmits uid timeout inode …
		f := bytes.Fields(lines.Bytes())
		if len(f) > 9 && string(f[1]) == own && string(f[2]) == other {
			return string(f[9])
		}
	}
	return ""
}

// kernelAddress is an IPv4 address as /proc/net/tcp has it: the address as a
// number of this machine, and the port.
func kernelAddress(a *net.TCPAddr) string {
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.IP.To4()), a.Port)
}

// holds reports whether a process has the socket open.
func holds(pid int, inode string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && target == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}
