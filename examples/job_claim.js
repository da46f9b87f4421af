/*---
ApiEngineKey: job_claim
ApiName: Claim a job
ApiRemark: The state machine of table job_state. A job goes READY or RETRY -> RUNNING, and only for a token larger than the last owner's.
Lock: true
LockKey: JobId
Timeout: 10
LockScope: job
Methods: [POST]
TestParam: {"JobId": "J1"}
---*/
var claimed = V8.Db.FromSql(
        "UPDATE job_state SET owner_token = @token, status = 'RUNNING' " +
        "WHERE job_id = @job AND owner_token < @token AND status IN ('READY', 'RETRY')")
    .AddInParameter('@token', V8.FencingToken)
    .AddInParameter('@job', V8.Param.JobId)
    .ExecuteNonQuery();
if (claimed === 0) {
    return { Code: 0, Msg: 'the job is not there to be claimed' }; // whoever gets this must stop
}
return { Code: 1, Data: { JobId: V8.Param.JobId, OwnerToken: V8.FencingToken } };
