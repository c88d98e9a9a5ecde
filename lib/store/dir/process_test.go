package dir

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// roleVariable makes the test's binary, run again, play a process that shares a
// store: "<role> <number> <directory>".
const roleVariable = "SMQ_TEST_STORE_PROCESS"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role string) error {
	var name, root string
	var number int
	if _, err := fmt.Sscanf(role, "%s %d %s", &name, &number, &root); err != nil {
		return err
	}
	s, err := Open(root, Options{Fsync: true})
	if err != nil {
		return err
	}
	defer s.Close()
	// All begin when their input ends.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	switch name {
	case "race":
		return raceProcess(s, number)
	case "count":
		return countProcess(s)
	case "write":
		return writeProcess(s)
	default:
		return fmt.Errorf("no such role: %s", name)
	}
}

// process is a running process of the store's.
type process struct {
	cmd    *exec.Cmd
	begin  io.Closer
	output *bufio.Scanner
	stderr bytes.Buffer
}

func start(t *testing.T, role string, number int, root string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", roleVariable, role, number, root))
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.begin, p.output = stdin, bufio.NewScanner(stdout)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// run starts processes, lets them begin together and returns what each wrote.
func run(t *testing.T, role string, processes int, root string) [][]string {
	t.Helper()
	ps := make([]*process, processes)
	for i := range ps {
		ps[i] = start(t, role, i, root)
	}
	lines := make([][]string, processes)
	for _, p := range ps {
		if err := p.begin.Close(); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() {
			for p.output.Scan() {
				lines[i] = append(lines[i], p.output.Text())
			}
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, p.stderr.String())
			}
		})
	}
	wg.Wait()
	return lines
}

const (
	processes = 8
	raceNames = 60
)

// raceProcess tries to create all names, and tells which it has created.
func raceProcess(s *Store, number int) error {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	ctx := context.Background()
	for n := range raceNames {
		path := racePath(n)
		content := store.Bytes(raceContent(n, number))
		if random.IntN(2) == 0 {
			ref, err := s.Upload(ctx, raceContent(n, number))
			if err != nil {
				return err
			}
			content = store.Refs(ref)
		}
		err := s.Create(ctx, path, content)
		switch {
		case err == nil:
			fmt.Println(n)
		case !errors.Is(err, smq.ErrExists):
			return err
		}
	}
	return nil
}

func racePath(n int) string { return fmt.Sprintf("/race/%d/%d", n/10, n) }

func raceContent(n, number int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d by %d\n", n, number), 1000*(number+1))
}

// TestProcessesRace has processes create the same names: each has one winner,
// and its content.
func TestProcessesRace(t *testing.T) {
	root := t.TempDir()
	winners := map[int]int{}
	for number, lines := range run(t, "race", processes, root) {
		for _, line := range lines {
			n, err := strconv.Atoi(line)
			if err != nil {
				t.Fatal(err)
			}
			if other, taken := winners[n]; taken {
				t.Errorf("both %d and %d have created %d", other, number, n)
			}
			winners[n] = number
		}
	}
	s := mustOpen(t, root, Options{})
	for n := range raceNames {
		got, _, err := s.Read(t.Context(), racePath(n))
		if err != nil {
			t.Fatal(err)
		}
		if winner, ok := winners[n]; !ok || !bytes.Equal(got, raceContent(n, winner)) {
			t.Errorf("%d: the winner is %d (%v), the content is %.20q", n, winner, ok, got)
		}
	}
}

const share = 25

// countProcess adds its share to a counter.
func countProcess(s *Store) error {
	for range share {
		if err := increment(s, "/counter"); err != nil {
			return err
		}
	}
	return nil
}

func increment(s *Store, path string) error {
	ctx := context.Background()
	for {
		data, version, err := s.Read(ctx, path)
		if errors.Is(err, smq.ErrNotFound) {
			data, version, err = []byte("0"), "", nil
		}
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(data))
		if err != nil {
			return err
		}
		_, err = s.Replace(ctx, path, strconv.AppendInt(nil, int64(n+1), 10), version)
		if !errors.Is(err, smq.ErrConflict) {
			return err
		}
	}
}

// TestProcessesCount has processes increment a counter: nothing is lost.
func TestProcessesCount(t *testing.T) {
	root := t.TempDir()
	run(t, "count", processes, root)
	got, _, err := mustOpen(t, root, Options{}).Read(t.Context(), "/counter")
	if err != nil || string(got) != strconv.Itoa(processes*share) {
		t.Errorf("the counter is %s, %v, want %d", got, err, processes*share)
	}
}

// writeProcess creates and replaces files in every way, as fast as it can, and
// tells of each when it is done, until it is killed.
func writeProcess(s *Store) error {
	failed := make(chan error)
	var output sync.Mutex
	for _, way := range []string{"bytes", "ref", "mixed", "replaced"} {
		go func() {
			for n := 0; ; n++ {
				path, err := write(s, way, n)
				if err != nil {
					failed <- err
					return
				}
				output.Lock()
				fmt.Println(path, n)
				output.Unlock()
			}
		}()
	}
	return <-failed
}

func write(s *Store, way string, n int) (path string, err error) {
	ctx := context.Background()
	path = fmt.Sprintf("/%s/%d", way, n)
	content := writeContent(path)
	switch way {
	case "bytes":
		return path, s.Create(ctx, path, store.Bytes(content[:1000], content[1000:]))
	case "ref":
		ref, err := s.Upload(ctx, content)
		if err != nil {
			return path, err
		}
		return path, s.Create(ctx, path, store.Refs(ref))
	case "mixed":
		ref, err := s.Upload(ctx, content[1000:])
		if err != nil {
			return path, err
		}
		return path, s.Create(ctx, path, append(store.Bytes(content[:1000]), store.Refs(ref)...))
	default:
		path = "/" + way
		_, version, err := s.Read(ctx, path)
		if err != nil && !errors.Is(err, smq.ErrNotFound) {
			return path, err
		}
		_, err = s.Replace(ctx, path, writeContent(strconv.Itoa(n)), version)
		return path, err
	}
}

// writeContent is content that a reader can check by itself: a name, repeated.
func writeContent(name string) []byte {
	return bytes.Repeat([]byte(name+"\n"), 20_000)
}

// TestKill kills a process that writes, again and again at other moments.
// Whatever is seen is whole, and whatever it told of is there.
func TestKill(t *testing.T) {
	for round := range 8 {
		root := t.TempDir()
		p := start(t, "write", round, root)
		if err := p.begin.Close(); err != nil {
			t.Fatal(err)
		}
		told := map[string]int{}
		for range 5 + 7*round {
			if !p.output.Scan() {
				t.Fatalf("it ends by itself: %s", p.stderr.String())
			}
			path, n, _ := strings.Cut(p.output.Text(), " ")
			told[path], _ = strconv.Atoi(n)
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for p.output.Scan() { // also what it told of meanwhile
			if path, n, whole := strings.Cut(p.output.Text(), " "); whole {
				told[path], _ = strconv.Atoi(n)
			}
		}
		if err := p.cmd.Wait(); err == nil {
			t.Error("it ended by itself")
		}
		checkKilled(t, mustOpen(t, root, Options{}), told)
	}
}

func checkKilled(t *testing.T, s *Store, told map[string]int) {
	t.Helper()
	for _, way := range []string{"bytes", "ref", "mixed"} {
		infos, err := s.List(t.Context(), "/"+way, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			path := "/" + way + "/" + info.Name
			got, _, err := s.Read(t.Context(), path)
			if err != nil || !bytes.Equal(got, writeContent(path)) {
				t.Errorf("%s is torn: %d bytes, %v", path, len(got), err)
			}
			delete(told, path)
		}
	}
	if last, ok := told["/replaced"]; ok {
		got, version, err := s.Read(t.Context(), "/replaced")
		name, _, _ := strings.Cut(string(got), "\n")
		n, numErr := strconv.Atoi(name)
		if err != nil || numErr != nil || n < last || !bytes.Equal(got, writeContent(name)) {
			t.Errorf("/replaced is %d bytes of %q, %v, after %d was told of", len(got), name, err, last)
		}
		// The lock died with its holder.
		if _, err := s.Replace(t.Context(), "/replaced", nil, version); err != nil {
			t.Error(err)
		}
		delete(told, "/replaced")
	}
	if len(told) > 0 {
		t.Errorf("told of, and not there: %v", told)
	}
}
