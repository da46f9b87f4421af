//go:build mutation

package lock_test

import "testing"

// callMutations are faults of the order of a call, of its guard and of what it leaves in the
// cache, put into the code.
var callMutations = []mutation{
	{"the guard last", "engine/scope.go", []edit{
		{"if ls := f.tree.leases; len(ls) > 0 {", "if ls := f.tree.leases; false {"},
		{"	if err := f.guard(ctx, t); err != nil {\n		return nil,", "	if err := error(nil); err != nil {\n		return nil,"},
		{"return t, f.guard(ctx, t)", "return t, nil"},
		{"	if err := f.commitAll(ctx); err != nil {", "	for _, t := range f.scope.txs {\n\t\tif err := f.guard(ctx, t); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n	if err := f.commitAll(ctx); err != nil {"},
	}, "./engine", "TestTheOrderOfACall"},
	{"the tenant's own database committed first", "engine/commits.go", []edit{
		{"names = append(names[1:], \"\")", "names = append([]string{\"\"}, names[1:]...)"},
	}, "./engine", "TestTheOrderOfCommits"},
	{"a guard without the tie-break, SQLite", "store/tenantdb/sqlitetx.go", []edit{
		{"f.token < excluded.token OR f.token = excluded.token AND f.owner = excluded.owner", "f.token <= excluded.token"},
	}, "./store/tenantdb", "TestGuardLetsOnlyNewerHoldersIn"},
	{"a guard without the tie-break, PostgreSQL", "store/tenantdb/postgresguard.go", []edit{
		{"f.token < excluded.token OR f.token = excluded.token AND f.owner = excluded.owner", "f.token <= excluded.token"},
	}, "./store/tenantdb", "TestGuardLetsOnlyNewerHoldersIn"},
	{"effects flushed before COMMIT", "engine/order.go", []edit{
		{"	if err := f.commit(ctx); err != nil {", "	f.flush(ctx)\n	if err := f.commit(ctx); err != nil {"},
		{"	f.flush(ctx)\n	return report, nil", "	return report, nil"},
	}, "./engine", "TestTheOrderOfACall"},
	{"the run's context on COMMIT", "store/tenantdb/tx.go", []edit{
		{"tx.s.commit(context.WithoutCancel(ctx))", "tx.s.commit(ctx)"},
	}, "./store/tenantdb", "TestCommitDoesNotLookAtTheContext"},
	{"the answer of a key written outside the transaction", "engine/order.go", []edit{
		{"	if err := f.record(ctx, report.Outcome); err != nil { // the answer, beside the work\n		return report, f.undo(ctx, err)\n	}\n", ""},
		{"	f.flush(ctx)\n	return report, nil", "	f.flush(ctx)\n	if err := f.record(ctx, report.Outcome); err != nil {\n		return report, err\n	}\n	return report, f.commit(ctx)"},
	}, "./engine", "TestTheOrderOfAKeyedCall"},
	{"a lost answer told of while it may still arrive", "store/tenantdb/outcome.go", []edit{
		{"pgStatement{sql: pgBurn, args: texts(w.ID, w.Execution)}, pgStatement{sql: pgRecorded,", "pgStatement{sql: pgRecorded,"},
	}, "./store/tenantdb", "TestACommitThatArrivesLate"},
	{"a late attempt that commits without its answer", "store/tenantdb/postgresidempotency.go", []edit{
		{"SELECT 1 / (SELECT count(*) FROM mine)", "SELECT (SELECT count(*) FROM mine)"},
	}, "./store/tenantdb", "TestTakeover"},
	{"a run left behind while the database works for it", "jsbridge/bridge.go", []edit{
		{"for hosted := true; hosted || r.hosting.Load(); {", "for hosted := true; hosted; {"},
		{"hosted = r.hosting.Load()", "hosted = false"},
	}, "./engine", "TestATransactionThatBeginsLate"},
	{"a release that writes without asking", "lockwrap/redis/release.go", []edit{
		{"effects(type(reply) == 'string' or #reply == 2, 4, %d)", "effects(true, 4, %d)"},
	}, "./lockwrap/redis", "TestApplier"},
	{"a hand-over that writes again", "lockwrap/redis/release.go", []edit{
		{"if done then", "if false then"},
	}, "./lockwrap/redis", "TestApplier"},
	{"fenced writes that do not compare, Redis", "cache/redisfenced.go", []edit{
		{"if newest > tonumber(token) then", "if false then"},
	}, "./cache", "TestALateFlushLeavesNothingOld"},
	{"fenced writes that do not compare, embedded", "cache/embeddedfenced.go", []edit{
		{"case old.token <= o.token:", "case old.token >= 0:"},
	}, "./cache", "TestALateFlushLeavesNothingOld"},
	{"a removal without a tombstone", "cache/fenced.go", []edit{
		{"op{kind: opRemove, key: k, token: token, keep: KeepFlushed}", "op{kind: opRemove, key: k, token: token}"},
	}, "./cache", "TestTombstones"},
}

func TestMutationsOfACall(t *testing.T) {
	for _, m := range callMutations {
		m.run(t)
	}
}
