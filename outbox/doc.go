// Package outbox delivers the messages that committed runs have left (V8.Outbox.Send), to
// an API of the same tenant or to an address outside: at least once, those of one key in
// the order of their commits, again after a growing pause when it fails, and at last as a
// dead letter that waits for an administrator.
//
// A message is claimed for a lease, which goes on as long as it is being delivered. A node
// that dies leaves its claims to run out; then another one delivers the message again,
// with the same EventId, by which the receiver knows it (V8.Inbox.Once).
package outbox
