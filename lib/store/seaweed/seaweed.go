package seaweed

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/seaweedmq/smq/lib/store"
)

const (
	// inlineLimit is the largest content that is kept in the entry. A listing
	// and the filer's log of changes carry that content along.
	inlineLimit = 16 << 10
	// pieceSize is the size of piece that volume servers take fastest.
	pieceSize = 1 << 20
	// parallel is how many pieces one call moves at once.
	parallel = 4
	// maxMessage bounds an answer of a filer: an entry with all its pieces.
	maxMessage = 256 << 20
)

// Store is a store in SeaweedFS. See the package comment.
type Store struct {
	config  config
	log     *slog.Logger
	filers  *filers
	http    *http.Client
	ids     *idPool
	places  *places
	files   *memory[string, file]     // by path, of files whose pieces never change
	folders *memory[string, struct{}] // paths at which a folder was seen
}

var _ store.Store = (*Store)(nil)

// Option changes how a Store connects.
type Option func(*options)

type options struct {
	dial []grpc.DialOption
	http *http.Client
}

// WithDialOptions adds to the options of the gRPC connections to filers, such
// as transport credentials; without, they are not encrypted.
func WithDialOptions(opts ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, opts...) }
}

// WithHTTPClient sets the client of requests to volume servers. Its transport
// must not ask for compressed answers.
func WithHTTPClient(c *http.Client) Option {
	return func(o *options) { o.http = c }
}

// Open connects to the store that u names:
//
//	seaweedfs://HOST[:PORT][,HOST[:PORT]…]/FOLDER[?PARAMETERS]
//
// HOST is a filer (port 8888 of HTTP, from which its gRPC port follows, unless
// said otherwise), FOLDER where the store lies. Parameters: fsync=true (pieces
// are on disk before a call returns) or false (they need not be), by default as
// the filer's rule for the folder says; collection, replication and disk choose
// where the pieces go, by default as the filer is configured.
//
// At least one filer must answer before ctx ends, or within some seconds. Errors:
// smq.ErrInvalid when the URL is wrong, a filer is too old, or filers do not
// share a store; smq.ErrUnavailable.
func Open(ctx context.Context, u *url.URL, logger *slog.Logger, opts ...Option) (*Store, error) {
	c, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	o := options{dial: dialOptions()}
	for _, opt := range opts {
		opt(&o)
	}
	if o.http == nil {
		o.http = newHTTPClient()
	}
	f, err := dial(c.filers, logger, o.dial)
	if err != nil {
		return nil, err
	}
	s := &Store{
		config: c, log: logger, filers: f, http: o.http,
		files:   newMemory[string, file](maxRemembered, rememberFile),
		folders: newMemory[string, struct{}](maxFolders, rememberFolder),
	}
	s.places = newPlaces(f)
	s.ids = &idPool{assign: s.assign, assigning: make(chan struct{}, 1)}
	if err := f.greet(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("open %s: %w", s, err)
	}
	return s, nil
}

// greet checks all filers that answer, and waits for the first.
func (f *filers) greet(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, t := range f.all {
		g.Go(func() error {
			if err := f.ready(gctx, t); isInvalid(err) {
				return err // one that is wrong is not to be found later
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return f.read(ctx, func(context.Context, filerClient) error { return nil })
}

// dialOptions are those of connections inside a cluster: no proxies, no
// configuration by DNS, and short waits, since the callers are the ones who
// decide how long to try.
func dialOptions() []grpc.DialOption {
	again := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second / 2}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(sendingHandler{}),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: 3 * time.Second}),
		// Filers end connections that are pinged more often than every 20 s.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
	}
}

// newHTTPClient makes one for volume servers. It does not ask for compressed
// answers: a range of such an answer would be another.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       time.Minute,
		ResponseHeaderTimeout: time.Minute,
		DisableCompression:    true,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        64 << 10,
	}}
}

// Limits says which sizes suit the backend.
func (s *Store) Limits() store.Limits {
	return store.Limits{Inline: inlineLimit, Piece: pieceSize}
}

// String is the URL of the store.
func (s *Store) String() string { return s.config.String() }

// Close closes the connections.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	if err := s.filers.close(); err != nil {
		return fmt.Errorf("close %s: %w", s, err)
	}
	return nil
}

// checkArgs is how each method begins: with what is wrong with its arguments,
// or the end of its context.
func checkArgs(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return ctx.Err()
}

// wrap says what was tried.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
