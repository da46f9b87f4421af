/*---
ApiEngineKey: csv_imported
ApiName: Hear that an import is done
ApiRemark: The receiver of the import's last message. A message may come twice; V8.Inbox.Once lets the first one in.
StopHttp: true
---*/
if (!V8.Inbox.Once(V8.Param.EventId)) return { Code: 1, Msg: 'heard before' };
var d = V8.Param.Data;
V8.Db.FromSql('UPDATE csv_file SET notice = @n WHERE id = @id')
    .AddInParameter('@n', d.Name + ': ' + d.Imported + ' imported, ' + d.Bad + ' bad').AddInParameter('@id', d.FileId).ExecuteNonQuery();
return { Code: 1 };
