package sim

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// table is the layout of a life's topic, which nobody gets wrong: of several
// who replace the same segment, one does.
type table struct {
	mu     sync.Mutex
	places []*place // all there have been, by id
}

// place is a segment in the table. The table guards what changes.
type place struct {
	id      seglog.Ident
	preds   []seglog.Seal
	owner   *host
	log     *seglog.Log  // once the owner has opened it
	ended   bool         // the owner cannot go on with it
	sealed  *seglog.Seal // the first that anybody was told
	retired bool         // others have its partitions
}

// add puts the first segment into the table.
func (t *table) add(id seglog.Ident, owner *host) *place {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &place{id: id, owner: owner}
	t.places = append(t.places, p)
	return p
}

// live lists the segments that have the partitions now, by range.
func (t *table) live() []*place {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*place
	for _, p := range t.places {
		if !p.retired {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *place) int { return cmp.Compare(a.id.Range.Lo, b.id.Range.Lo) })
	return list
}

// chain lists the segments that have had a partition, oldest first.
func (t *table) chain(p smq.Partition) []*place {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*place
	for _, pl := range t.places {
		if pl.id.Range.Contains(p) {
			list = append(list, pl)
		}
	}
	return list
}

// serving returns the segment that has the partition now, with its owner and
// log; the log is nil when it is not open.
func (t *table) serving(p smq.Partition) (*host, *seglog.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pl := range t.places {
		if !pl.retired && pl.id.Range.Contains(p) {
			return pl.owner, pl.log
		}
	}
	panic("a partition belongs to no segment")
}

// state reads what changes of a place.
func (t *table) state(p *place) place {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *p
}

func (t *table) opened(p *place, log *seglog.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.log = log
}

func (t *table) end(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.ended = true
}

// seal notes a seal that somebody was told of, and fails when another is known.
func (t *table) seal(p *place, by string, s seglog.Seal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := p.sealed; k != nil && (k.Chunk != s.Chunk || string(k.Hash) != string(s.Hash) || k.Messages != s.Messages || k.Bytes != s.Bytes) {
		return Violated("P8", "%s was told the seal %+v of %v, known is %+v", by, s, p.id, *k)
	}
	p.sealed = &s
	return nil
}

// replace retires segments and puts others in their place, unless somebody has
// done so.
func (t *table) replace(old []*place, ranges []smq.Range, owner func() *host) []*place {
	t.mu.Lock()
	defer t.mu.Unlock()
	var seals []seglog.Seal
	for _, p := range old {
		if p.retired {
			return nil
		}
		seals = append(seals, *p.sealed)
	}
	for _, p := range old {
		p.retired = true
	}
	var added []*place
	for _, r := range ranges {
		p := &place{id: ident(smq.SegmentID(len(t.places)+1), r), owner: owner()}
		for _, s := range seals {
			if s.Range.Overlaps(r) {
				p.preds = append(p.preds, s)
			}
		}
		t.places = append(t.places, p)
		added = append(added, p)
	}
	return added
}
