/*---
ApiEngineKey: quotes
ApiName: "true"
ApiRemark: "ends with a space "
Category: Bob's things -> 5 & more.
LockMsg: "a: b # c"
---*/
return 1;
