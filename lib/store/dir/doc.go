// Package dir keeps a store in a directory of a local file system. Any number
// of processes of one machine, all of one user, may open the same directory.
//
// # On disk
//
// A store's files and folders are the directory's, under the same names and
// with nothing but their content in them, so they can be looked at with any
// tool. Beside them lie two folders that no path of a store can name:
//
//	.tmp/t-<32 hex digits>   a file that is being written
//	.tmp/u-<32 hex digits>   an upload; the digits are the piece's ID
//	.tmp/x-<32 hex digits>   a folder that RemoveAll is deleting
//	.lock/00.lock … 0f.lock  locks of Replace and Remove, by path (see below)
//	.lock/10.lock            the lock of folder removals
//	.lock/state              the last stamp of each lock; a token of folder removals
//
// They come into being with the first change; opening and reading a store
// writes nothing. What a process left in .tmp when it died is deleted 24 hours
// after it was last written, at Open and every hour, by whichever process
// comes first. Nobody may refer to an upload any longer by then.
//
// # Create
//
// The content is written to a temporary file and fsynced; then a hard link
// gives it its name, which fails if there is one; then the folder is fsynced,
// and the folders above it unless that is known to have happened. So a file is
// there whole or not at all, whenever a process or the machine stops. Content
// that is a single upload gets its name by a hard link to the upload, without a
// copy; several pieces are copied (by the kernel, where it can). A name that was
// found taken is made durable too before ErrExists says so, because callers
// build on what they find.
//
// An upload is fsynced, but not its name in .tmp: after a power cut the piece
// may be gone, and Create says smq.ErrNotFound.
//
// An error of fsync before the link leaves nothing behind. After the link, the
// outcome is ErrAmbiguous: the file is there for everybody who looks, but may be
// gone after a power cut.
//
// # Replace
//
// Replace and Remove of one path exclude each other by a lock on one of 16 lock
// files. Replace writes a temporary file, takes the lock, compares, and renames.
// The version of a file is its modification time, in nanoseconds, with a hash of
// its content. Replace sets that time itself, to a stamp that is later than the
// file's and than all that were given out under the same lock, which are kept in
// .lock/state. So no two writes of a path share a version as long as processes
// that know an old version can be alive, even if the clock steps back or the
// file system counts in whole seconds (then stamps run ahead of the clock).
// Files made by Create bear the time of their writing: two of them share a
// version only if they have the same bytes and were written within one tick of
// the kernel's clock under the same name, with a Remove in between. To take the
// one for the other is harmless: whoever read the first has read the second.
//
// # Removal
//
// RemoveAll moves the folder to .tmp in one step, then deletes it there. Reads
// by a handle that a process keeps open are preceded by a look at the path, so a
// file that was removed, or replaced, is never read any longer than the call
// that was under way. A process keeps up to 64 files open, and lets go of a
// removed one, and of the space that it takes, within two minutes.
//
// # Watch
//
// The kernel tells of changes, folder by folder; a folder that comes into being
// is watched too. Files in it may have come and gone before it was, so whenever
// a folder comes or goes the caller is told that it may have missed something.
// A watch breaks when its own folder is removed, and when the system allows no
// more watches (on Linux: fs.inotify.max_user_watches).
//
// # Contexts
//
// Whatever waits for the disk to sync runs on a goroutine of its own, so that a
// disk that hangs does not hold a caller past its context; at most 128 changes
// are under way per handle, and more wait. Bytes are written and read by the
// caller's goroutine, which looks at its context once a megabyte: a single read
// or write that the disk holds up returns when the disk lets it.
//
// # Limits
//
// Symbolic links, devices and the like inside of a store are reported
// (smq.ErrInvalid) and not followed; the root itself may be reached by a link.
// This guards against accidents, not against somebody who may write to the
// directory. The file system must have hard links, and all of a store must be on
// one file system. On a file system that ignores case, names that differ only in
// case are one name.
package dir
