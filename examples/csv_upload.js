/*---
ApiEngineKey: csv_upload
ApiName: Take a CSV file and import it in the background
ApiRemark: Keeps the file and orders the task in one transaction. The same file under the same Name is imported once.
Methods: [POST]
Timeout: 20
TestParam: {"Name": "products.csv", "Csv": "id,name,price\nP7,Tray,1900\n"}
---*/
var body = V8.Param.Csv, name = V8.Param.Name;
for (var file in V8.FilesByteBase64) { // or as a file of a form
    name = name || file;
    body = V8.Base64.Base64ToString(V8.FilesByteBase64[file]);
}
if (!body || !name) return { Code: 0, Msg: 'send Name and Csv, or a file' };

var id = V8.EncryptHelper.Sha256Hex(name + '\n' + body).slice(0, 16);
V8.Db.FromSql('INSERT INTO csv_file (id, name, body) VALUES (@id, @name, @body) ON CONFLICT (id) DO NOTHING')
    .AddInParameter('@id', id).AddInParameter('@name', name).AddInParameter('@body', body.replace(/\r\n/g, '\n')).ExecuteNonQuery();
var task = V8.Task.Submit({
    ApiEngineKey: 'csv_import',
    Param: { FileId: id },
    IdempotencyKey: id,        // the same file is the same task
    ConcurrencyKey: 'csv'      // one import at a time
});
return { Code: 1, Data: { FileId: id, TaskId: task.Id } };
