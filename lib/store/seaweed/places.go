package seaweed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

const (
	maxPlaces     = 1 << 16
	rememberPlace = 10 * time.Minute
)

type filerClient = pb.SeaweedFilerClient

// places knows on which volume servers a volume lies.
type places struct {
	filers *filers
	known  *memory[uint32, []string]
}

func newPlaces(f *filers) *places {
	return &places{filers: f, known: newMemory[uint32, []string](maxPlaces, rememberPlace)}
}

// of returns the hosts that have the volume, in random order; with fresh it
// asks the filer again. smq.ErrUnavailable when no server is known to have it,
// which is also so while one is down.
func (p *places) of(ctx context.Context, volume uint32, fresh bool) ([]string, error) {
	hosts, ok := p.known.get(volume)
	if !ok || fresh {
		var err error
		if hosts, err = p.lookUp(ctx, volume); err != nil {
			return nil, err
		}
	}
	shuffled := append([]string(nil), hosts...)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled, nil
}

func (p *places) lookUp(ctx context.Context, volume uint32) ([]string, error) {
	vid := strconv.FormatUint(uint64(volume), 10)
	var resp *pb.LookupVolumeResponse
	err := p.filers.read(ctx, func(ctx context.Context, client filerClient) (err error) {
		resp, err = client.LookupVolume(ctx, &pb.LookupVolumeRequest{VolumeIds: []string{vid}})
		return err
	})
	var hosts []string
	for _, l := range resp.GetLocationsMap()[vid].GetLocations() {
		hosts = append(hosts, l.GetUrl())
	}
	if len(hosts) > 0 {
		p.known.put(volume, hosts, 1)
		return hosts, nil
	}
	p.known.remove(volume)
	if err == nil || ctx.Err() == nil {
		return nil, fmt.Errorf("%w: no volume server has volume %s now", smq.ErrUnavailable, vid)
	}
	return nil, wrap(err, "look up volume %s", vid)
}
