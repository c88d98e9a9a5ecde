// Package seaweed keeps the store in SeaweedFS: the tree is entries of a
// filer, spoken to by gRPC, and the bytes lie on volume servers, spoken to by
// HTTP. It is the backend for systems that have outgrown one machine.
//
// # Format
//
// A path of the store is the same path below the URL's folder. Every file is
// one filer entry, which is one of:
//
//   - up to Limits.Inline bytes: the content is in the entry itself, and a
//     create is one round trip;
//   - more, or with references in it: a list of pieces, in order, each a run of
//     bytes on a volume server that exactly this entry owns. Whatever reads
//     SeaweedFS (a mount, the filer's HTTP) sees a plain file.
//
// A piece is named by its file id ("3,01637037d6"), never changes, and is
// stored as it is sent, never compressed. Its CRC-32C is computed before it
// leaves, compared with what the volume server says that it received, kept in
// the list, and compared again whenever the piece is read whole.
//
// Each write draws a random version and keeps it in the entry's attribute
// Seaweed-X-Amz-ETag, the one that the filer's compare conditions look at first.
// An entry that others made has the MD5 that it carries as its version.
//
// # Exactly one winner
//
// Create, Replace and Remove are one ObjectTransaction each: under the path's
// lock the filer compares (no entry is there; the version is the one given) and
// writes. With several filers each forwards it to the one that owns the path.
// Filers before 4.29 ignore the condition and overwrite, so those are refused.
//
// The lock lives in the owning filer's memory, and the comparison is made in its
// own store. So several filers may be named in the URL only when they share one
// store (they then show one store signature, which is checked). And for about
// five seconds after a filer has come or gone, two filers may each take itself
// for the owner of a path, and so let two writers win. All Stores with one URL
// speak to the same filer as long as it answers, which makes that unlikely, and
// what lies above this package detects it, by writer ids and a chain of hashes.
//
// Nothing but a check beforehand keeps a file from being created below another
// file: the filer would turn that one into a folder. Callers whose folders and
// files cannot be confused are not concerned.
//
// # Durability
//
// A piece is on disk before the call returns with ?fsync=true, or when the
// filer's configuration has a rule with fsync for the folder. An entry, and so
// what is inline, is on disk before the call returns only with that rule: no
// parameter of a request asks for it. Without either, what was acknowledged
// survives the end of any process but not of a machine. Check says which is
// missing.
//
// # Freshness
//
// Every call asks the filer, so that what a call shows was there during the
// call. A ReadAt from pieces that are known from before asks while it reads, and
// reads again if the file has another version by then.
//
// # Security
//
// Connections are neither encrypted nor authenticated unless the options of Open
// bring that. A cluster that signs writes gives a token with each place for a
// piece; one that asks for signed reads or deletions is not supported.
//
// # Goroutines
//
// A Store starts none that outlive a call, besides those of gRPC and net/http.
package seaweed
