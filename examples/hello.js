/*---
ApiEngineKey: hello
ApiName: The smallest API
ApiAddress: /hello/{name}
AllowAnonymous: true
Methods: [GET, POST]
TestParam: {"name": "world"}
---*/
return { Code: 1, Data: 'Hello, ' + (V8.Param.name || 'world') + '!' };
