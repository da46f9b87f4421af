/*---
ApiEngineKey: product_detail
ApiName: Product, from the cache or the database
ApiRemark: When many callers miss the cache at once, one of them reads the database and the others read what it cached.
AllowAnonymous: true
Lock: true
LockKey: ProductId
Timeout: 5
TestParam: {"ProductId": "P1"}
---*/
var key = 'product:detail:' + V8.Param.ProductId;
var cached = V8.Cache.Get(key);
if (cached !== null) {
    return { Code: 1, Data: JSON.parse(cached), DataAppend: { From: 'cache' } };
}
var found = V8.FormEngine.GetFormData('product', { Id: V8.Param.ProductId });
if (found.Code === 2) {
    return { Code: 0, Msg: 'no product ' + V8.Param.ProductId };
}
// Kept back until this call has committed and its lock is known to have held.
V8.Cache.Set(key, JSON.stringify(found.Data), 300);
return { Code: 1, Data: found.Data, DataAppend: { From: 'database' } };
