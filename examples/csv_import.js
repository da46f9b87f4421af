/*---
ApiEngineKey: csv_import
ApiName: Import a CSV file, a piece at a time
ApiRemark: A task. Each slice takes the next 16 KB of the file, up to a line's end; what it wrote and how far it came are one commit.
StopHttp: true
Lock: true
LockKey: FileId
Timeout: 60
---*/
var PIECE = 16384;
var id = V8.Param.FileId, from = V8.Param._BackgroundTaskCheckpoint || { At: 1, Line: 0, Imported: 0, Bad: 0 };
var piece = V8.Db.FromSql('SELECT name, length(body) AS size, substr(body, @at, @n) AS text FROM csv_file WHERE id = @id')
    .AddInParameter('@at', from.At).AddInParameter('@n', PIECE).AddInParameter('@id', id).First();
if (!piece) return { Code: 0, Msg: 'there is no file ' + id };

var last = from.At + PIECE > piece.size;
var end = last ? piece.text.length : piece.text.lastIndexOf('\n') + 1;
if (end === 0) return { Code: 0, Msg: 'line ' + (from.Line + 1) + ' is longer than ' + PIECE + ' characters' };
var lines = piece.text.slice(0, end).split('\n');
if (lines[lines.length - 1] === '') lines.pop();

var to = { At: from.At + end, Line: from.Line, Imported: from.Imported, Bad: from.Bad };
lines.forEach(function (line) {
    to.Line++;
    if (to.Line === 1 || line.trim() === '') return; // the header
    var cells = line.split(','), price = Number(cells[2]);
    if (cells.length !== 3 || !cells[0] || !(price >= 0)) {
        to.Bad++;
        V8.Db.FromSql('INSERT INTO csv_bad_line (file_id, line, reason) VALUES (@f, @l, @r)')
            .AddInParameter('@f', id).AddInParameter('@l', to.Line).AddInParameter('@r', 'wants id,name,price').ExecuteNonQuery();
        return;
    }
    to.Imported++;
    V8.Db.FromSql('INSERT INTO product (id, name, price_cents, stock, fence) VALUES (@id, @name, @price, 0, @token) ' +
            'ON CONFLICT (id) DO UPDATE SET name = excluded.name, price_cents = excluded.price_cents, fence = excluded.fence')
        .AddInParameter('@id', cells[0]).AddInParameter('@name', cells[1]).AddInParameter('@price', Math.round(price))
        .AddInParameter('@token', V8.FencingToken).ExecuteNonQuery();
    if (to.Line % 100 === 0) V8.Method.UpdateBackgroundTask({ Msg: 'line ' + to.Line });
});

if (last) {
    V8.Db.FromSql('UPDATE csv_file SET imported = @i, bad = @b WHERE id = @id')
        .AddInParameter('@i', to.Imported).AddInParameter('@b', to.Bad).AddInParameter('@id', id).ExecuteNonQuery();
    V8.Outbox.Send({ EventId: 'csv-' + id, Type: 'csv.imported', Target: 'csv_imported',
        Data: { FileId: id, Name: piece.name, Imported: to.Imported, Bad: to.Bad } });
}
return { Code: 1, Data: { Imported: to.Imported, Bad: to.Bad, BackgroundTask: {
    HasMore: !last, Checkpoint: to, Current: Math.min(to.At - 1, piece.size), Total: piece.size, Msg: 'line ' + to.Line } } };
