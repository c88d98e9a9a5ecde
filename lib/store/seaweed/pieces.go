package seaweed

import (
	"hash/crc32"
	"io"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// run is bytes in several slices.
type run [][]byte

func (r run) size() (n int64) {
	for _, b := range r {
		n += int64(len(b))
	}
	return n
}

func (r run) crc() (sum uint32) {
	for _, b := range r {
		sum = crc32.Update(sum, castagnoli, b)
	}
	return sum
}

// join is the bytes in one slice, a copy unless there is only one slice.
func (r run) join() []byte {
	if len(r) == 1 {
		return r[0]
	}
	b := make([]byte, 0, r.size())
	for _, s := range r {
		b = append(b, s...)
	}
	return b
}

// cut divides the run at n.
func (r run) cut(n int64) (head, tail run) {
	for i, b := range r {
		if n <= int64(len(b)) {
			head = append(head[:len(head):len(head)], b[:n])
			return head, append(run{b[n:]}, r[i+1:]...)
		}
		head = append(head, b)
		n -= int64(len(b))
	}
	return head, nil
}

// pieces divides the run into pieces of about the given size: as many as come
// closest to it, all alike, so that no small remainder costs a round trip.
func (r run) pieces(size int64) []run {
	total := r.size()
	if total == 0 {
		return nil
	}
	n := max((total+size/2)/size, 1)
	pieces := make([]run, 0, n)
	for i := range n {
		var p run
		p, r = r.cut(total*(i+1)/n - total*i/n)
		pieces = append(pieces, p)
	}
	return pieces
}

// reader reads the run once.
func (r run) reader() io.Reader { return &runReader{rest: r} }

type runReader struct {
	head []byte
	rest run
}

func (r *runReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.head) == 0 {
			if len(r.rest) == 0 {
				break
			}
			r.head, r.rest = r.rest[0], r.rest[1:]
		}
		m := copy(p[n:], r.head)
		r.head = r.head[m:]
		n += m
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
