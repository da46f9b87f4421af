/*---
ApiEngineKey: order_pay
ApiName: Pay an order
ApiRemark: Calls for one order take turns; its status, the stock and the payment change together or not at all.
ApiAddress: /orders/{OrderId}/pay
Methods: [POST]
Lock: true
LockKey: OrderId
LockMsg: this order is being paid just now
Timeout: 10
TestParam: {"OrderId": "O1"}
---*/
var order = V8.Db.FromSql('SELECT id FROM orders WHERE id = @p0').AddInParameter('@p0', V8.Param.OrderId).First();
return { Code: 1, Data: order };
