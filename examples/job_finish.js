/*---
ApiEngineKey: job_finish
ApiName: Finish a claimed job
ApiRemark: Succeeds only for the owner whose claim still stands.
Lock: true
LockKey: JobId
Timeout: 10
LockScope: job
Methods: [POST]
TestParam: {"JobId": "J1", "OwnerToken": 0, "Ok": true, "Result": "done"}
---*/
var changed = V8.Db.FromSql(
        "UPDATE job_state SET status = @status, result = @result " +
        "WHERE job_id = @job AND owner_token = @owner AND status = 'RUNNING'")
    .AddInParameter('@status', V8.Param.Ok ? 'DONE' : 'RETRY')
    .AddInParameter('@result', V8.Param.Result || null)
    .AddInParameter('@job', V8.Param.JobId)
    .AddInParameter('@owner', V8.Param.OwnerToken)
    .ExecuteNonQuery();
return changed === 1 ? { Code: 1 } : { Code: 0, Msg: 'the claim no longer stands' };
