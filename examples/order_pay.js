/*---
ApiEngineKey: order_pay
ApiName: Pay an order
ApiRemark: Calls for one order take turns; its status, the stock and the payment change together or not at all.
Lock: true
LockKey: OrderId
LockMsg: this order is being paid just now
Timeout: 10
Methods: [POST]
TestParam: {"OrderId": "O1"}
---*/
var order = V8.Db.FromSql('SELECT id, product_id, quantity, status FROM orders WHERE id = @p0')
    .AddInParameter('@p0', V8.Param.OrderId).First();
if (order === null) {
    return { Code: 0, Msg: 'no order ' + V8.Param.OrderId };
}
if (order.status === 'paid') {
    return { Code: 0, Msg: 'already paid' };
}
var product = V8.FormEngine.GetFormData('product', { Id: order.product_id }).Data;
var taken = V8.Db.FromSql('UPDATE product SET stock = stock - @n WHERE id = @id AND stock >= @n')
    .AddInParameter('@n', order.quantity).AddInParameter('@id', order.product_id).ExecuteNonQuery();
if (taken === 0) {
    return { Code: 0, Msg: 'only ' + product.stock + ' left of ' + product.name };
}
V8.Db.FromSql('UPDATE orders SET status = @p0, paid_by = @p1 WHERE id = @p2')
    .AddInParameter('@p0', 'paid').AddInParameter('@p1', V8.FencingToken)
    .AddInParameter('@p2', order.id).ExecuteNonQuery();
var cents = product.price_cents * order.quantity;
V8.Db.FromSql('INSERT INTO payment (id, order_id, cents) VALUES (@id, @order, @cents)')
    .AddInParameter('@id', NewGuid()).AddInParameter('@order', order.id).AddInParameter('@cents', cents)
    .ExecuteNonQuery();
V8.Cache.Remove('product:detail:' + order.product_id);
return { Code: 1, Data: { OrderId: order.id, Cents: cents, FencingToken: V8.FencingToken } };
