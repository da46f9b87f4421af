/*---
ApiEngineKey: Typed
ApiRemark: |-
  Two lines, the second one with a colon: here.

  It isn't long.
Category: 订单
IsEnable: false
StopHttp: true
AllowAnonymous: true
ApiRole: [clerk, "shift leader, night"]
ResponseType: JSON
LockScope: order
LockWait: 0
Transaction: own
Effects: staged
Idempotency: off
RateLimit: 60/m
LogParam: true
LogResult: true
Cors: [https://shop.example.com, http://localhost:3000]
TestParam: {"a": [1, 2.50, null], "every": "*\/5"}
---*/
const x: number = 1;
return x;
