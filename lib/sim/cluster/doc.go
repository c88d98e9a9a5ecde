// Package cluster runs whole clusters in one process and looks whether they
// keep the promises: the real master, brokers, leader, publishers and
// subscribers, over a network in memory and a store that fails. Only tests
// import it; its own tests are what it is for.
//
// A life is as in lib/sim: chance decides by seed, in a bubble of
// testing/synctest, what fails and when. Brokers are killed, drained and cut
// off from the network and the store, while publishers publish and subscribers
// read; then nothing fails any more, and all must be well: every message is
// acked, or has failed as its publisher was told, and every subscriber has read
// what is in the log. The sim.Checker reads the raw store meanwhile.
//
// What follows from the seed are the config, the faults and when they strike;
// the order of what happens at one moment, and jitter, do not. A seed that
// failed is worth repeating:
//
//	go test ./lib/sim/cluster -seed 17 -count 20
//	go test ./lib/sim/cluster -seeds 1000 -first 100 -timeout 0
//	go test ./lib/sim/cluster -life 'seed=17 brokers=2 …' -v
package cluster
