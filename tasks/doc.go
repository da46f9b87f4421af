// Package tasks runs trusted background tasks (contract.md section 6): an API's runs that go
// on by slices, each with a lease that is renewed, a budget and a runtime of its own.
//
// A task is a row in its tenant's database. Whoever runs a slice holds the task's lock,
// whose token the row keeps; the slice's work, its checkpoint and the number of slices are
// one commit, which a later holder's token refuses. So a node may die at any instant: what
// was committed is done, and the next node begins behind it.
//
// The queue (River, on the platform's database) is a doorbell: a job says that somebody
// should look at a task, no more. A job too many finds nothing to do; one that was lost is
// replaced by the watch, which looks into the databases of those tenants that may have tasks.
package tasks
