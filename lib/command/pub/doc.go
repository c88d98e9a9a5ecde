// Package pub is smq-pub, the end of a pipeline that publishes.
//
// # Parts
//
// A source takes an input apart into messages; there is one for each format,
// and none knows where the bytes come from. A feed reads ahead for it. The pump
// moves messages from sources to the publisher, and the tally learns from the
// publisher what became of each: it counts, keeps what failed, and reports.
//
// # What the exit code says
//
// 0 means that everything that was read, all of the input, is acked. 3 means
// that some is acked and some is not, or was not read; otherwise the code says
// what kind of failure it was. After a signal the code is the signal's.
package pub
