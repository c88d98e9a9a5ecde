package wire

import (
	"net"
	"os"
	"testing"
)

func TestProcesses(t *testing.T) {
	s := newServer(t)
	dialed, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	c := s.accept(t)
	remote, local := c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr)
	me := map[int]string{os.Getpid(): "me"}
	if got := Processes(func() map[int]string { return me })(remote, local); got != "me" {
		t.Errorf("the connection is %q's", got)
	}
	others := map[int]string{os.Getppid(): "parent", 1 << 30: "nobody"}
	if got := Processes(func() map[int]string { return others })(remote, local); got != "" {
		t.Errorf("the connection is %q's, who are others", got)
	}
	remote.Port++
	if got := Processes(func() map[int]string { return me })(remote, local); got == "me" {
		t.Error("a connection that does not exist is known")
	}
}

func TestTheOwnerIsAsked(t *testing.T) {
	n, d, s := pair(t, func(_, local *net.TCPAddr) string { return "asked" })
	n.Impose(Rule{From: Parts{"asked"}, To: Parts{"b"}, Reset: true})
	expectRefused(t, func() (net.Conn, error) { return net.Dial("tcp", d.Address()) })
	b := dial(t, n, "other", d) // who dials as a part is not asked for
	write(t, b, "other")
	expect(t, s.accept(t), "other")
	if all, unknown := n.Accepted(); all != 2 || unknown != 0 {
		t.Errorf("%d connections were accepted, %d of unknown origin", all, unknown)
	}
}
