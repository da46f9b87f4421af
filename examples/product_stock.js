/*---
ApiEngineKey: product_stock
ApiName: Set a product's stock, refused for a caller that is too late
ApiRemark: The condition on fence makes the row itself refuse an older holder of the lock. The platform's guard refuses it too; this is the form for rows that others write as well.
Lock: true
LockKey: ProductId
Timeout: 5
Methods: [POST]
TestParam: {"ProductId": "P1", "Stock": 12}
---*/
var affected = V8.Db.FromSql('UPDATE product SET stock = @p0, fence = @p1 WHERE id = @p2 AND fence < @p1')
    .AddInParameter('@p0', V8.Param.Stock)
    .AddInParameter('@p1', V8.FencingToken)
    .AddInParameter('@p2', V8.Param.ProductId)
    .ExecuteNonQuery();
if (affected === 0) {
    return { Code: 0, Msg: 'no such product, or a newer holder has written it' };
}
V8.Cache.Remove('product:detail:' + V8.Param.ProductId);
return { Code: 1, Data: { Stock: V8.Param.Stock, FencingToken: V8.FencingToken } };
