package seaweed

import (
	"context"
	"fmt"
	"net"
	"strings"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// peerType is how filers call themselves that follow this one's changes.
const peerType = "filer:"

// strangers finds filers of the cluster that keep a store of their own, with a
// sentence about each. Every filer owns a part of the paths, so they matter also
// when the URL does not name them.
func (f *filers) strangers(ctx context.Context) (found []string, err error) {
	peers, err := f.peers(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	own := *f.store // some filer is checked, since one has answered
	f.mu.Unlock()
	for _, peer := range peers {
		signature, err := f.signatureOf(ctx, peer)
		switch {
		case err != nil:
			found = append(found, fmt.Sprintf("The filer %s of the cluster does not answer: %s.", peer, text(err)))
		case signature != own:
			found = append(found, fmt.Sprintf("The filer %s of the cluster does not share the store of the others, so two writers may win: "+
				"run one filer, or give all of them one store (PostgreSQL, etcd, …).", peer))
		}
	}
	return found, nil
}

// peers are the cluster's filers, as far as the one in use knows them: each
// follows the changes of all. Filers that cannot tell are taken to have none.
func (f *filers) peers(ctx context.Context) (addrs []string, err error) {
	var resp *pb.ListMetadataSubscribersResponse
	err = f.read(ctx, func(ctx context.Context, client filerClient) (err error) {
		resp, err = client.ListMetadataSubscribers(ctx, &pb.ListMetadataSubscribersRequest{})
		if status.Code(err) == codes.Unimplemented {
			return nil
		}
		return err
	})
	for _, s := range resp.GetSubscribers() {
		if addr, ok := strings.CutPrefix(s.GetClientType(), peerType); ok {
			addrs = append(addrs, addr)
		}
	}
	return addrs, err
}

// signatureOf asks a filer for its store's signature.
func (f *filers) signatureOf(ctx context.Context, peer string) (int32, error) {
	conn, err := grpc.NewClient(peerGRPC(peer), f.opts...)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conf, err := pb.NewSeaweedFilerClient(conn).GetFilerConfiguration(ctx, &pb.GetFilerConfigurationRequest{})
	return conf.GetSignature(), err
}

// peerGRPC is the gRPC address of "host:port.grpcport" or "host:port", as
// servers write one another's addresses.
func peerGRPC(peer string) string {
	host, ports, err := net.SplitHostPort(peer)
	if err != nil {
		return peer
	}
	if _, port, ok := strings.Cut(ports, "."); ok {
		return net.JoinHostPort(host, port)
	}
	return grpcAddress(peer)
}
