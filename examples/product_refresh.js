/*---
ApiEngineKey: product_refresh
ApiName: Drop a product from the cache and read it again
ApiRemark: A caller that surfaces a lost lease instead of hiding it.
TestParam: {"ProductId": "P1"}
---*/
V8.Cache.Remove('product:detail:' + V8.Param.ProductId);
var read = V8.ApiEngine.Run('product_detail', { ProductId: V8.Param.ProductId });
if (read.Code !== 1) {
    var msg = String(read.Msg || '');
    if (msg.indexOf('分布式锁租约已丢失') >= 0) {
        return { Code: 0, Msg: 'the product was read without a valid lease, the result cannot be trusted: ' + msg };
    }
    return { Code: 0, Msg: 'the product could not be read: ' + msg };
}
return { Code: 1, Data: read.Data };
