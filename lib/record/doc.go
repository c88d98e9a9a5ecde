// Package record builds, checks and reads Kafka record batches of format 2,
// byte for byte: what a publisher encodes once is what travels, what the store
// keeps and what a consumer decodes. It also maps keys to partitions the way
// Kafka's clients do.
//
// # Format
//
// A batch is a header of 61 bytes and its records. Numbers are big-endian.
//
//	offset size field
//	     0    8 base offset            assigned by the owner (Patch)
//	     8    4 length                 of everything after this field
//	    12    4 leader epoch           set by the owner (Patch)
//	    16    1 magic                  2
//	    17    4 CRC-32C                of everything after this field
//	    21    2 attributes             bits 0-2: codec; all others 0 here
//	    23    4 last offset delta      count - 1
//	    27    8 base timestamp         ms; what the records' deltas count from
//	    35    8 max timestamp          ms
//	    43    8 producer id            -1: none
//	    51    2 producer epoch         -1: none
//	    53    4 base sequence          -1: none
//	    57    4 count                  of records
//	    61    … records                as a whole compressed by the codec
//
// Base offset and leader epoch lie before the bytes that the CRC covers, so an
// owner sets them without touching the rest.
//
// A record is made of zigzag varints (v) and bytes:
//
//	length v          of everything after this field
//	attributes 1      0, unused
//	timestamp delta v
//	offset delta v    the record's index in the batch
//	key length v      -1: no key, else followed by the key
//	value length v    -1: no value, else followed by the value
//	header count v
//	  key length v, key, value length v (-1: no value), value; for each header
//
// The codecs are gzip (members of RFC 1952), snappy (a raw block; the framing
// of Java's clients is read as well), lz4 (a frame of independent blocks) and
// zstd (frames of RFC 8878).
//
// # Invariants
//
// Validate lets a batch through only if, and Builder makes batches only so that:
//
//  1. its length is exactly that of its bytes, at most smq.MaxBatchSize;
//  2. its CRC matches;
//  3. count = last offset delta + 1 and count >= 1, and records of at least 7
//     bytes each can be in it: offsets stay dense;
//  4. it is neither transactional nor a control batch, and no other attribute
//     than a known codec is set;
//  5. producer id, epoch and sequence are either all there or the id is -1.
//
// Whether the records inside of a compressed batch are sound is known only to
// a Reader, which trusts nothing in them.
//
// # Limits
//
// A message is at most smq.MaxMessageSize, a batch at most smq.MaxBatchSize,
// before compression too when a Builder makes it. Other producers may compress
// more into a batch: a Reader takes up to MaxDecompressedSize and fails beyond.
// It allocates only in proportion to what a batch can really decompress to,
// never by what the batch says of itself.
//
// # Goroutines
//
// A Builder and a Reader belong to one goroutine at a time. The package starts
// none. Compressors and encoding buffers are shared through sync.Pools, so an
// idle Builder holds no memory to speak of.
package record
