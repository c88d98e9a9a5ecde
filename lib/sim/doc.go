// Package sim looks for ways to break the promises: it runs the real segment
// log in worlds where stores and processes fail, and compares what clients were
// told and readers were given with what the store holds. Only tests import it;
// its own tests are what it is for.
//
// # What is checked
//
// A Ledger remembers what clients meant to publish, what they were told, and
// what readers saw. A Checker reads the raw store beside the log, and holds the
// ledger against it. Its violations bear the numbers of the promises:
//
//	P1  an acked batch stands at its acked offset, byte for byte
//	P2  offsets are dense from 0 over all segments of a partition
//	P3  a producer's batches stand in their order, without a gap
//	P4  what a reader was given is in the log, and stays
//	P5  nothing stands behind a seal, unsealed chunks are their owner's,
//	    a successor begins from its predecessors' seals
//	P7  no batch is there twice, nor acked at two offsets
//	P8  files never change or go; chunks are chained; all see one seal
//	P10 memory that was reserved is given back
//	answers  every batch gets one answer, a batch that is refused for certain
//	    is not in the log, no call hangs
//
// What followers make committed before it is stored (P1, P4) has to be in the
// store by the end, as long as one replica lives.
//
// # Searching
//
// TestSearch explores small scenarios (see scenarios). In a bubble of
// testing/synctest every call that changes the store waits; whenever nothing
// else can move, the search decides what happens next: which call is applied,
// which fails and how, which effect arrives late, what a client sends, who
// crashes. A pause is not to be chosen for a while. Runs are searched depth
// first by repeating the choices of the run before up to a point; a run that
// comes into a state that was met before ends there. What differs between two
// runs of the same choices (random writer ids, jitter) does not matter to any
// choice: time passes between choices until every timer has fired.
//
// A failure is made as small as can be, and printed with what repeats it:
//
//	go test ./lib/sim -run 'TestSearch/failover' -replay 'A: create 1/0; …'
//	go test ./lib/sim -run 'TestSearch' -long 10m -timeout 0
//
// TestMutantsAreFound proves that the search has teeth: it must find what is
// done wrong on purpose.
//
// # Lives
//
// TestLives runs longer lives of more processes, in which chance decides, a
// thousand of them by default: brokers that die and are cut off from the store,
// leaders that seal, split, merge and roll without knowing of one another,
// stores that refuse, fill up, lose answers and apply late (lib/store/fault),
// clients that keep the rules over slow connections, readers that follow the
// segments. After ten seconds of trouble all must be well again: every batch
// acked or given up, every reader at the end.
//
//	go test ./lib/sim -run TestLives -seeds 100000 -first 5000 -timeout 0
//	go test ./lib/sim -run TestLives -seed 118 -v    # tells what happened
//	go test ./lib/sim -run TestLives -life 'seed=118 hosts=2 …'
//
// All chance follows from the seed, but for the jitter of the log's own timers
// and the order of what happens at one moment: repeat (-count) when a seed does
// not fail again. A failing life is made smaller before it is printed.
//
// # Goroutines
//
// Both run in bubbles: time is not real, and waits cost nothing. In a search
// only one choice is acted upon at a time, by the bubble's first goroutine,
// which alone uses the Checker; in a life every process, stream, connection
// and reader has goroutines of its own, and the first one checks now and then.
// A Ledger is everybody's.
package sim
